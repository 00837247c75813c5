"""Indices with slices that ``ds`` made: such a slice is taken first, the rest of the index is one of what it gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from polyax.control.refs.slices import Slice
from polyax.ir import dtypes
from polyax.lax import lenient as lax
from polyax.numpy.promotion import as_array, convert, is_arraylike

Index = tuple[Any, ...]


def has(index: Any) -> bool:
    """Whether there is such a slice among the entries."""
    if type(index) is tuple:
        return any(type(e) is Slice for e in index)
    return type(index) is Slice


def read(x: Any, index: Any, getitem: Callable[[Any, Index], Any]) -> Any:
    """``x[index]``, by ``getitem`` for what are no such slices."""
    axis, which, rest = _first(index, x.ndim)
    return getitem(_part(x, axis, which, _start(which, x.shape[axis])), rest)


def written(x: Any, index: Any, update: Callable[[Any, Index], Any]) -> Any:
    """``x`` with the elements at ``index`` changed, by ``update`` for what are no such slices; unchanged, where a slice
    isn't within the array."""
    axis, which, rest = _first(index, x.ndim)
    size, start = x.shape[axis], _start(which, x.shape[axis])
    if which.size == 0 or (which.size - 1) * which.stride >= size:
        return x
    part = _part(x, axis, which, start)
    new = convert(update(part, rest), x.dtype, x.weak_type)
    if which.stride == 1:
        changed = lax.dynamic_update_slice_in_dim(x, new, start, axis)
    else:
        changed = _at(x, axis, _positions(which, start)).set(new)
    last = start + (which.size - 1) * which.stride
    return lax.select(lax.broadcast((start >= 0) & (last < size), x.shape), changed, x)


def _first(index: Any, ndim: int) -> tuple[int, Slice, Index]:
    """The dimension of the first of these slices, itself, and the index with a full slice in its place."""
    entries = index if type(index) is tuple else (index,)
    at = next(n for n, e in enumerate(entries) if type(e) is Slice)
    widths = [_width(e) for e in entries]
    axis = sum(widths[:at]) if Ellipsis not in map(_kind, entries[:at]) else ndim - sum(widths[at:])
    if not 0 <= axis < ndim:
        raise IndexError(f"Too many indices: array is {ndim}-dimensional, but {sum(widths)} were indexed")
    return axis, entries[at], (*entries[:at], slice(None), *entries[at + 1 :])


def _kind(entry: Any) -> Any:
    """Ellipsis, or something that can be compared with it."""
    return entry if entry is Ellipsis else None


def _width(entry: Any) -> int:
    """How many dimensions it stands for."""
    if entry is None or entry is Ellipsis or isinstance(entry, (bool, np.bool_)):
        return 0
    mask = getattr(entry, "dtype", None) == np.bool_ or (isinstance(entry, list) and np.asarray(entry).dtype == bool)
    return np.ndim(entry) if mask else 1


def _start(which: Slice, size: int) -> Any:
    """As an array; a negative one is counted from the end."""
    if not is_arraylike(which.start) or not dtypes.is_integer(as_array(which.start).dtype) or np.shape(which.start):
        raise TypeError(f"ds: start must be an integer, got {which.start!r}")
    start = convert(as_array(which.start), np.dtype("int32"))
    return lax.select(start < 0, start + np.int32(size), start)


def _part(x: Any, axis: int, which: Slice, start: Any) -> Any:
    if which.stride == 1:
        return lax.dynamic_slice_in_dim(x, lax.max(start, np.int32(0)), which.size, axis)
    return _at(x, axis, _positions(which, start)).get(mode="clip")


def _positions(which: Slice, start: Any) -> Any:
    return start + np.arange(which.size, dtype=np.int32) * np.int32(which.stride)


def _at(x: Any, axis: int, positions: Any) -> Any:
    return x.at[(slice(None),) * axis + (positions,)]
