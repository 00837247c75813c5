"""Cuts: a kernel that asks at each point of an axis where that is becomes one of several stages, in which nothing is
asked.

``out[i, j] = x[i, j] if j < 5 else y[i, j - 5]`` compares at each point, and reads under a condition. Cut, the kernel
has two stages for a row, ``for j: out[i, j] = x[i, j]`` and ``for j: out[i, 5 + j] = y[i, j]``, which move vectors. The
grid's first axis is cut in blocks, of which most lie in one stretch. It is a rewrite of kernels: no emitter knows of
it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise, product
from math import prod
from typing import NamedTuple

from polyax_kernels.emit.blocks import Blocks, blocks_of
from polyax_kernels.ir.expr import BOOL, COMPARISONS, INT, Axis, Expr, Load, const, index, make, op, postorder, rewriter
from polyax_kernels.ir.intervals import Intervals
from polyax_kernels.ir.kernel import Kernel, Stage, Store, kernel_roots, map_stores, store_roots
from polyax_kernels.ir.strides import origin, stride


class Stretches(NamedTuple):
    """Where an axis is cut: its ends included."""

    axis: Axis
    bounds: Sequence[int]


STRETCHES = 10
"""More of them are too much code."""
SHORT = 64
"""Points of a row that hide nothing of what is asked once for it."""
OPERATIONS = 400
"""Nodes of all stages beyond which code would grow more than it gains."""
BLOCK = 4096
"""Points of a block of the first axis, which threads share, so that it can't be cut as a whole."""
_FIRST = {"lt": (0,), "ge": (0,), "le": (1,), "gt": (1,), "eq": (0, 1), "ne": (0, 1)}
"""Of a comparison of a number that grows with zero: where it changes, counted from where the number is zero."""


def crossed(kernel: Kernel) -> list[Stretches]:
    """The axes of the flat ``kernel`` that are cut: the innermost one along which something changes, and, where rows
    are short, the first as well. None if it can't be, or if it isn't worth it."""
    if len(kernel.stages) != 1 or kernel.stages[0].axes or any(s.combine for s in kernel.stages[0].stores):
        return []
    nodes = postorder(*kernel_roots(kernel))
    if any(x.kind == "fold" for x in nodes):
        return []
    cuts = [Stretches(axis, bounds) for axis in kernel.grid if (bounds := _bounds(nodes, axis))]
    found = cuts[:1] + cuts[1:][-1:] if _points(kernel.grid[1:]) < SHORT else cuts[-1:]
    return found if _is_little(found, nodes) else []


def crossed_in(stage: Stage) -> list[Stretches]:
    """The axes of a stage of a stacked kernel that are cut: all of them or the innermost one. If the stage goes on from
    what it stores, only the first is: cutting a later one changes the order."""
    nodes = postorder(*(x for store in stage.stores for x in store_roots(store)))
    if any(x.kind == "fold" for x in nodes):
        return []
    stored = {store.slot for store in stage.stores}
    goes_on = any(store.combine for store in stage.stores) or any(
        x.attr.slot in stored for x in nodes if x.kind == "load"
    )
    cuts = [Stretches(x, bounds) for x in stage.axes[: 1 if goes_on else None] if (bounds := _bounds(nodes, x))]
    return next((found for found in (cuts, cuts[-1:]) if _is_little(found, nodes)), [])


def _is_little(found: Sequence[Stretches], nodes: Sequence[Expr]) -> bool:
    stages = prod(len(x.bounds) - 1 for x in found)
    return stages <= STRETCHES and stages * len(nodes) <= OPERATIONS


def suits(kernel: Kernel) -> bool:
    """Whether something of the flat ``kernel`` is cut."""
    return bool(crossed(kernel)) or any(map(crossed_in, kernel.stages))


def _points(axes: Sequence[Axis]) -> int:
    return prod(axis.extent if isinstance(axis.extent, int) else BLOCK for axis in axes)


def _bounds(nodes: list[Expr], axis: Axis) -> list[int]:
    if not isinstance(axis.extent, int):
        return []
    places = {place for x in nodes for place in _changes(x, axis) if 0 < place < axis.extent}
    return [0, *sorted(places), axis.extent] if places else []


def _changes(x: Expr, axis: Axis) -> Iterator[int]:
    """Where the comparison ``x`` of an index that moves with ``axis`` alone changes."""
    if x.kind != "op" or x.attr not in _FIRST or x.args[0].dtype != INT or x.args[1].kind != "const":
        return
    at, bound = x.args
    start, step = origin(at), stride(at, axis)
    if start is None or not step or any(y.kind == "index" and y.attr is not axis for y in postorder(at)):
        return
    distance = bound.attr - start
    reached, passed = -(-distance // step), distance // step + 1
    yield from (passed if later == (step > 0) else reached for later in _FIRST[x.attr])


def cut(kernel: Kernel) -> tuple[Kernel, tuple[Blocks, ...]]:
    """The kernel with a stage for each stretch of the axes that ``crossed`` and ``crossed_in`` find."""
    found = crossed(kernel)
    if not found:
        cuts = [(stage.axes, stage.stores, crossed_in(stage)) for stage in kernel.stages]
        return replace(kernel, stages=tuple([x for each in cuts for x in _stages(*each, {})])), ()
    first, *rest = kernel.grid
    among = found[0].axis is first
    at = 0 if among else kernel.grid.index(found[0].axis)
    blocks = {first: blocks_of(first, max(1, BLOCK // max(_points(rest), 1)))} if among else {}
    stages = tuple(_stages(kernel.grid[at:], kernel.stages[0].stores, found, blocks))
    grid = (blocks[first].base,) if among else kernel.grid[:at]
    return replace(kernel, grid=grid, stages=stages), tuple(blocks.values())


def _stages(
    axes: Sequence[Axis], stores: Sequence[Store], found: Sequence[Stretches], blocks: Mapping[Axis, Blocks]
) -> Iterator[Stage]:
    for parts in product(*(pairwise(x.bounds) for x in found)):
        yield _stage(axes, stores, [x._replace(bounds=part) for x, part in zip(found, parts, strict=True)], blocks)


def _stage(
    axes: Sequence[Axis], stores: Sequence[Store], found: Sequence[Stretches], blocks: Mapping[Axis, Blocks]
) -> Stage:
    """What happens in a stretch of each axis; of one that is walked in blocks, in what the block has of it."""
    stores, moved = tuple(stores), dict[Axis, Axis]()
    for axis, (start, end) in found:
        stores = map_stores(stores, rewriter(_Decisions(stores, axis, start, end)))
        first, last = const(start), const(end)
        if axis in blocks:
            begin = index(blocks[axis].base)
            first, last = (op("max", op("min", x, last), first) for x in (begin, begin + index(blocks[axis].count)))
        moved[axis] = Axis(last - first if axis in blocks else end - start, axis.name)
        stores = map_stores(stores, rewriter(partial(_moved, axis, first + index(moved[axis]))))
    along = tuple([moved.get(axis, axis) for axis in axes])
    return Stage(along, tuple([_bare(store) for store in stores if not _is(store.mask, False)]))


def _moved(axis: Axis, place: Expr, x: Expr) -> Expr | None:
    return place if x.kind == "index" and x.attr is axis else None


def _bare(store: Store) -> Store:
    return replace(store, mask=None) if _is(store.mask, True) else store


def _is(x: Expr | None, value: bool) -> bool:
    return x is not None and x.kind == "const" and bool(x.attr) == value


class _Decisions:
    """What is known of conditions while an axis is between two points."""

    def __init__(self, stores: Sequence[Store], axis: Axis, start: int, end: int) -> None:
        nodes = postorder(*(x for store in stores for x in store_roots(store)))
        # the index as the kernel has it: the table that it was made in may be gone
        moving = [x for x in nodes if x.kind == "index" and x.attr is axis]
        self.lies = Intervals(dict.fromkeys(moving, (start, end - 1)))

    def __call__(self, x: Expr) -> Expr | None:
        if x.kind == "load" and x.attr.masked and x.args[-2].kind == "const":
            indices, (mask, other) = x.args[:-2], x.args[-2:]
            return make("load", x.dtype, indices, Load(x.attr.slot)) if mask.attr else other
        if x.kind != "op":
            return None
        if x.attr == "select" and x.args[0].kind == "const":
            return x.args[1] if x.args[0].attr else x.args[2]
        if x.attr in COMPARISONS and x.args[0].dtype == INT:
            least, greatest = self.lies(x)
            return const(bool(least), x.dtype) if least == greatest else None
        return _joined(*x.args) if x.attr == "and" and x.dtype == BOOL else None


def _joined(x: Expr, y: Expr) -> Expr | None:
    if _is(x, False) or _is(y, True):
        return x
    return y if _is(y, False) or _is(x, True) else None
