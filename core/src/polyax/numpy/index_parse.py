"""What an index means: each of its entries becomes a slice, a point or a new axis of the indexed array.

Knows shapes and values of indices; must not know how elements are read or written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from polyax.ir import dtypes, errors
from polyax.ir.aval import Typed, aval_of
from polyax.ir.dims import dim_index, is_symbolic_dim, slice_indices
from polyax.numpy.arrays import asarray
from polyax.numpy.promotion import is_traced, unwrap
from polyax.trace.tree import tree_leaves


class NewAxis(NamedTuple):
    """``None``: an axis of size one in the result."""


class Span(NamedTuple):
    """A slice of an axis: ``size`` elements from ``start`` on, every ``step``-th; ``step`` may be negative."""

    axis: int
    start: int
    size: int
    step: int

    @property
    def ascending(self) -> tuple[int, int]:
        """Start and step of the same elements in increasing order."""
        return (self.start, self.step) if self.step > 0 else (self.start + (self.size - 1) * self.step, -self.step)


class Point(NamedTuple):
    """Elements of an axis by their positions: a Python integer, or an array of integers."""

    axis: int
    index: Any


Item = NewAxis | Span | Point


class ParsedIndex(NamedTuple):
    """``items`` in order of the index; axes are those of the array with axes of size one put in at ``inserted``."""

    items: list[Item]
    inserted: tuple[int, ...]
    adjacent: bool  # all points stand next to each other, so that their dimensions take their place


class _Mask(NamedTuple):
    value: np.ndarray


_ADVICE = (
    "Using a non-tuple sequence for multidimensional indexing is not allowed; use `arr[{}(seq)]` instead of `arr[seq]`."
)


def parse_index(index: Any, shape: tuple[int, ...]) -> ParsedIndex:
    """The meaning of ``index`` for an array of ``shape``.

    Raises:
      IndexError: too many entries, or one of a wrong kind.
      TypeError: an entry has a dtype that is neither integer nor boolean.
      NonConcreteBooleanIndexError: a traced boolean mask.
    """
    entries = [_entry(e) for e in _as_tuple(index)]
    _check_slices(entries)
    adjacent = _adjacent(entries)
    items: list[Item] = []
    inserted: list[int] = []
    axis = 0  # of the array with inserted axes
    rest = iter(shape)
    for entry in _without_ellipsis(entries, shape):
        if entry is None:
            items.append(NewAxis())
        elif isinstance(entry, slice):
            items.append(_span(entry, axis, next(rest)))
            axis += 1
        elif isinstance(entry, _Mask) and entry.value.ndim == 0:
            items.append(Point(axis, np.zeros(int(entry.value), np.int32)))
            inserted.append(axis)
            axis += 1
        elif isinstance(entry, _Mask):
            _check_mask(entry.value, tuple(next(rest) for _ in range(entry.value.ndim)), axis)
            items.extend(Point(axis + i, p.astype(np.int32)) for i, p in enumerate(np.nonzero(entry.value)))
            axis += entry.value.ndim
        else:
            items.append(_point(entry, axis, next(rest)))
            axis += 1
    return ParsedIndex(items, tuple(inserted), adjacent)


def _as_tuple(index: Any) -> tuple[Any, ...]:
    if isinstance(index, tuple):
        return index
    if isinstance(index, Sequence) and not isinstance(index, str):
        nested = any(e is None or e is Ellipsis or isinstance(e, (Sequence, slice)) or np.ndim(e) for e in index)
        raise TypeError(_ADVICE.format("tuple" if nested else "array"))
    return (index,)


def _entry(e: Any) -> Any:
    """None, Ellipsis, a slice, a Python integer, a mask, or an array of integers."""
    if e is None or e is Ellipsis or isinstance(e, slice):
        return e
    if isinstance(e, (bool, np.bool_)):
        return _Mask(np.asarray(e))
    if isinstance(e, np.integer):
        return int(_narrowed(e))
    return int(e) if isinstance(e, int) else _array_entry(e)


def _array_entry(e: Any) -> Any:
    if isinstance(e, str):
        raise TypeError(f"JAX does not support string indexing; got idx={e!r}")
    if isinstance(e, Sequence):
        traced = any(map(is_traced, tree_leaves(e)))
        e = asarray(e) if traced else np.asarray(e) if len(e) else np.zeros(0, np.int32)
    elif isinstance(e, (float, complex)):
        raise TypeError(f"Indexer must have integer or boolean type, got indexer with type {np.asarray(e).dtype}")
    e = unwrap(e)
    if not isinstance(e, Typed) and not isinstance(e, (np.ndarray, np.generic)):
        raise IndexError(
            "only integers, slices (`:`), ellipsis (`...`), newaxis (`None`) and integer or boolean arrays are valid "
            f"indices. Got {e}"
        )
    dtype = aval_of(e).dtype
    if dtype in dtypes.BOOL:
        if is_traced(e):
            raise errors.NonConcreteBooleanIndexError(
                f"Array boolean indices must be concrete; got {aval_of(e).str_short()}. The result would have an "
                "unknown "
                f"shape: use jnp.where(mask, x, y), or jnp.nonzero(mask, size=n).{e.origin()}"
            )
        return _Mask(np.asarray(e))
    if not dtypes.is_integer(dtype):
        raise TypeError(f"Indexer must have integer or boolean type, got indexer with type {dtype}")
    if not isinstance(e, np.ndarray):
        return e
    e = _narrowed(e)
    return int(e) if e.ndim == 0 else e


def _narrowed(e: Any) -> Any:
    """Of NumPy's integers of 64 bits what arrays of them would keep."""
    return e.astype(dtypes.canonicalize(e.dtype), copy=False)


def _adjacent(entries: list[Any]) -> bool:
    places = [i for i, e in enumerate(entries) if not (e is None or e is Ellipsis or isinstance(e, slice))]
    return not places or places[-1] - places[0] == len(places) - 1


def _without_ellipsis(entries: list[Any], shape: tuple[int, ...]) -> list[Any]:
    """The entries with the ellipsis, at the end if there is none, replaced by full slices."""
    places = [i for i, e in enumerate(entries) if e is Ellipsis]
    if len(places) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    used = sum(map(_axes_used, entries))
    if used > len(shape):
        raise IndexError(f"Too many indices: array is {len(shape)}-dimensional, but {used} were indexed")
    full = [slice(None)] * (len(shape) - used)
    at = places[0] if places else len(entries)
    return entries[:at] + full + entries[at + 1 :]


def _axes_used(entry: Any) -> int:
    if entry is None or entry is Ellipsis:
        return 0
    return entry.value.ndim if isinstance(entry, _Mask) else 1


def _check_mask(mask: np.ndarray, dims: tuple[int, ...], axis: int) -> None:
    if any(side not in (0, dim) for side, dim in zip(mask.shape, dims, strict=True)):  # a side of 0 chooses nothing
        raise IndexError(
            f"boolean index did not match shape of indexed array in index {axis}: got {mask.shape}, expected {dims}"
        )


def _check_slices(entries: list[Any]) -> None:
    for position, e in enumerate(entries):
        if isinstance(e, slice) and any(is_traced(part) for part in (e.start, e.stop, e.step)):
            raise IndexError(
                f"Slice entries must be static integers. Got {e} at position {position}. To index at a dynamic "
                "position, try lax.dynamic_slice or lax.dynamic_update_slice, whose sizes are static."
            )


def _span(s: slice, axis: int, size: int) -> Span:
    ends = [None if p is None else dim_index(p) for p in (s.start, s.stop, s.step)]
    if any(map(is_symbolic_dim, (*ends, size))):
        start, step, count = slice_indices(slice(*ends), size)
        return Span(axis, start, count, step)
    start, stop, step = slice(*ends).indices(size)
    return Span(axis, start, len(range(start, stop, step)), step)


def _point(entry: Any, axis: int, size: int) -> Point:
    if isinstance(entry, int) and size == 0:
        raise IndexError(f"index is out of bounds for axis {axis} with size 0")
    return Point(axis, entry)
