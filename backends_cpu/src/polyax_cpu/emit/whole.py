"""Kernels on a few numbers as straight code: whole arrays are registers, and all points of a stage lanes of vectors.

``for i: for j: s = sum_k x[i, k] * x[j, k]; y[i, j] = exp(s)`` over rows of three elements fills no vector, and an
array of which a loop reads an element after the other has to be in memory. Here an array is one vector, read once and
written once; what points read of it are shuffles whose places are known. So what a function keeps in locals between two
kernels, or from one turn of a loop to the next, stays in registers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from math import prod
from typing import Any

import numpy as np

from polyax_cpu.emit.lanes import ACCUMULATORS
from polyax_cpu.llvm import IrValue, size_of
from polyax_cpu.processors import host
from polyax_kernels.emit.emitter import Emitter
from polyax_kernels.ir import scalars
from polyax_kernels.ir.expr import PICKS, Axis, Expr, consing, folds_of, postorder
from polyax_kernels.ir.kernel import Kernel, Operand, Stage, Store, kernel_roots, store_roots
from polyax_kernels.passes.for_emission import expand, flatten, widen
from polyax_kernels.passes.straight import NODES, ONE_BY_ONE

LANES = 64
"""Of the longest vectors, which are eight registers at most."""
ORDERED = 15
"""Elements up to which a sum has one order on all processors."""
PLACES = frozenset({"index", "const", "op", "cast"})
"""What the numbers of elements are made of, if they are known."""
WHOLE = "iub"
"""Of these types they are."""
Value = IrValue | np.ndarray
"""The value at each point; numbers of elements, and conditions on them, are known."""
Combine = Callable[[IrValue, IrValue], IrValue]


def suits(kernel: Kernel) -> bool:
    """Whether all that the kernel reads and writes is known by its number, and fits into registers."""
    axes = [*kernel.grid, *(axis for stage in kernel.stages for axis in stage.axes)]
    roots = kernel_roots(kernel)
    axes += [axis for x in folds_of(*roots) for axis in x.attr.axes]
    known = all(isinstance(axis.extent, int) and axis.extent > 0 for axis in axes)
    if kernel.ordered or not known or not all(_is_small(kernel, operand) for operand in kernel.operands):
        return False
    points = max(_points((*kernel.grid, *stage.axes)) for stage in kernel.stages)
    if points > LANES:
        return False
    stores = [store for stage in kernel.stages for store in stage.stores]
    places = [i for store in stores for i in store.indices]
    nodes = postorder(*roots)
    places += [i for x in nodes if x.kind == "load" for i in x.args[: len(x.args) - 2 * x.attr.masked]]
    if any(store.combine for store in stores) or not all(map(_is_known, postorder(*places))):
        return False
    return all(map(_at_once, kernel.stages)) and all(_in_order(kernel, x, points) for x in nodes if x.kind == "fold")


def _is_known(x: Expr) -> bool:
    return x.kind in PLACES and x.dtype.kind in WHOLE


def _at_once(stage: Stage) -> bool:
    """Whether no turn of a stage's loops goes on from what another one stored: each reads what it writes, if any."""
    written = {store.slot: store.indices for store in stage.stores}
    nodes = postorder(*(x for store in stage.stores for x in store_roots(store)))
    loads = [x for x in nodes if x.kind == "load" and x.attr.slot in written]
    return all(x.args[: len(written[x.attr.slot])] == written[x.attr.slot] for x in loads)


def _points(axes: Iterable[Axis]) -> int:
    return prod(axis.extent for axis in axes if isinstance(axis.extent, int))


def _is_small(kernel: Kernel, operand: Operand) -> bool:
    copies = _points(kernel.grid) if operand.role == "local" else 1
    known = [n for n in operand.shape if isinstance(n, int)]
    return len(known) == len(operand.shape) and 0 < prod(known) * copies <= LANES


def _in_order(kernel: Kernel, fold: Expr, points: int) -> bool:
    """Whether a fold can be written out, in the order in which others take its elements."""
    if fold.attr.combine in PICKS or len(fold.args) != 2:
        return False
    count, several = _points(fold.attr.axes), len(fold.attr.axes) > 1
    points = points if _depends(kernel, fold) else 1
    together = _lanes(count) * _lanes(points) <= LANES
    if not together and count * len(postorder(fold.args[1])) > NODES:
        return False
    summed = fold.dtype.kind == "f" and fold.attr.combine in ("add", "mul")
    return count <= (ORDERED if summed and not (together and host().has_masks and not several) else LANES)


def _depends(kernel: Kernel, fold: Expr) -> bool:
    """Whether a fold differs between the points around it, as what these keep for themselves does."""
    nodes = postorder(fold)
    bound = {axis for x in nodes if x.kind == "fold" for axis in x.attr.axes}
    if any(x.kind == "load" and kernel.operands[x.attr.slot].role == "local" for x in nodes):
        return True
    return any(x.kind == "index" and x.attr not in bound for x in nodes)


def write_whole(kernel: Kernel, emitter: Emitter[IrValue], pointers: Sequence[IrValue]) -> None:
    """Writes the kernel, which ``suits``. ``emitter`` writes its operations, which are those of any number of lanes."""
    with consing():
        _Writer(expand(widen(flatten(kernel)), emitter.supports), emitter, pointers).write()


def _lanes(count: int) -> int:
    return 1 << (count - 1).bit_length()


@dataclass
class Space:
    """Points that are computed together: a lane for each, and some for none."""

    places: Mapping[Axis, np.ndarray]
    """The index of each axis at each lane."""
    holds: np.ndarray
    """Which lanes are points."""
    outer: Space | None = None
    """The points for each of which a fold has these."""
    own: frozenset[Axis] = frozenset()
    """The axes of that fold."""
    known: dict[Expr, Value] = field(default_factory=dict)

    @property
    def lanes(self) -> int:
        return len(self.holds)


def _space(axes: Sequence[Axis]) -> Space:
    count, extents = _points(axes), [int(axis.extent) for axis in axes]  # pyright: ignore[reportArgumentType]
    at = np.minimum(np.arange(_lanes(count)), count - 1)
    places = np.unravel_index(at, extents) if extents else ()
    return Space(dict(zip(axes, places, strict=True)), np.arange(_lanes(count)) < count)


def _within(space: Space, fold: Expr, turns: Sequence[int]) -> Space:
    """Some turns of a fold for all points, one behind the other: those of turn ``n`` are ``n`` times as many lanes
    further on as the points have."""
    axes = fold.attr.axes
    numbers = np.asarray([*turns, *[turns[-1]] * (_lanes(len(turns)) - len(turns))])
    indices = np.unravel_index(np.repeat(numbers, space.lanes), [axis.extent for axis in axes])
    tiled = {axis: np.tile(x, len(numbers)) for axis, x in space.places.items()}
    return Space(
        tiled | dict(zip(axes, indices, strict=True)),
        np.tile(space.holds, len(numbers)) & (np.arange(len(numbers) * space.lanes) < len(turns) * space.lanes),
        space,
        frozenset(axes),
    )


class _Writer:
    def __init__(self, kernel: Kernel, emitter: Emitter[IrValue], pointers: Sequence[IrValue]) -> None:
        self.kernel = kernel
        self.emitter = emitter
        self.b = pointers[0].b
        arguments = iter(pointers)
        self.memory = {n: next(arguments) for n, o in enumerate(kernel.operands) if o.role != "local"}
        self.arrays: dict[int, IrValue] = {}
        """The elements of operands, as they are now."""
        self.axes = _axes_of(kernel)

    def write(self) -> None:
        for stage in self.kernel.stages:
            self.stage(stage)
        written = dict.fromkeys(store.slot for stage in self.kernel.stages for store in stage.stores)
        for slot in written:
            if slot in self.memory:
                self.b.store_lanes(self.kept(slot), self.memory[slot], None)

    def stage(self, stage: Stage) -> None:
        """All values are computed before the first is stored."""
        space = _space((*self.kernel.grid, *stage.axes))
        found = [[self.value(x, space) for x in store_roots(store)] for store in stage.stores]
        for store, values in zip(stage.stores, found, strict=True):
            self.put(store, space, *values)

    # --- arrays ---

    def size(self, slot: int) -> int:
        (size,) = self.kernel.operands[slot].shape
        assert isinstance(size, int)
        return size * (1 if slot in self.memory else _points(self.kernel.grid))

    def array(self, slot: int) -> IrValue:
        """The elements of an operand, and lanes for none."""
        if slot not in self.arrays:
            self.arrays[slot] = self.read(slot)
        return self.arrays[slot]

    def read(self, slot: int) -> IrValue:
        dtype, size = self.kernel.operands[slot].dtype, self.size(slot)
        zero = self.emitter.const(0, dtype)
        if slot not in self.memory:
            return self.b.splat(zero, _lanes(size))
        kept = f"i{8 * dtype.itemsize}"  # read as they are written, LLVM would put parts together before they are made
        whole = self.b.load_lanes(self.memory[slot], kept, size, None, self.b.const(0, kept))
        whole = self.b.part(whole, 0, _lanes(size))
        if dtype.kind == "b":
            return whole.compare("!=", 0)
        return whole if kept == zero.type else self.b.convert("bitcast", whole, zero.type)

    def kept(self, slot: int) -> IrValue:
        """An operand as memory has it."""
        whole = self.b.part(self.arrays[slot], 0, self.size(slot))
        return self.b.convert("zext", whole, "i8") if self.kernel.operands[slot].dtype.kind == "b" else whole

    def at(self, slot: int, place: Value, space: Space) -> np.ndarray:
        """The numbers of elements; what a point keeps for itself is behind that of the points before it."""
        assert isinstance(place, np.ndarray)
        if slot not in self.memory:
            (size,), extents = self.kernel.operands[slot].shape, [_points([axis]) for axis in self.kernel.grid]
            assert isinstance(size, int)
            before = np.zeros(space.lanes, np.int64)
            for axis, extent in zip(self.kernel.grid, extents, strict=True):
                before = before * extent + space.places[axis]
            place = place + before * size
        return np.clip(place, 0, self.size(slot) - 1)

    def gather(self, slot: int, place: Value, space: Space) -> IrValue:
        """The element of an operand that each point asks for."""
        return self.picked(self.array(slot), self.at(slot, place, space), space.holds)

    def picked(self, x: IrValue, places: np.ndarray, holds: np.ndarray) -> IrValue:
        if x.lanes == 1:
            return x
        first = places[holds]
        if (first == first[0]).all():
            return self.b.lane(x, int(first[0]))
        if len(places) == x.lanes and (first == np.flatnonzero(holds)).all():
            return x
        return self.b.shuffled(x, [int(n) if held else None for n, held in zip(places, holds, strict=True)])

    def put(self, store: Store, space: Space, place: Value, value: Value, mask: Value | None = None) -> None:
        slot, dtype = store.slot, store.value.dtype
        x, places = self.made(value, dtype, space), self.at(store.slot, place, space)
        holds = space.holds & mask if isinstance(mask, np.ndarray) else space.holds
        if isinstance(mask, IrValue):
            x = self.b.select(mask, x, self.gather(slot, place, space))
        source = {int(n): lane for lane, (n, held) in enumerate(zip(places, holds, strict=True)) if held}
        if not source:
            return
        size = self.size(slot)
        lanes, whole = _lanes(size), len(source) == size
        if x.lanes == 1 and whole:
            self.arrays[slot] = self.b.splat(x, lanes)
        elif whole:
            order = np.asarray([source.get(n, 0) for n in range(lanes)])
            self.arrays[slot] = self.b.splat(self.picked(x, order, np.arange(lanes) < size), lanes)
        else:
            self.arrays[slot] = self.replaced(self.array(slot), x, source)

    def replaced(self, array: IrValue, x: IrValue, source: Mapping[int, int]) -> IrValue:
        """The array with lanes of ``x`` in some places."""
        lanes = max(array.lanes, x.lanes)
        wide, new = self.b.part(array, 0, lanes), self.b.splat(x, lanes) if x.lanes == 1 else self.b.part(x, 0, lanes)
        places = [lanes + source[n] if n in source else n for n in range(array.lanes)]
        return self.b.mixed(wide, new, places)

    # --- values ---

    def made(self, x: Value, dtype: np.dtype, space: Space) -> IrValue:
        """The values of known numbers."""
        if isinstance(x, IrValue):
            return x
        some = x[space.holds]
        if (some == some[0]).all():
            return self.emitter.const(some[0], dtype)
        return self.b.numbers([int(n) for n in x], self.emitter.const(0, dtype).type)

    def value(self, root: Expr, space: Space) -> Value:
        for x in self.needed(root, space):
            if self.is_outer(x, space):
                assert space.outer is not None
                space.known[x] = _spread(self.value(x, space.outer), space)
            else:
                space.known[x] = self.computed(x, space)
        return space.known[root]

    def needed(self, root: Expr, space: Space) -> list[Expr]:
        """What isn't known yet, operands first; of a fold its start alone, and nothing of what is known outside."""
        found, stack = dict[Expr, None](), list[Any]([root])
        while stack:
            x = stack.pop()
            if x is None:
                found[stack.pop()] = None
            elif x not in found and x not in space.known:
                args = () if self.is_outer(x, space) else x.args[:1] if x.kind == "fold" else x.args
                stack += (x, None, *args[::-1])
        return list(found)

    def is_outer(self, x: Expr, space: Space) -> bool:
        """Whether a value is the same in all turns of the fold that a space is of."""
        return space.outer is not None and not self.axes[x] & space.own

    def computed(self, x: Expr, space: Space) -> Value:
        if x.kind == "fold":
            return self.fold(x, space) if self.axes[x] else self.alone(x)
        if x.kind == "index":
            return space.places[x.attr]
        args = [space.known[a] for a in x.args]
        if x.kind == "load":
            return self.load(x, space, args)
        if x.kind in PLACES and x.dtype.kind in WHOLE and all(isinstance(a, np.ndarray) for a in args):
            return self.place(x, args, space)
        return self.operation(x, [self.made(a, e.dtype, space) for a, e in zip(args, x.args, strict=True)])

    def place(self, x: Expr, args: Sequence[Any], space: Space) -> np.ndarray:
        if x.kind == "const":
            return np.full(space.lanes, x.attr, x.dtype)
        return scalars.cast(args[0], x.dtype) if x.kind == "cast" else scalars.evaluate(x.attr, *args)

    def operation(self, x: Expr, args: Sequence[IrValue]) -> IrValue:
        if x.kind == "op":
            return self.emitter.op(x.attr, x.args[-1].dtype, *args)
        if x.kind == "const":
            return self.emitter.const(x.attr, x.dtype)
        change = self.emitter.cast if x.kind == "cast" else self.emitter.bitcast
        return change(args[0], x.args[0].dtype, x.dtype)

    def load(self, x: Expr, space: Space, args: Sequence[Value]) -> IrValue:
        found = self.gather(x.attr.slot, args[0], space)
        if not x.attr.masked:
            return found
        mask, other = (self.made(a, e.dtype, space) for a, e in zip(args[1:], x.args[1:], strict=True))
        return self.b.select(mask, found, other)

    # --- folds ---

    def alone(self, x: Expr) -> IrValue:
        """A fold that is the same at all points."""
        space = _space(())
        self.value(x.args[0], space)
        return self.fold(x, space)

    def fold(self, x: Expr, space: Space) -> IrValue:
        count, combine = _points(x.attr.axes), lambda a, b: self.emitter.op(x.attr.combine, x.dtype, a, b)
        start, body = self.made(space.known[x.args[0]], x.dtype, space), x.args[1]
        halves = count >= ONE_BY_ONE and len(x.attr.axes) == 1 and x.attr.combine in ("add", "mul")
        if _lanes(count) * space.lanes <= LANES:
            turns = _within(space, x, range(count))
            values = self.b.splat(self.made(self.value(body, turns), x.dtype, turns), turns.lanes)
            if halves:
                return combine(start, self.by_lanes(values, count, space.lanes, combine))
            parts = [self.b.part(values, n * space.lanes, space.lanes) for n in range(count)]
            return reduce(combine, parts, start)
        parts = [self.value_at(body, _within(space, x, [n])) for n in range(count)]
        return combine(start, _by_pairs(parts, combine)) if halves else reduce(combine, parts, start)

    def value_at(self, body: Expr, turn: Space) -> IrValue:
        return self.made(self.value(body, turn), body.dtype, turn)

    def by_lanes(self, x: IrValue, count: int, each: int, combine: Combine) -> IrValue:
        """The first ``count`` of the parts of ``x``, which have ``each`` lanes, combined in the order of
        ``LaneLoops.fold``: by vectors, whose lanes are put together in the end, and those that fill none by halves."""
        width = host().vector_bits // (8 * size_of(x.type))
        side, at = ACCUMULATORS, 0
        while side > 1 and count < side * width:
            side //= 2
        carry: IrValue | None = None
        for lanes in (side * width, width) if host().has_masks else ():
            while count - at >= lanes:
                part = self.b.part(x, at * each, lanes * each)
                carry, at = part if carry is None else combine(_halved(carry, lanes * each, combine), part), at + lanes
        if carry is None:
            return self.by_halves(x, count, each, combine)
        carry = _halved(carry, width * each, combine)
        if count > at:
            both = combine(carry, self.b.part(x, at * each, width * each))
            carry = _first(both, carry, (count - at) * each)
        return _halved(carry, each, combine)

    def by_halves(self, x: IrValue, count: int, each: int, combine: Combine) -> IrValue:
        """The same of fewer than a vector: each part with that half of all of them further on, until one is left."""
        while count > 1:
            half = 1 << (count - 1).bit_length() - 1
            first, second = (self.b.part(x, n * each, half * each) for n in (0, half))
            x, count = _first(combine(first, second), first, (count - half) * each), half
        return x


def _halved(x: IrValue, lanes: int, combine: Combine) -> IrValue:
    while x.lanes > lanes:
        half = x.lanes // 2
        x = combine(x.b.part(x, 0, half), x.b.part(x, half, half))
    return x


def _first(x: IrValue, y: IrValue, count: int) -> IrValue:
    """The first ``count`` lanes of ``x``, then those of ``y``."""
    if count >= x.lanes:
        return x
    return x.b.mixed(x, y, [n if n < count else x.lanes + n for n in range(x.lanes)])


def _by_pairs(values: list[IrValue], combine: Combine) -> IrValue:
    """As ``by_halves``, of parts that are apart."""
    while len(values) > 1:
        half = 1 << (len(values) - 1).bit_length() - 1
        values = [combine(values[n], values[n + half]) if values[n + half :] else values[n] for n in range(half)]
    return values[0]


def _spread(x: Value, space: Space) -> Value:
    """What is known of each point, for each of its turns."""
    assert space.outer is not None
    lanes = space.outer.lanes
    if isinstance(x, np.ndarray):
        return np.tile(x, space.lanes // lanes)
    return x if x.lanes == 1 or space.lanes == lanes else x.b.shuffled(x, [n % lanes for n in range(space.lanes)])


def _axes_of(kernel: Kernel) -> dict[Expr, frozenset[Axis]]:
    """The axes whose indices each expression depends on. What a point of the grid keeps for itself is its own."""
    found: dict[Expr, frozenset[Axis]] = {}
    for x in postorder(*kernel_roots(kernel)):
        local = x.kind == "load" and kernel.operands[x.attr.slot].role == "local"
        own = frozenset((x.attr,)) if x.kind == "index" else frozenset(kernel.grid if local else ())
        bound = frozenset(x.attr.axes) if x.kind == "fold" else frozenset()
        found[x] = frozenset().union(own, *(found[a] for a in x.args)) - bound
    return found
