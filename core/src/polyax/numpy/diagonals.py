"""Diagonals of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.ir.dims import max_dim, min_dim
from polyax.lax import lenient as lax
from polyax.numpy.indexing import take
from polyax.numpy.promotion import (
    as_array,
    canonicalize_axis,
    check_arraylike,
    convert,
    ensure_array,
    shape_of,
    strong,
    unwrap,
)
from polyax.numpy.ranges import counted
from polyax.numpy.reductions import refuse_out, sum
from polyax.numpy.shapes import moveaxis, ravel

__all__ = ["diag", "diag_indices", "diag_indices_from", "diagflat", "diagonal", "fill_diagonal", "trace"]


def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """The ``offset``-th diagonal of the matrices that two axes make, as a new last axis.

    Raises:
      ValueError: there are fewer than two axes.

    >>> import polyax.numpy as jnp
    >>> jnp.diagonal(jnp.array([[1, 2], [3, 4]])).tolist()
    [1, 4]
    """
    a = ensure_array("diagonal", a)
    if a.ndim < 2:
        raise ValueError("diagonal requires an array of at least two dimensions.")
    a = moveaxis(a, (axis1, axis2), (-2, -1))
    rows, columns = a.shape[-2:]
    size = max_dim(0, min_dim(rows + min(offset, 0), columns - max(offset, 0)))
    if isinstance(size, int) and size == 0:
        return lax.full((*a.shape[:-2], 0), 0, a.dtype)
    steps = counted(size)[:, None]
    indices = steps + np.array([-min(offset, 0), max(offset, 0)], np.int32)
    batch = a.ndim - 2
    numbers = lax.GatherDimensionNumbers(tuple(range(batch)), (batch, batch + 1), (batch, batch + 1))
    return lax.gather(a, indices, numbers, (*a.shape[:-2], 1, 1), mode="clip", unique_indices=True)


def diag(v: Any, k: int = 0) -> Any:
    """The matrix with ``v`` on its ``k``-th diagonal, or the ``k``-th diagonal of the matrix ``v``.

    Raises:
      ValueError: ``v`` is neither a vector nor a matrix.

    >>> import polyax.numpy as jnp
    >>> jnp.diag(jnp.array([1, 2])).tolist()
    [[1, 0], [0, 2]]
    """
    v = ensure_array("diag", v)
    if v.ndim == 2:
        return diagonal(v, k)
    if v.ndim != 1:
        raise ValueError("diag input must be 1d or 2d")
    n = v.shape[0] + abs(k)
    rows, columns = lax.broadcasted_iota(np.int32, (n, n), 0), lax.broadcasted_iota(np.int32, (n, n), 1)
    on_diagonal = lax.eq(lax.add(rows, k), columns)
    padded = lax.pad(v, lax.full_like(v, 0, shape=()), [(max(-k, 0), max(k, 0), 0)])
    spread = lax.broadcast_in_dim(padded, (n, n), (0,))
    return lax.select(on_diagonal, spread, lax.full_like(spread, 0))


def diagflat(v: Any, k: int = 0) -> Any:
    """``diag`` of the flattened array."""
    return diag(ravel(strong(ensure_array("diagflat", v))), k)


def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: None = None) -> Any:
    """The sum of a diagonal.

    >>> import polyax.numpy as jnp
    >>> jnp.trace(jnp.array([[1, 2], [3, 4]])).item()
    5
    """
    refuse_out("trace", out)
    rank = ensure_array("trace", a).ndim
    if rank > 1 and canonicalize_axis(axis1, rank) == canonicalize_axis(axis2, rank):
        raise ValueError(f"axis1 and axis2 can not be same. {axis1=} and {axis2=}")
    return sum(diagonal(a, offset, axis1, axis2), -1, dtype)


def diag_indices(n: int, ndim: int = 2) -> tuple[Any, ...]:
    """Indices of the main diagonal of an array of ``ndim`` dimensions of size ``n``.

    Raises:
      ValueError: ``n`` or ``ndim`` is negative.
    """
    for name, value in (("n", n), ("ndim", ndim)):
        if value < 0:
            raise ValueError(f"{name} argument to diag_indices must be nonnegative, got {value}")
    return (lax.iota(dtypes.default_int(), n),) * ndim


def diag_indices_from(arr: Any) -> tuple[Any, ...]:
    """``diag_indices`` of a square array."""
    shape = shape_of(ensure_array("diag_indices_from", arr))
    if len(shape) < 2:
        raise ValueError("input array must be at least 2-d")
    if len(set(shape)) != 1:
        raise ValueError("All dimensions of input must be of equal length")
    return diag_indices(shape[0], len(shape))


def fill_diagonal(a: Any, val: Any, wrap: bool = False, *, inplace: bool = True) -> Any:
    """A copy of ``a`` with its main diagonal set to ``val``; ``inplace=False`` is required.

    Raises:
      NotImplementedError: ``inplace`` is not False.
      ValueError: ``a`` has fewer than two dimensions, or more, which differ.
    """
    check_arraylike("fill_diagonal", a, val)
    if inplace:
        raise NotImplementedError(
            "jax.numpy.fill_diagonal cannot perform operation in-place: JAX arrays are immutable, must use "
            "inplace=False"
        )
    if wrap:
        raise NotImplementedError("wrap=True is not implemented, must use wrap=False")
    a = as_array(unwrap(a))
    if a.ndim < 2:
        raise ValueError("array must be at least 2-d")
    if a.ndim > 2 and len({*a.shape}) > 1:
        raise ValueError(f"All dimensions of input must be of equal length, got shape {a.shape}")
    size = min(a.shape)
    places = np.tile(np.arange(size, dtype=np.int32)[:, None], (1, a.ndim))
    values = ravel(as_array(convert(unwrap(val), a.dtype)))
    values = take(values, np.arange(size, dtype=np.int32) % max(values.size, 1), mode="clip")
    axes = tuple(range(a.ndim))
    return lax.scatter(a, places, values, lax.ScatterDimensionNumbers((), axes, axes), unique_indices=True)
