"""Order statistics, covariance and correlation."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from polyax import lax
from polyax.ir import dtypes
from polyax.meshes.resharding import with_out_sharding
from polyax.numpy import reductions
from polyax.numpy.broadcast import broadcast_to, choose
from polyax.numpy.promotion import as_array, convert, inexact, promote_args_inexact, shape_of, unwrap
from polyax.numpy.shapes import moveaxis, ravel

__all__ = [
    "corrcoef", "cov", "median", "nanmedian", "nanpercentile", "nanquantile", "percentile", "quantile",
]  # fmt: skip

# --- order statistics -------------------------------------------------------------------------------------------------

_METHODS = ("linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf")


def quantile(
    a: Any, q: Any, axis: Any = None, out: None = None, overwrite_input: bool = False, method: str = "linear",
    keepdims: bool = False, *, weights: Any = None,
) -> Any:  # fmt: skip
    """The values below which the fractions ``q`` of the elements lie; shape is that of ``q``, then that of the rest.

    Args:
      method: between two elements 'linear' interpolation, 'lower', 'higher', 'midpoint' or 'nearest'; or
        'inverted_cdf', the first element up to which that part of all weight is.
      weights: of all elements, or of those along ``axis``, for 'inverted_cdf'.
    """
    return _quantile("quantile", a, q, axis, out, overwrite_input, method, keepdims, weights, ignore_nan=False)


def nanquantile(
    a: Any, q: Any, axis: Any = None, out: None = None, overwrite_input: bool = False, method: str = "linear",
    keepdims: bool = False, *, weights: Any = None,
) -> Any:  # fmt: skip
    """``quantile`` without regard to NaN."""
    return _quantile("nanquantile", a, q, axis, out, overwrite_input, method, keepdims, weights, ignore_nan=True)


@with_out_sharding
def percentile(
    a: Any, q: Any, axis: Any = None, out: None = None, overwrite_input: bool = False, method: str = "linear",
    keepdims: bool = False, *, weights: Any = None, out_sharding: Any = None,
) -> Any:  # fmt: skip
    """``quantile`` with ``q`` in per cent."""
    return quantile(a, _fraction(q), axis, out, overwrite_input, method, keepdims, weights=weights)


def nanpercentile(
    a: Any, q: Any, axis: Any = None, out: None = None, overwrite_input: bool = False, method: str = "linear",
    keepdims: bool = False, *, weights: Any = None,
) -> Any:  # fmt: skip
    """``percentile`` without regard to NaN."""
    return nanquantile(a, _fraction(q), axis, out, overwrite_input, method, keepdims, weights=weights)


def _fraction(q: Any) -> Any:
    return lax.div(inexact("percentile", q)[0], 100.0)


def median(a: Any, axis: Any = None, out: None = None, overwrite_input: bool = False, keepdims: bool = False) -> Any:
    """The middle element over ``axis``, or the mean of both middle ones; NaN if any is.

    >>> import polyax.numpy as jnp
    >>> jnp.median(jnp.array([3.0, 1.0, 2.0])).item()
    2.0
    """
    return quantile(a, 0.5, axis, out, overwrite_input, "midpoint", keepdims)


def nanmedian(a: Any, axis: Any = None, out: None = None, overwrite_input: bool = False, keepdims: bool = False) -> Any:
    """``median`` without regard to NaN."""
    return nanquantile(a, 0.5, axis, out, overwrite_input, "midpoint", keepdims)


def _together(*xs: Any) -> list[Any]:
    """Arrays in the widest of their types."""
    kind = functools.reduce(dtypes.wider, [x.dtype for x in xs])
    return [convert(x, kind) for x in xs]


def _quantile(
    name: str,
    a: Any,
    q: Any,
    axis: Any,
    out: Any,
    overwrite: bool,
    method: str,
    keepdims: bool,
    weights: Any,
    ignore_nan: bool,
) -> Any:
    if out is not None or overwrite:
        raise ValueError(f"jax.numpy.{name} does not support overwrite_input=True or out != None")
    if method not in _METHODS:
        raise ValueError("method can only be 'linear', 'lower', 'higher', 'midpoint', 'nearest' or 'inverted_cdf'")
    if weights is not None and method != "inverted_cdf":
        raise NotImplementedError(f"{method} doesn't support weights. Only method 'inverted_cdf' supports weights.")
    (a, *given), (q,) = inexact(name, a, *[w for w in (weights,) if w is not None]), inexact(name, q)
    kind = a.dtype
    if kind in dtypes.COMPLEX:
        raise ValueError(f"{name} does not support complex numbers, which have no order.")
    a, q, *given = _together(a, q, *given)
    axes = reductions.reduction_axes(axis, a.ndim, name)
    flat = _in_lines(a, axes)
    if method == "inverted_cdf":
        weights = _of_all(given[0], a.shape, axes) if given else lax.full_like(a, 1)
        result = _at_weights(flat, _in_lines(weights, axes), ravel(q), ignore_nan)
    else:
        result = _at_fractions(lax.sort(flat, dimension=flat.ndim - 1), ravel(q), method, ignore_nan)
    result = convert(lax.reshape(moveaxis(result, -1, 0), (*q.shape, *flat.shape[:-1])), kind)
    return lax.expand_dims(result, tuple(q.ndim + i for i in axes)) if keepdims else result


def _in_lines(a: Any, axes: Any) -> Any:
    """The elements over ``axes`` as a new last dimension."""
    rest = [i for i in range(a.ndim) if i not in axes]
    lines = (*[a.shape[i] for i in rest], math.prod(a.shape[i] for i in axes))
    return lax.reshape(lax.transpose(a, (*rest, *axes)), lines)


def _of_all(weights: Any, shape: tuple[int, ...], axes: Any) -> Any:
    if weights.shape == shape:
        return weights
    if weights.shape != tuple(shape[i] for i in axes):
        raise ValueError(f"Weights shape {weights.shape} must be {shape}, or match its reduction axes {tuple(axes)}")
    return lax.broadcast_in_dim(weights, shape, axes)


def _at_weights(lines: Any, weights: Any, q: Any, ignore_nan: bool) -> Any:
    """The first elements in order up to which the fractions ``q`` of all weight are, along the last axis."""
    axis = lines.ndim - 1
    ordered, weights = lax.sort((lines, weights), dimension=axis, num_keys=1)
    undefined = lax.ne(ordered, ordered)
    bad = lax.bitwise_not(lax.ge(weights, lax.full_like(weights, 0)))
    sums = lax.cumsum(choose(lax.bitwise_or(bad, undefined), 0.0, weights), axis)
    total = lax.slice_in_dim(sums, sums.shape[axis] - 1, sums.shape[axis], axis=axis)
    wanted = lax.mul(*(broadcast_to(x, (*lines.shape[:-1], q.shape[0])) for x in (q, total)))
    less = lax.lt(lax.expand_dims(sums, (axis,)), lax.expand_dims(wanted, (axis + 1,)))
    place = lax.reduce_sum(convert(less, np.dtype("int32")), (axis + 1,))
    count = lax.expand_dims(lax.reduce_sum(convert(lax.bitwise_not(undefined), np.dtype("int32")), (axis,)), (axis,))
    spoilt = lax.reduce_or(bad if ignore_nan else lax.bitwise_or(bad, undefined), (axis,))
    spoilt = lax.bitwise_or(lax.expand_dims(spoilt, (axis,)), lax.eq(count, 0))
    found = _pick(ordered, lax.min(place, broadcast_to(lax.sub(count, 1), place.shape)))
    return choose(spoilt, np.nan, found)


def _at_fractions(ordered: Any, q: Any, method: str, ignore_nan: bool) -> Any:
    """Elements of sorted lines at the fractions ``q`` of their lengths, along the last axis. NaN sorts last."""
    size = ordered.shape[-1]
    undefined = lax.ne(ordered, ordered)
    if ignore_nan:
        count = lax.reduce_sum(convert(lax.bitwise_not(undefined), ordered.dtype), (ordered.ndim - 1,))
    else:
        count = lax.full(ordered.shape[:-1], size, ordered.dtype)
    last = lax.expand_dims(lax.sub(count, 1.0), (ordered.ndim - 1,))
    place = lax.mul(last, lax.broadcast_to_rank(q, ordered.ndim))
    low, high = lax.floor(place), lax.ceil(place)
    below, above = (_pick(ordered, x) for x in (low, high))
    result = _between(below, above, lax.sub(place, low), method)
    if not ignore_nan:
        spoilt = lax.expand_dims(lax.reduce_or(undefined, (ordered.ndim - 1,)), (ordered.ndim - 1,))
        result = choose(spoilt, np.nan, result)
    return choose(lax.lt(last, 0.0), np.nan, result)


def _pick(ordered: Any, place: Any) -> Any:
    index = lax.clamp(np.int32(0), convert(place, np.dtype("int32")), np.int32(max(ordered.shape[-1] - 1, 0)))
    axis = ordered.ndim - 1
    positions = tuple(lax.broadcasted_iota(np.int32, index.shape, i) for i in range(axis))
    vectors = lax.concatenate([lax.expand_dims(x, (index.ndim,)) for x in (*positions, index)], index.ndim)
    axes = tuple(range(ordered.ndim))
    return lax.gather(ordered, vectors, lax.GatherDimensionNumbers((), axes, axes), (1,) * ordered.ndim, mode="clip")


def _between(below: Any, above: Any, t: Any, method: str) -> Any:
    if method == "lower":
        return below
    if method == "higher":
        return above
    if method == "nearest":
        return choose(lax.le(t, 0.5), below, above)
    if method == "midpoint":
        return lax.mul(lax.add(below, above), 0.5)
    return lax.add(lax.mul(below, lax.sub(1.0, t)), lax.mul(above, t))


# --- covariance -------------------------------------------------------------------------------------------------------


def cov(
    m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: int | None = None, fweights: Any = None,
    aweights: Any = None, dtype: Any = None,
) -> Any:  # fmt: skip
    """The covariance matrix of variables in rows (columns if not ``rowvar``).

    Args:
      bias: divide by the number of observations instead of one less; ``ddof`` says what to subtract.
      fweights, aweights: how often each observation counts, and how much.
    """
    x = _variables("cov", m, y, rowvar)
    weights = [as_array(convert(unwrap(w), x.dtype)) for w in (fweights, aweights) if w is not None]
    ddof = (0 if bias else 1) if ddof is None else ddof
    if not weights:
        centered = lax.sub(x, reductions.mean(x, axis=1, keepdims=True))
        factor: Any = float(max(x.shape[1] - ddof, 0))
        return _second_moment(centered, centered, factor)
    total = weights[0] if len(weights) == 1 else lax.mul(*weights)
    amount = reductions.sum(total)
    mean = lax.div(reductions.sum(lax.mul(x, lax.broadcast_to_rank(total, 2)), axis=1, keepdims=True), amount)
    centered = lax.sub(x, mean)
    correction = (
        ddof if aweights is None else lax.div(lax.mul(float(ddof), reductions.sum(lax.mul(total, weights[-1]))), amount)
    )
    return _second_moment(
        centered,
        lax.mul(centered, lax.broadcast_to_rank(total, 2)),
        lax.sub(amount, convert(unwrap(correction), x.dtype)),
    )


def _variables(name: str, m: Any, y: Any, rowvar: bool) -> Any:
    parts = []
    for part in (m,) if y is None else (m, y):
        x = as_array(promote_args_inexact(name, part)[0])
        if x.ndim > 2:
            raise ValueError(f"{name}: an array has more than 2 dimensions: {x.aval}")
        x = lax.broadcast_to_rank(x, 2)
        parts.append(
            x
            if rowvar or (shape_of(part)[:1] == x.shape[1:] and len(shape_of(part)) == 1)
            else lax.transpose(x, (1, 0))
        )
    return parts[0] if len(parts) == 1 else lax.concatenate([convert(p, parts[0].dtype) for p in parts], 0)


def _second_moment(x: Any, y: Any, factor: Any) -> Any:
    y = lax.conj(y) if y.dtype in dtypes.COMPLEX else y
    product = lax.dot_general(x, y, (((1,), (1,)), ((), ())))
    result = lax.div(product, factor if isinstance(factor, float) else broadcast_to(factor, product.shape))
    return lax.squeeze(result, tuple(i for i, n in enumerate(result.shape) if n == 1))


def corrcoef(x: Any, y: Any = None, rowvar: bool = True, dtype: Any = None) -> Any:
    """Pearson's correlation coefficients of variables in rows (columns if not ``rowvar``)."""
    c = cov(x, y, rowvar)
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
