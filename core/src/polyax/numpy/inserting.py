"""Slices deleted from an axis, and inserted into one."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.ir.dims import is_symbolic_dim
from polyax.lax import lenient as lax
from polyax.numpy.broadcast import broadcast_to, choose
from polyax.numpy.indexing import take
from polyax.numpy.promotion import as_array, check_arraylike, convert, ensure_array, is_traced, refuse_traced, unwrap
from polyax.numpy.selection import clip, where
from polyax.numpy.shapes import along, moveaxis, ravel

__all__ = ["delete", "insert"]


def _positions(obj: Any, size: int) -> np.ndarray:
    """A static position, slice, list or mask of ``delete`` as sorted-as-given non-negative positions."""
    refuse_traced(obj, "'obj' argument of jnp.delete() must be static.")
    if isinstance(obj, slice):
        return np.arange(*obj.indices(size))
    places = np.atleast_1d(np.asarray(obj))
    if places.dtype == np.dtype(bool):
        if places.shape != (size,):
            raise ValueError(f"jnp.delete: a mask must have shape {(size,)}, as the axis has, got {places.shape}")
        return np.flatnonzero(places)
    if places.size and not dtypes.is_integer(places.dtype):
        raise ValueError(f"jnp.delete: obj must be of integers or bools, got {places.dtype}")
    places = places.astype(np.int64)
    return np.where(places < 0, places + size, places)


def delete(arr: Any, obj: Any, axis: Any = None, *, assume_unique_indices: bool = False) -> Any:
    """``arr`` without the elements (slices along ``axis``) at the positions ``obj``.

    Args:
      assume_unique_indices: no two of ``obj`` are equal, so that their number says how many are left: they needn't be
        static then.

    >>> import polyax.numpy as jnp
    >>> jnp.delete(jnp.arange(4), 1).tolist()
    [0, 2, 3]
    """
    arr, axis = along(ensure_array("delete", arr), axis)
    if assume_unique_indices and is_traced(obj):
        return take(arr, _left(obj, arr.shape[axis]), axis, mode="clip")
    gone = _positions(obj, arr.shape[axis])
    if np.ndim(obj) == 0 and not isinstance(obj, slice) and not 0 <= gone[0] < arr.shape[axis]:
        raise np.exceptions.AxisError(f"index {obj} is out of bounds for axis {axis} with size {arr.shape[axis]}")
    kept = np.setdiff1d(np.arange(arr.shape[axis]), gone).astype(np.int32)
    return take(arr, kept, axis, mode="clip")


def _left(gone: Any, size: int) -> Any:
    """The positions but ``gone``, which are different ones. Of these, in order, the k-th has ``gone[k] - k`` before it:
    that many positions, and those behind them, move up by one for its sake."""
    gone = ravel(as_array(unwrap(gone)))
    gone = lax.sort(convert(lax.select(lax.lt(gone, 0), lax.add(gone, size), gone), np.dtype("int32")))
    places = lax.iota(np.int32, size - gone.size)
    before = lax.sub(gone, lax.iota(np.int32, gone.size))
    grid = (places.size, gone.size)
    passed = lax.ge(lax.broadcast_in_dim(places, grid, (0,)), lax.broadcast_in_dim(before, grid, (1,)))
    return lax.add(places, lax.reduce_sum(convert(passed, np.dtype("int32")), (1,)))


def insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Any:
    """``arr`` with ``values`` before the positions ``obj``, along ``axis`` or flattened.

    Args:
      obj: a position, several of one dimension, or a slice; one position takes all slices of ``values``. Those beyond
        the ends mean the ends.

    Raises:
      ValueError: ``obj`` isn't of integers, or has more than one dimension.

    >>> import polyax.numpy as jnp
    >>> jnp.insert(jnp.arange(3), 1, 9).tolist()
    [0, 9, 1, 2]
    """
    check_arraylike("insert", arr, 0 if isinstance(obj, slice) else obj, values)
    arr, axis = along(as_array(unwrap(arr)), axis)
    size, places = arr.shape[axis], _insertions(obj, arr.shape[axis])
    values = lax.broadcast_to_rank(convert(as_array(unwrap(values)), arr.dtype, arr.weak_type), arr.ndim)
    values = values if places.ndim else moveaxis(values, 0, axis)
    (count,) = lax.broadcast_shapes(places.shape or (1,), (values.shape[axis],))
    if count == 0:
        return arr
    values = broadcast_to(values, (*arr.shape[:axis], count, *arr.shape[axis + 1 :]))
    computed = is_traced(places) or is_symbolic_dim(size)
    spread, sources_of = (broadcast_to, _sources_of_traced) if computed else (np.broadcast_to, _sources)
    sources = sources_of(spread(places, (count,)), size)
    return take(lax.concatenate([arr, values], axis), sources, axis, mode="clip")


def _insertions(obj: Any, size: int) -> Any:
    """Where to insert: traced positions, or those of NumPy, of one dimension or none."""
    obj = np.arange(*obj.indices(size)) if isinstance(obj, slice) else unwrap(obj)
    places = obj if is_traced(obj) else np.asarray(obj)
    if places.size and not dtypes.is_integer(places.dtype):
        raise ValueError(f"jnp.insert(): index array must be integer typed; got {obj}")
    if places.ndim > 1:
        raise ValueError("jnp.insert(): obj must be a slice, a one-dimensional array, or a scalar")
    places = convert(places, np.dtype("int32"))
    if is_traced(obj) or is_symbolic_dim(size):
        end = as_array(size)
        return clip(where(places < 0, as_array(places) + end, places), 0, end)
    return _clipped(places, size)


def _clipped(places: np.ndarray, size: int) -> np.ndarray:
    return np.clip(np.where(places < 0, places + size, places), 0, size)


def _sources(places: Any, size: int) -> np.ndarray:
    """Where each element of the result is in the array followed by the inserted ones."""
    places = np.asarray(places)
    order = np.argsort(places, kind="stable")
    new = np.zeros(size + len(places), np.int32)
    new[places[order] + np.arange(len(places))] = 1
    source = np.where(new == 1, 0, np.cumsum(1 - new) - 1)
    source[new == 1] = size + order
    return source.astype(np.int32)


def _sources_of_traced(places: Any, size: int) -> Any:
    """The k-th in order comes to stand k behind its position; others move up by as many as stand before them."""
    (count,) = places.shape
    places, order = lax.sort([places, lax.iota(np.int32, count)], is_stable=True, num_keys=1)
    at = lax.broadcast_in_dim(lax.add(places, lax.iota(np.int32, count)), (size + count, count), (1,))
    position = lax.broadcasted_iota(np.int32, (size + count, count), 0)
    before = lax.reduce_sum(convert(lax.lt(at, position), np.dtype("int32")), (1,))
    inserted = lax.reduce_or(lax.eq(at, position), (1,))
    chosen = take(lax.add(order, convert(as_array(size), np.dtype("int32"))), before, mode="clip")
    return choose(inserted, chosen, lax.sub(lax.iota(np.int32, size + count), before))
