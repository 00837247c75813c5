"""The places of grids: coordinates of all elements, and indices of rectangular parts."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.lax import lenient as lax
from polyax.numpy.promotion import canonical_dtype, concrete_shape, convert, ensure_arrays

__all__ = ["indices", "ix_", "meshgrid"]


def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> list[Any]:
    """Coordinate arrays from coordinate vectors; 'xy' exchanges the first two axes, 'ij' does not.

    Raises:
      ValueError: another ``indexing``, or an argument that is no vector.

    >>> import polyax.numpy as jnp
    >>> [x.tolist() for x in jnp.meshgrid(jnp.arange(2), jnp.arange(3), indexing='ij')]
    [[[0, 0, 0], [1, 1, 1]], [[0, 1, 2], [0, 1, 2]]]
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"Valid values for indexing are 'xy' and 'ij', got {indexing}")
    if not copy:
        raise ValueError("jax.numpy.meshgrid only supports copy=True")
    axes = ensure_arrays("meshgrid", *xi)
    if any(a.ndim != 1 for a in axes):
        raise ValueError(f"Arguments to jax.numpy.meshgrid must be 1D, got shapes {[a.shape for a in axes]}")
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
    """For each axis the index of every element of an array of shape ``dimensions``.

    >>> import polyax.numpy as jnp
    >>> [x.tolist() for x in jnp.indices((2, 2))]
    [[[0, 0], [1, 1]], [[0, 1], [0, 1]]]
    """
    shape = concrete_shape(tuple(dimensions))
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
