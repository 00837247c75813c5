"""Inserting, deleting, extracting and putting elements; flat and multidimensional positions."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from polyax import lax
from polyax.ir import dtypes
from polyax.numpy.at import AtIndexer
from polyax.numpy.broadcast import as_mask, broadcast_arrays, broadcast_to
from polyax.numpy.broadcast import choose as _choose
from polyax.numpy.indexing import along_axis, take, wrapped
from polyax.numpy.promotion import (
    as_array,
    canonicalize_axis,
    check_arraylike,
    concrete_shape,
    convert,
    ensure_array,
    ensure_arrays,
    is_traced,
    promote_dtypes,
    refuse_traced,
    shape_of,
    to_complex,
    unwrap,
)
from polyax.numpy.reductions import refuse_out
from polyax.numpy.selection import nonzero
from polyax.numpy.shapes import along, moveaxis, ravel

__all__ = [
    "argpartition", "choose", "compress", "delete", "extract", "insert", "partition", "place", "put",
    "put_along_axis", "ravel_multi_index", "sort_complex", "unravel_index",
]  # fmt: skip


def _positions(obj: Any, size: int) -> np.ndarray:
    """A static position, slice, list or mask as sorted-as-given non-negative positions."""
    refuse_traced(obj, "'obj' argument of jnp.insert() or jnp.delete() must be static.")
    if isinstance(obj, slice):
        return np.arange(*obj.indices(size))
    places = np.atleast_1d(np.asarray(obj))
    if places.dtype == np.dtype(bool):
        return np.flatnonzero(places)
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
        raise IndexError(f"index {obj} is out of bounds for axis {axis} with size {arr.shape[axis]}")
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
    """``arr`` with ``values`` before the static positions ``obj``, along ``axis`` or flattened."""
    arr, values = ensure_arrays("insert", arr, values)
    arr, axis = along(arr, axis)
    values = convert(values, arr.dtype)
    size = arr.shape[axis]
    places = _positions(obj, size)
    rest = arr.shape[:axis] + arr.shape[axis + 1 :]
    if np.ndim(obj) == 0 and not isinstance(obj, slice):
        values = lax.broadcast_to_rank(values, arr.ndim)
        values = (
            moveaxis(values, 0, axis) if values.ndim == arr.ndim and axis and shape_of(values)[axis] == 1 else values
        )
        count = values.shape[axis]
        places = np.repeat(places, count)
    else:
        count = len(places)
    values = broadcast_to(values, (*arr.shape[:axis], count, *rest[axis:]))
    order = np.argsort(places, kind="stable")
    new = np.zeros(size + count, np.int32)
    new[places[order] + np.arange(count)] = 1
    source = np.where(new == 1, 0, np.cumsum(1 - new) - 1)
    source[new == 1] = size + order
    return take(lax.concatenate([arr, values], axis), source.astype(np.int32), axis, mode="clip")


def compress(
    condition: Any, a: Any, axis: Any = None, *, size: int | None = None, fill_value: Any = 0, out: None = None
) -> Any:
    """The elements (slices along ``axis``) of ``a`` where the condition holds.

    Args:
      size: number of results, needed if the condition is traced; missing ones are ``fill_value``.
    """
    refuse_out("compress", out)
    condition, a = ensure_arrays("compress", condition, a)
    condition, (a, axis) = ravel(as_mask(condition)), along(a, axis)
    if size is None:
        refuse_traced(condition, "jnp.compress inside transformations needs a static `size`.")
        return take(a, np.flatnonzero(np.asarray(condition)).astype(np.int32), axis, mode="clip")
    condition = lax.slice_in_dim(condition, 0, min(condition.shape[0], a.shape[axis]))
    (places,) = nonzero(condition, size=size, fill_value=0)
    count = lax.reduce_sum(convert(condition, np.dtype("int32")), (0,))
    chosen = take(a, places, axis, mode="clip")
    position = lax.broadcasted_iota(np.int32, chosen.shape, axis)
    return _choose(lax.lt(position, count), chosen, convert(unwrap(fill_value), a.dtype))


def extract(condition: Any, arr: Any, *, size: int | None = None, fill_value: Any = 0) -> Any:
    """The elements of the flattened array where the condition holds."""
    return compress(ravel(unwrap(condition)), ravel(unwrap(arr)), size=size, fill_value=fill_value)


def choose(a: Any, choices: Any, out: None = None, mode: str = "raise") -> Any:
    """For each element of ``a`` the element of that choice.

    Args:
      mode: numbers out of range are an error ('raise', not under transformations), 'wrap' or 'clip'.
    """
    refuse_out("choose", out)
    choices = list(choices) if isinstance(choices, Sequence) else [choices[i] for i in range(shape_of(choices)[0])]
    check_arraylike("choose", a, *choices)
    number, *options = broadcast_arrays(a, *promote_dtypes(*map(unwrap, choices)))
    count = len(options)
    if mode == "raise":
        refuse_traced(
            number,
            "The error occurred because jnp.choose was jit-compiled with mode='raise'. Use "
            "mode='wrap' or mode='clip' instead.",
        )
        if ((host := np.asarray(number)) < 0).any() or (host >= count).any():
            raise ValueError("invalid entry in choice array")
    elif mode not in ("wrap", "clip"):
        raise ValueError(f"mode={mode!r} not understood. Must be 'raise', 'wrap', or 'clip'")
    number = convert(number, np.dtype("int32"))
    number = (
        lax.rem(lax.add(lax.rem(number, count), count), count) if mode == "wrap" else lax.clamp(0, number, count - 1)
    )
    return lax.select_n(number, *options)


def put(a: Any, ind: Any, v: Any, mode: str | None = None, *, inplace: bool = True) -> Any:
    """A copy of ``a`` with the elements at the flat positions ``ind`` set to ``v``; needs ``inplace=False``."""
    _refuse_inplace("put", inplace)
    if mode not in (None, "clip", "wrap"):
        raise NotImplementedError(f"jnp.put with mode {mode!r} is not implemented")
    a, places, values = ensure_arrays("put", a, ind, v)
    places, values = ravel(places), ravel(values)
    if not places.size:
        return a
    if mode == "wrap":
        places, mode = wrapped(places, a.size), "clip"
    values = take(values, np.arange(places.size, dtype=np.int32) % max(values.size, 1), mode="clip")
    return lax.reshape(AtIndexer(ravel(a))[places].set(values, mode=mode), a.shape)


def place(arr: Any, mask: Any, vals: Any, *, inplace: bool = True) -> Any:
    """A copy of ``arr`` with the elements where the mask holds set to ``vals`` in turn; needs ``inplace=False``."""
    _refuse_inplace("place", inplace)
    arr = ensure_array("place", arr)
    mask, values = ravel(as_mask(as_array(unwrap(mask)))), ravel(unwrap(vals))
    if mask.size != arr.size or not values.size:
        raise ValueError("place: arr and mask must be the same size, and vals must not be empty")
    order = lax.sub(lax.cumsum(convert(mask, np.dtype("int32")), 0), 1)
    chosen = take(values, lax.rem(lax.max(order, 0), values.size), mode="clip")
    return lax.reshape(_choose(mask, convert(chosen, arr.dtype), ravel(arr)), arr.shape)


def put_along_axis(
    arr: Any, indices: Any, values: Any, axis: Any, inplace: bool = True, *, mode: str | None = None
) -> Any:
    """A copy of ``arr`` with ``values`` at ``indices`` along ``axis``; needs ``inplace=False``."""
    _refuse_inplace("put_along_axis", inplace)
    arr, indices, values = ensure_arrays("put_along_axis", arr, indices, values)
    shape = arr.shape
    if axis is None:
        arr, axis = ravel(arr), 0
    if arr.ndim != indices.ndim:
        raise ValueError(
            f"put_along_axis arguments 'arr' and 'indices' must have same ndim. Got {arr.ndim} and {indices.ndim}."
        )
    index = along_axis(arr.shape, indices, canonicalize_axis(axis, arr.ndim))
    return lax.reshape(AtIndexer(arr)[index].set(values, mode=mode), shape)


def _refuse_inplace(name: str, inplace: bool) -> None:
    if inplace:
        raise ValueError(
            f"jax.numpy.{name} cannot modify arrays in-place, because JAX arrays are immutable. Pass inplace=False "
            "to instead "
            "return an updated array."
        )


# --- positions --------------------------------------------------------------------------------------------------------


def unravel_index(indices: Any, shape: Any) -> tuple[Any, ...]:
    """The multidimensional positions of flat ones; out of range they are clipped."""
    indices = ensure_array("unravel_index", indices)
    sizes = concrete_shape(shape)
    total = int(np.prod(sizes, dtype=np.int64))
    flat = lax.clamp(indices.dtype.type(-total), indices, indices.dtype.type(max(total - 1, 0)))
    flat = lax.select(lax.lt(flat, lax.full_like(flat, 0)), lax.add(flat, lax.full_like(flat, total)), flat)
    parts = []
    for n in reversed(sizes):
        parts.append(lax.rem(flat, lax.full_like(flat, n)))
        flat = lax.div(flat, lax.full_like(flat, n))
    return tuple(reversed(parts))


def ravel_multi_index(multi_index: Any, dims: Any, mode: str = "raise", order: str = "C", *, dtype: Any = None) -> Any:
    """The flat positions of multidimensional ones.

    Args:
      mode: positions out of range are an error ('raise', not under transformations), 'clip' or 'wrap'.
    """
    sizes = concrete_shape(dims)
    parts = [ensure_array("ravel_multi_index", p) for p in multi_index]
    if len(parts) != len(sizes):
        raise ValueError(f"len(multi_index)={len(parts)} != len(dims)={len(sizes)}")
    if mode not in ("raise", "clip", "wrap"):
        raise ValueError(f"invalid mode={mode!r}. Expected 'raise', 'wrap', or 'clip'")
    parts = [_in_range(p, n, mode) for p, n in zip(parts, sizes, strict=True)]
    pairs = list(zip(parts, sizes, strict=True))
    flat: Any = np.int32(0)
    for p, n in pairs if order == "C" else pairs[::-1]:
        flat = as_array(flat) * n + p
    return flat


def _in_range(p: Any, size: int, mode: str) -> Any:
    if mode == "raise":
        refuse_traced(
            p,
            "The error occurred because ravel_multi_index was jit-compiled with mode='raise'. Use "
            "mode='wrap' or mode='clip' instead.",
        )
        if ((host := np.asarray(p)) < 0).any() or (host >= size).any():
            raise ValueError("invalid entry in coordinates array")
        return p
    return lax.clamp(p.dtype.type(0), p, p.dtype.type(size - 1)) if mode == "clip" else p % size


def argpartition(a: Any, kth: int, axis: int = -1) -> Any:
    """Positions that bring the ``kth`` smallest element to its place: up to it in the order of the elements, then in
    that of the array."""
    a, kth, axis = _around("argpartition", a, kth, axis)
    order = lax.sort((a, lax.broadcasted_iota(np.int32, a.shape, axis)), dimension=axis, num_keys=1)[1]
    low, high = _at(order, kth, axis)
    return lax.concatenate([low, lax.sort(high, dimension=axis)], axis)


def partition(a: Any, kth: int, axis: int = -1) -> Any:
    """``a`` with the ``kth`` smallest element in its place: up to it in increasing order, then in decreasing."""
    a, kth, axis = _around("partition", a, kth, axis)
    low, high = _at(lax.sort(a, dimension=axis), kth, axis)
    return lax.concatenate([low, lax.rev(high, (axis,))], axis)


def _around(name: str, a: Any, kth: int, axis: int) -> tuple[Any, int, int]:
    a = ensure_array(name, a)
    if dtypes.is_complex(a.dtype):
        raise NotImplementedError(f"jnp.{name} for complex dtype is not implemented.")
    axis = canonicalize_axis(axis, a.ndim)
    size = a.shape[axis]
    if not -size <= operator.index(kth) < size:
        raise ValueError(f"{name}: kth={kth} is out of bounds for axis {axis} with size {size}")
    return a, operator.index(kth) % size, axis


def _at(x: Any, kth: int, axis: int) -> tuple[Any, Any]:
    """What is up to ``kth``, and what is behind it."""
    size = x.shape[axis]
    return lax.slice_in_dim(x, 0, kth + 1, axis=axis), lax.slice_in_dim(x, kth + 1, size, axis=axis)


def sort_complex(a: Any) -> Any:
    """``a`` as complex numbers, sorted by real part, then by imaginary part."""
    a = ensure_array("sort_complex", a)
    a = convert(a, to_complex(a.dtype))
    re, im = lax.sort((lax.real(a), lax.imag(a)), dimension=a.ndim - 1, num_keys=2)
    return lax.complex(re, im)
