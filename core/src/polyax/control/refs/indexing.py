"""What indices of references mean, and the values of arrays there: read, replaced, added to.

An index is static but for its operands: computed starts of stretches, and computed spots. Knows no references.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from polyax.control.refs.slices import Slice
from polyax.ir import dtypes, errors
from polyax.ir.aval import aval_of
from polyax.ops.basis import add, broadcast_in_dim, convert, expand_dims, reshape, select_n, squeeze
from polyax.ops.compare import lt
from polyax.ops.gather import GatherDimensionNumbers, gather
from polyax.ops.index import dynamic_slice, dynamic_update_slice
from polyax.ops.joining import concatenate
from polyax.ops.scatter import ScatterDimensionNumbers, scatter, scatter_add
from polyax.ops.slicing import pad
from polyax.ops.slicing import slice as static_slice
from polyax.trace.tracer import Tracer

_INT32 = np.dtype("int32")


class Stretch(NamedTuple):
    """``size`` elements of a dimension from ``start`` on, every ``step``-th; None: the start is an operand."""

    start: int | None
    size: int
    step: int = 1

    @property
    def extent(self) -> int:
        return (self.size - 1) * self.step + 1 if self.size else 0


class Pick(NamedTuple):
    """One element of a dimension, ``at``; None: an operand of this shape says which."""

    at: int | None
    shape: tuple[int, ...] = ()


@dataclass(frozen=True)
class RefIndex:
    """An entry for each dimension of an array of ``shape``. Where spots are arrays, they go together, and their common
    dimensions stand at dimension ``block`` of what the index gives."""

    items: tuple[Stretch | Pick, ...]
    block: int = 0

    @property
    def arrays(self) -> list[int]:
        """The dimensions whose spots are arrays."""
        return [n for n, i in enumerate(self.items) if isinstance(i, Pick) and i.shape]

    @property
    def points(self) -> list[int]:
        """Those with a single spot."""
        return [n for n, i in enumerate(self.items) if isinstance(i, Pick) and not i.shape]

    @property
    def num_operands(self) -> int:
        return sum(_is_computed(i) for i in self.items)

    def shape(self) -> tuple[int, ...]:
        """The shape of what is there."""
        sizes = [i.size for i in self.items if isinstance(i, Stretch)]
        common = np.broadcast_shapes(*(self.items[n].shape for n in self.arrays)) if self.arrays else ()  # type: ignore[union-attr]
        return (*sizes[: self.block], *common, *sizes[self.block :])


def _is_computed(item: Stretch | Pick) -> bool:
    return (item.start if isinstance(item, Stretch) else item.at) is None


# --- from users' indices ----------------------------------------------------------------------------------------------


def parse(index: Any, shape: Sequence[int]) -> tuple[RefIndex | None, list[Any]]:
    """The meaning of an index of an array of ``shape``, and its operands; None if it is all of it.

    Raises:
      ValueError: it has too many entries, is out of bounds, or goes backwards.
      TypeError: an entry is neither an integer, a slice nor an array of integers.
    """
    entries = _all_entries(index if isinstance(index, tuple) else (index,), shape)
    operands: list[Any] = []
    items = tuple([_item(e, n, operands) for e, n in zip(entries, shape, strict=True)])
    if all(isinstance(i, Stretch) and i == Stretch(0, n) for i, n in zip(items, shape, strict=True)):
        return None, []
    return RefIndex(items, _block(items)), operands


def _all_entries(index: tuple[Any, ...], shape: Sequence[int]) -> list[Any]:
    """One entry for each dimension: masks taken apart, the ellipsis filled."""
    entries: list[Any] = []
    for e in index:
        entries += _positions_of(e) if _is_mask(e) else [e]
    dots = [n for n, e in enumerate(entries) if e is Ellipsis]
    if len(dots) > 1:
        raise ValueError("Only one ellipsis is supported.")
    missing = len(shape) - (len(entries) - len(dots))
    if missing < 0:
        raise ValueError(f"`indices` must not be longer than `shape`: indices={index}, shape={tuple(shape)}")
    at = dots[0] if dots else len(entries)
    return [*entries[:at], *[slice(None)] * missing, *entries[at + 1 :]]


def _is_mask(e: Any) -> bool:
    return isinstance(e, (bool, np.bool_)) or getattr(e, "dtype", None) == np.dtype(bool)


def _positions_of(mask: Any) -> list[Any]:
    if isinstance(mask, Tracer):
        raise errors.NonConcreteBooleanIndexError(f"Array boolean indices must be concrete; got {mask.aval}")
    return [p.astype(np.int32) for p in np.nonzero(np.asarray(mask))]


def _item(e: Any, size: int, operands: list[Any]) -> Stretch | Pick:
    if isinstance(e, slice):
        return _stretch(e, size)
    if isinstance(e, Slice):
        return _dynamic_stretch(e, operands)
    if e is None:
        raise IndexError("None can't stand in an index of a reference: read it first, as in `ref[...][None]`.")
    if isinstance(e, (int, np.integer)):
        return Pick(_in_bounds(int(e), size))
    x = np.asarray(e) if isinstance(e, (list, tuple)) else e
    aval = aval_of(x)
    if not dtypes.is_integer(aval.dtype):
        raise TypeError(f"Indexer must have integer or boolean type, got indexer with type {aval.dtype}")
    operands.append(x)
    return Pick(None, aval.shape)


def _in_bounds(at: int, size: int) -> int:
    if not -size <= at < size:
        raise ValueError(f"Out of bound indexer: idx={at}, dim={size}.")
    return at % size


def _stretch(e: slice, size: int) -> Stretch:
    start, stop, step = e.indices(size)
    if step < 1:
        raise ValueError(f"slice must have a step >= 1 (found: {step})")
    return Stretch(start, len(range(start, stop, step)), step) if stop > start else Stretch(0, 0)


def _dynamic_stretch(e: Slice, operands: list[Any]) -> Stretch:
    if isinstance(e.start, (int, np.integer)):
        return Stretch(int(e.start), e.size, e.stride)
    operands.append(e.start)
    return Stretch(None, e.size, e.stride)


def _block(items: Sequence[Stretch | Pick]) -> int:
    """As in NumPy: in their place if all spots stand side by side, else in front."""
    spots = [n for n, i in enumerate(items) if isinstance(i, Pick)]
    if not any(isinstance(i, Pick) and i.shape for i in items) or spots[-1] - spots[0] != len(spots) - 1:
        return 0
    return spots[0]


# --- what is there ----------------------------------------------------------------------------------------------------


class _Box:
    """The part of an array that an index touches, whole in dimensions where spots are arrays."""

    def __init__(self, x: Any, index: RefIndex, operands: Sequence[Any]) -> None:
        self.x = x
        self.index = index
        given = iter(operands)
        self.full = aval_of(x).shape
        self.starts: list[Any] = []
        self.sizes: list[int] = []
        self.steps: list[int] = []
        self.positions: list[Any] = []
        for item, size in zip(index.items, self.full, strict=True):
            self._take(item, size, given)

    def _take(self, item: Stretch | Pick, size: int, given: Iterator[Any]) -> None:
        if isinstance(item, Pick) and item.shape:
            self.positions.append(_wrapped(next(given), size))
            start, extent, step = 0, size, 1
        elif isinstance(item, Pick):
            start, extent, step = _wrapped(next(given), size) if item.at is None else item.at, 1, 1
        else:
            start, extent, step = next(given) if item.start is None else item.start, item.extent, item.step
        self.starts.append(start)
        self.sizes.append(extent)
        self.steps.append(step)

    @property
    def is_whole(self) -> bool:
        return tuple(self.sizes) == self.full

    @property
    def is_strided(self) -> bool:
        return any(s != 1 for s in self.steps)

    def cut(self) -> Any:
        """The part of the array."""
        if self.is_whole:
            return self.x
        if isinstance(self.x, Tracer) and all(isinstance(s, int) for s in self.starts):
            return static_slice(self.x, self.starts, [s + n for s, n in zip(self.starts, self.sizes, strict=True)])
        # of arrays that are there, one program for all places
        return dynamic_slice(self.x, self.starts, self.sizes, allow_negative_indices=False)

    def thinned(self, cut: Any) -> Any:
        """Every ``step``-th element of the part, without the dimensions of points."""
        if self.is_strided:
            cut = static_slice(cut, [0] * len(self.sizes), self.sizes, self.steps)
        return squeeze(cut, self.index.points) if self.index.points else cut

    def replaced(self, cut: Any, new: Any) -> Any:
        """The array whose part, thinned, is ``new``."""
        new = expand_dims(new, self.index.points) if self.index.points else new
        if self.is_strided:
            spread = [(0, 0, s - 1) for s in self.steps]
            hit = pad(np.ones(np.shape(new), bool), np.False_, spread)
            new = select_n(hit, cut, pad(new, np.zeros((), aval_of(new).dtype)[()], spread))
        if self.is_whole:
            return new
        return dynamic_update_slice(self.x, new, self.starts, allow_negative_indices=False)

    def spread(self) -> tuple[Any, tuple[int, ...], tuple[int, ...]]:
        """The positions in dimensions whose spots are arrays as vectors; which dimensions of the thinned part these
        are; which dimensions of what the index gives are the others."""
        left = [n for n in range(len(self.full)) if n not in self.index.points]
        dims = tuple([left.index(n) for n in self.index.arrays])
        common = np.broadcast_shapes(*map(np.shape, self.positions))
        columns = [_column(p, common) for p in self.positions]
        rest, block = len(left) - len(dims), self.index.block
        others = tuple(n if n < block else n + len(common) for n in range(rest))
        return concatenate(columns, len(common)) if len(columns) > 1 else columns[0], dims, others


def _column(positions: Any, common: tuple[int, ...]) -> Any:
    ndim = np.ndim(positions)
    wide = broadcast_in_dim(positions, common, tuple(range(len(common) - ndim, len(common))))
    return reshape(wide, (*common, 1))


def _wrapped(positions: Any, size: int) -> Any:
    """int32, negative ones from the end."""
    positions = convert(positions, _INT32)
    return select_n(lt(positions, np.int32(0)), positions, add(positions, np.int32(size)))


def read(x: Any, index: RefIndex, operands: Sequence[Any]) -> Any:
    """What stands in ``x`` at the index."""
    if 0 in index.shape():
        return np.zeros(index.shape(), aval_of(x).dtype)
    box = _Box(x, index, operands)
    part = box.thinned(box.cut())
    if not index.arrays:
        return part
    positions, dims, others = box.spread()
    sizes = tuple([1 if n in dims else s for n, s in enumerate(np.shape(part))])
    return gather(part, positions, GatherDimensionNumbers(others, dims, dims), sizes, mode="clip")


def changed(x: Any, index: RefIndex, operands: Sequence[Any], new: Any, adds: bool = False) -> Any:
    """``x`` with ``new`` in place of what stands at the index, or added to it; a place out of bounds is left alone."""
    if 0 in index.shape():
        return x
    box = _Box(x, index, operands)
    cut = box.cut()
    part = box.thinned(cut)
    if index.arrays:
        positions, dims, others = box.spread()
        write = scatter_add if adds else scatter
        new = write(part, positions, new, ScatterDimensionNumbers(others, dims, dims))
    elif adds:
        new = add(part, new)
    return box.replaced(cut, new)


# --- several, one after the other: ``ref.at[first][second]`` --------------------------------------------------------

Indices = tuple[RefIndex, ...]


def _first(indices: Indices, operands: Sequence[Any]) -> tuple[RefIndex, Sequence[Any], Indices, Sequence[Any]]:
    n = indices[0].num_operands
    return indices[0], operands[:n], indices[1:], operands[n:]


def read_all(x: Any, indices: Indices, operands: Sequence[Any]) -> Any:
    """``x[first][second]...``"""
    while indices:
        index, own, indices, operands = _first(indices, operands)
        x = read(x, index, own)
    return x


def changed_all(x: Any, indices: Indices, operands: Sequence[Any], new: Any, adds: bool = False) -> Any:
    """``x`` with what is at ``x[first][second]...`` replaced, or added to."""
    if not indices:
        return add(x, new) if adds else new
    index, own, rest, others = _first(indices, operands)
    if rest:
        return changed(x, index, own, changed_all(read(x, index, own), rest, others, new, adds))
    return changed(x, index, own, new, adds)


def shape_at(shape: tuple[int, ...], indices: Indices) -> tuple[int, ...]:
    """The shape of what is there."""
    return indices[-1].shape() if indices else shape


# --- as text ----------------------------------------------------------------------------------------------------------


def text_of(shape: tuple[int, ...], indices: Indices, names: Sequence[str]) -> str:
    """``[...]``, ``[0,:,i:i+2]``, as in JAX."""
    if not indices:
        return "[...]"
    given, text = iter(names), ""
    for index in indices:
        text += f"[{','.join([_item_text(i, n, given) for i, n in zip(index.items, shape, strict=True)])}]"
        shape = index.shape()
    return text


def _item_text(item: Stretch | Pick, size: int, names: Iterator[str]) -> str:
    if isinstance(item, Pick):
        return next(names) if item.at is None else str(item.at)
    if item.start is None:
        name = next(names)
        return f"{name}:{name}+{item.size}"
    stop = item.start + item.extent
    step = "" if item.step == 1 else f":{item.step}"
    return f"{item.start or ''}:{'' if stop == size else stop}{step}"
