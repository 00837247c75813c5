"""Diagonals of matrices, and index grids."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.ir.dims import max_dim, min_dim
from polyax.lax import lenient as lax
from polyax.numpy.creation import counted, tri
from polyax.numpy.indexing import take
from polyax.numpy.promotion import (
    as_array,
    canonical_dtype,
    canonicalize_axis,
    check_arraylike,
    concrete_shape,
    convert,
    ensure_array,
    ensure_arrays,
    shape_of,
    strong,
    unwrap,
)
from polyax.numpy.reductions import refuse_out, sum
from polyax.numpy.selection import nonzero
from polyax.numpy.shapes import moveaxis, ravel

__all__ = [
    "diag", "diag_indices", "diag_indices_from", "diagflat", "diagonal", "fill_diagonal", "indices", "ix_",
    "mask_indices", "meshgrid", "trace", "tril_indices", "tril_indices_from", "triu_indices", "triu_indices_from",
]  # fmt: skip


def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """The ``offset``-th diagonal of the matrices that two axes make, as a new last axis.

    Raises:
      ValueError: there are fewer than two axes.
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
    """The sum of a diagonal."""
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


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Any, Any]:
    """Row and column indices of the elements at and below the ``k``-th diagonal of an (n, m) matrix."""
    return _host_pair(np.tril_indices(n, k, m))


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Any, Any]:
    """Row and column indices of the elements at and above the ``k``-th diagonal of an (n, m) matrix."""
    return _host_pair(np.triu_indices(n, k, m))


def _host_pair(pair: tuple[np.ndarray, np.ndarray]) -> tuple[Any, Any]:
    rows, columns = (as_array(indices.astype(dtypes.default_int())) for indices in pair)
    return rows, columns


def _matrix_shape(name: str, arr: Any) -> tuple[int, int]:
    shape = tuple(arr.shape) if hasattr(arr, "shape") else shape_of(ensure_array(name, arr))
    if len(shape) != 2:
        raise ValueError("Only 2-D inputs are accepted")
    return shape[0], shape[1]


def tril_indices_from(arr: Any, k: int = 0) -> tuple[Any, Any]:
    """``tril_indices`` for the shape of a matrix."""
    rows, columns = _matrix_shape("tril_indices_from", arr)
    return tril_indices(rows, k, columns)


def triu_indices_from(arr: Any, k: int = 0) -> tuple[Any, Any]:
    """``triu_indices`` for the shape of a matrix."""
    rows, columns = _matrix_shape("triu_indices_from", arr)
    return triu_indices(rows, k, columns)


def mask_indices(n: int, mask_func: Callable[..., Any], k: int = 0, *, size: int | None = None) -> tuple[Any, ...]:
    """Indices of the nonzero elements of ``mask_func(ones((n, n)), k)``."""
    return nonzero(mask_func(tri(n, n, n), k), size=size)


# --- grids ------------------------------------------------------------------------------------------------------------


def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> list[Any]:
    """Coordinate arrays from coordinate vectors; 'xy' exchanges the first two axes, 'ij' does not.

    Raises:
      ValueError: another ``indexing``, or an argument with several dimensions.
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"Valid values for indexing are 'xy' and 'ij', got {indexing}")
    if not copy:
        raise ValueError("jax.numpy.meshgrid only supports copy=True")
    axes = ensure_arrays("meshgrid", *xi)
    if any(a.ndim > 1 for a in axes):
        raise ValueError(f"Arguments to jax.numpy.meshgrid must be 1D, got shapes {[a.shape for a in axes]}")
    axes = [lax.reshape(a, (a.size,)) for a in axes]
    order = list(range(len(axes)))
    if indexing == "xy" and len(order) > 1:
        order[:2] = [1, 0]
    shape = [0] * len(axes)
    for a, place in zip(axes, order, strict=True):
        shape[place] = a.size
    return [
        _along(a, place, _unit_shape(len(shape), place, a.size) if sparse else shape)
        for a, place in zip(axes, order, strict=True)
    ]


def _along(vector: Any, axis: int, shape: list[int]) -> Any:
    return lax.broadcast_in_dim(vector, shape, (axis,))


def indices(dimensions: Any, dtype: Any = None, sparse: bool = False) -> Any:
    """For each axis the index of every element of an array of shape ``dimensions``."""
    shape = concrete_shape(dimensions)
    kind = canonical_dtype(dtype, np.int64)
    if sparse:
        return tuple(_along(lax.iota(kind, n), i, _unit_shape(len(shape), i, n)) for i, n in enumerate(shape))
    parts = [lax.expand_dims(lax.broadcasted_iota(kind, shape, i), (0,)) for i in range(len(shape))]
    return lax.concatenate(parts, 0) if parts else lax.full((0,), 0, kind)


def ix_(*args: Any) -> tuple[Any, ...]:
    """Vectors shaped so that together they index a rectangular part of an array.

    Raises:
      ValueError: an argument has not exactly one dimension.
      NotImplementedError: one is of booleans: give the positions that ``jnp.nonzero`` finds.
    """
    vectors = ensure_arrays("ix_", *args)
    if any(v.ndim != 1 for v in vectors):
        raise ValueError(f"Arguments to jax.numpy.ix_ must be 1-dimensional, got shapes {[v.shape for v in vectors]}")
    if any(v.dtype in dtypes.BOOL for v in vectors):
        raise NotImplementedError(
            "Boolean arguments to jax.numpy.ix_ are not implemented: give the positions that jnp.nonzero finds."
        )
    vectors = [v if v.size else convert(v, dtypes.default_int()) for v in vectors]
    return tuple(lax.reshape(v, _unit_shape(len(vectors), i, v.size)) for i, v in enumerate(vectors))


def _unit_shape(rank: int, axis: int, size: int) -> list[int]:
    return [size if i == axis else 1 for i in range(rank)]


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
