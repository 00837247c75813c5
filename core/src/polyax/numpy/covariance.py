"""Covariance and correlation of variables, each a row of observations."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.ir.aval import aval_of
from polyax.lax import lenient as lax
from polyax.numpy import reductions
from polyax.numpy.promotion import (
    as_array,
    canonical_dtype,
    check_arraylike,
    convert,
    promote_args_inexact,
    shape_of,
    unwrap,
)

__all__ = ["corrcoef", "cov"]


def cov(
    m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: int | None = None, fweights: Any = None,
    aweights: Any = None, dtype: Any = None,
) -> Any:  # fmt: skip
    """The covariance matrix of variables in rows (columns if not ``rowvar``).

    Args:
      bias: divide by the number of observations instead of one less; ``ddof`` says what to subtract.
      fweights, aweights: how often each observation counts, an integer, and how much.
      dtype: of the result, by default that of the variables, at least float16.

    Raises:
      ValueError: variables of more than two dimensions, or a ``dtype`` that is neither real nor complex.
      RuntimeError: not one weight for each observation.
      TypeError: ``fweights`` aren't integers.

    >>> import polyax.numpy as jnp
    >>> jnp.cov(jnp.array([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]])).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    x = _variables("cov", m, y, rowvar, dtype)
    if not x.shape[0]:
        return lax.full((0, 0), 0, x.dtype)
    ddof = (0 if bias else 1) if ddof is None else ddof
    counts, shares = _weights("fweights", fweights, x), _weights("aweights", aweights, x)
    weights = counts if shares is None else shares if counts is None else lax.mul(counts, shares)
    if weights is None:
        centered = lax.sub(x, reductions.mean(x, axis=1, keepdims=True))
        divisor = x.shape[1] - ddof if x.shape[1] else 0  # of no observations nothing is known: NaN
        return _second_moment(centered, centered, as_array(convert(divisor, x.dtype)))
    row, total = lax.expand_dims(weights, (0,)), reductions.sum(weights)
    mean = lax.div(reductions.sum(lax.mul(x, row), axis=1, keepdims=True), total)
    centered = lax.sub(x, mean)
    lost: Any = convert(ddof, x.dtype)
    if shares is not None:
        lost = lax.div(lax.mul(lost, reductions.sum(lax.mul(weights, shares))), total)
    return _second_moment(centered, lax.mul(centered, row), lax.sub(total, lost))


def _weights(name: str, given: Any, x: Any) -> Any:
    """Weights of the observations, without their signs."""
    if given is None:
        return None
    check_arraylike("cov", given)
    shape = shape_of(given)
    if len(shape) > 1:
        raise RuntimeError(f"cannot handle multidimensional {name}")
    if shape != x.shape[1:]:
        raise RuntimeError(f"incompatible numbers of samples and {name}")
    if name == "fweights" and not dtypes.is_integer(aval_of(unwrap(given)).dtype):
        raise TypeError("fweights must be integer.")
    return as_array(convert(lax.abs(unwrap(given)), x.dtype))


def _variables(name: str, m: Any, y: Any, rowvar: bool, dtype: Any) -> Any:
    """All variables as rows of one matrix."""
    if dtype is not None and not dtypes.is_inexact(canonical_dtype(dtype)):
        raise ValueError(f"{name}: dtype must be a subclass of float or complex; got {dtype=}")
    parts = [as_array(x) for x in promote_args_inexact(name, m, *(() if y is None else (y,)))]
    rows = []
    for which, x in reversed(list(zip("my", parts, strict=False))):
        if x.ndim > 2:
            raise ValueError(f"{which} has more than 2 dimensions: {x.aval.str_short()}")
    for which, x in zip("my", parts, strict=False):
        row = lax.broadcast_to_rank(x, 2)
        is_row = rowvar or (x.ndim < 2 if which == "m" else row.shape[0] == 1)
        rows.append(row if is_row else lax.transpose(row, (1, 0)))
    x = rows[0] if len(rows) == 1 else lax.concatenate(rows, 0)
    return x if dtype is None else convert(x, canonical_dtype(dtype))


def _second_moment(x: Any, y: Any, factor: Any) -> Any:
    y = lax.conj(y) if y.dtype in dtypes.COMPLEX else y
    product = lax.dot_general(x, y, (((1,), (1,)), ((), ())))
    result = lax.div(product, lax.broadcast_to_rank(factor, 2))
    return lax.squeeze(result, tuple(i for i, n in enumerate(result.shape) if n == 1))


def corrcoef(x: Any, y: Any = None, rowvar: bool = True, dtype: Any = None) -> Any:
    """Pearson's correlation coefficients of variables in rows (columns if not ``rowvar``), as ``dtype``.

    Raises:
      ValueError: see ``cov``.
    """
    c = cov(x, y, rowvar, dtype=dtype)
    if c.ndim == 0:
        return lax.div(c, c)
    variances = lax.real(c) if c.dtype in dtypes.COMPLEX else c
    masked = lax.select(_identity_mask(c.shape[0]), variances, lax.full_like(variances, 0))
    deviation = lax.sqrt(lax.reduce_sum(masked, (1,)))
    scale = lax.mul(lax.expand_dims(deviation, (1,)), lax.expand_dims(deviation, (0,)))
    if c.dtype in dtypes.COMPLEX:
        return lax.complex(*(lax.clamp(-1.0, lax.div(part, scale), 1.0) for part in (variances, lax.imag(c))))
    return lax.clamp(-1.0, lax.div(c, scale), 1.0)


def _identity_mask(n: int) -> Any:
    return lax.eq(lax.broadcasted_iota(np.int32, (n, n), 0), lax.broadcasted_iota(np.int32, (n, n), 1))
