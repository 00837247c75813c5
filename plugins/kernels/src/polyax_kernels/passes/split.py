"""Splitting reductions: one large fold with few results becomes two kernels, so that all threads have work.

How many chunks there are depends on shapes and on the device's limits alone, so that results repeat bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from polyax.ir.aval import ShapedArray
from polyax_kernels.ir.dependences import bodies, inits
from polyax_kernels.ir.expr import PICKS, Axis, Expr, fold, folds_of, index, load, op, points, postorder, rewrite
from polyax_kernels.ir.graph import Graph, KernelNode, Node, own_point, pure_node
from polyax_kernels.ir.limits import Limits
from polyax_kernels.ir.strides import steps_across, stride
from polyax_kernels.passes.for_emission import offset

FEWEST = 4
"""Where there isn't room for as many chunks, all threads have work already."""
COLUMNS = 32
"""Neighbours on the grid that a thread which is alone computes together where those in the fold lie across; of more,
threads take some each."""
RESIDENT = 2048
"""Threads of a compute unit that together hide how long memory takes."""
PAGE, LONG, LARGE = 1 << 12, 1 << 8, 1 << 20
"""Bytes within which a processor fetches ahead, and of rows that are worth a result; elements that no cache holds."""
WORK = 16
"""Elements that are worth a thread of a group: it reads them one after the other."""


def split_reductions(graph: Graph, limits: Limits) -> Graph:
    """The graph with every fold that is worth it cut into chunks."""
    if not any(_cuts(graph, node, limits) for node in graph.nodes):
        return graph
    graph = graph.with_nodes(graph.nodes)
    graph.avals = list(graph.avals)
    nodes: list[Node] = []
    for node in graph.nodes:
        found = _cuts(graph, node, limits)
        if found and isinstance(node, KernelNode):
            nodes += _split(graph, node, found)
        else:
            nodes.append(node)
    graph.nodes = nodes
    return graph


class Chunks(NamedTuple):
    """The axis of a fold that is cut, and into how many chunks."""

    axis: Axis
    number: int


def _cuts(graph: Graph, node: Node, limits: Limits) -> dict[Expr, Chunks]:
    """The folds of ``node`` that are worth it; those that hold others are left alone, and empty grids have none."""
    if not isinstance(node, KernelNode) or not node.folds or not node.pure or node.stacked or not points(node.grid):
        return {}
    outer = [x for x in folds_of(*map(node.body, node.outs)) if not folds_of(*x.args)]
    found = {x: cut(x, node.grid, limits, graph.avals) for x in outer}
    return {x: c for x, c in found.items() if c is not None}


def cut(x: Expr, grid: Sequence[Axis], limits: Limits, avals: Sequence[ShapedArray]) -> Chunks | None:
    """How the fold ``x`` at each point of ``grid`` is cut, if it is; ``avals`` are those of what it loads."""
    if x.attr.combine in PICKS and limits.group == 1:
        return None  # a processor finds them as fast as memory gives
    most, least = _room(limits, crosses := _crosses(x, grid, avals))
    together = points(grid[-1:]) if crosses and limits.group == 1 else 1
    together = together if together < COLUMNS else 1
    room, wanted = most * together // points(grid), points(x.attr.axes) * together // least
    if room < FEWEST or wanted < 2:
        return _in_order(x, grid, avals) if limits.group == 1 else None
    axis = next(
        (a for a in x.attr.axes if points([a]) >= min(wanted, room)), max(x.attr.axes, key=lambda a: points([a]))
    )
    n = _even(wanted, min(room, points([axis])), points([axis]))
    return Chunks(axis, n) if n > 1 else None


def _in_order(x: Expr, grid: Sequence[Axis], avals: Sequence[ShapedArray]) -> Chunks | None:
    """Each step along the first axis of a fold as a chunk, if it leaps over the grid from one short row in memory to
    the next: so what is large is read in order."""
    first, *inner = x.attr.axes
    loads = [y for y in postorder(*x.args) if y.kind == "load" and len(y.args) == len(avals[y.attr.slot].shape)]
    if not inner or not grid or not loads or x.attr.combine in PICKS or points([*x.attr.axes, *grid]) < LARGE:
        return None
    row = points(inner)
    for y in loads:
        at = offset(y.args, avals[y.attr.slot].shape)
        along, over, within = (stride(at, axis) or 0 for axis in (first, grid[-1], inner[-1]))
        if not (row <= over < along and within == 1 and LONG <= row * y.dtype.itemsize < PAGE):
            return None
    return Chunks(first, points([first]))


def _room(limits: Limits, alone: bool) -> tuple[int, int]:
    """How many chunks fill the device, and the least number of elements that is worth one: where groups share rows, a
    chunk is a group's work, or, if its elements don't lie side by side, the work of one thread ``alone``."""
    if limits.group == 1:
        return limits.split_chunks, limits.split_elements
    share = 1 if alone else limits.group
    return max(limits.split_chunks, limits.units * RESIDENT // share), WORK * share


def _crosses(x: Expr, grid: Sequence[Axis], avals: Sequence[ShapedArray]) -> bool:
    """Whether neighbours on the grid are neighbours in memory, and those in the fold aren't."""
    loads = [y for y in postorder(*x.args) if y.kind == "load" and grid]
    shapes = [avals[y.attr.slot].shape for y in loads]
    return any(
        steps_across(offset(y.args[: len(s)], s), x.attr.axes[-1], grid[-1]) for y, s in zip(loads, shapes, strict=True)
    )


def _even(wanted: int, most: int, extent: int) -> int:
    """Chunks that leave nothing, or little: what they leave is a second loop over all that the fold reads."""
    n = min(wanted, most)
    return min((*range(n, min(2 * wanted, most) + 1), *range(n, n - n // 4, -1)), key=lambda m: extent % m, default=n)


class _Part:
    """The kernel that computes the chunks of all folds over the same axes: it reads what they share once."""

    def __init__(self, node: KernelNode, axes: tuple[Axis, ...], cut: Chunks) -> None:
        self.axes, self.cut = axes, cut
        assert isinstance(cut.axis.extent, int)
        self.size = cut.axis.extent // cut.number
        self.chunk, self.within = Axis(cut.number, "chunk"), Axis(self.size, cut.axis.name)
        self.grid = self.chunk, *node.grid
        self.bodies: dict[int, Expr] = {}
        self.values: dict[tuple[Expr, ...], list[int]] = {}

    def add(self, graph: Graph, x: Expr) -> list[int]:
        """The values that hold the chunks of the carries of the fold ``x``."""
        if x.args not in self.values:
            start = index(self.chunk) * self.size
            place = start if self.size == 1 else start + index(self.within)
            moved = tuple([_moved(b, self.cut.axis, place) for b in bodies(x)])
            self.values[x.args] = [self._value(graph, x, moved, n) for n in range(len(moved))]
        return self.values[x.args]

    def _value(self, graph: Graph, x: Expr, moved: tuple[Expr, ...], n: int) -> int:
        shape = tuple([a.extent for a in self.grid if isinstance(a.extent, int)])
        graph.avals.append(ShapedArray(shape, moved[n].dtype))
        value = len(graph.avals) - 1
        self.bodies[value] = fold(x.attr.combine, self.along(self.within), inits(x), moved, n)
        return value

    def along(self, axis: Axis) -> tuple[Axis, ...]:
        """The fold's axes with ``axis`` in place of the one that is cut, or without it where it has one step."""
        rest = [axis if a is self.cut.axis else a for a in self.axes]
        return tuple([a for a in rest if a is not axis or axis.extent != 1 or len(rest) == 1])


def _split(graph: Graph, node: KernelNode, cuts: dict[Expr, Chunks]) -> list[Node]:
    """The kernels that compute chunks of the large folds, and the kernel that combines them."""
    parts: dict[tuple[tuple[Axis, ...], Chunks], _Part] = {}

    def rule(x: Expr) -> Expr | None:
        if x not in cuts:
            return None
        key = x.attr.axes, cuts[x]
        if key not in parts:
            parts[key] = _Part(node, *key)
        return _chunked(graph, node, x, parts[key])

    memo: dict[Expr, Expr] = {}
    changed = {v: rewrite(node.body(v), rule, memo) for v in node.outs}
    made = [pure_node(p.grid, own_point(p.grid), p.bodies, node.primitives) for p in parts.values()]
    return [*made, pure_node(node.grid, own_point(node.grid), changed, node.primitives)]


def _chunked(graph: Graph, node: KernelNode, x: Expr, part: _Part) -> Expr:
    """The fold as a fold over chunks that ``part`` computes, and over what they leave."""
    name, (axis, n) = x.attr.combine, part.cut
    again = Axis(n, "chunk")
    at = index(again), *own_point(node.grid)
    chunks = tuple([load(v, graph.avals[v].dtype, at) for v in part.add(graph, x)])
    totals = [fold(name, (again,), inits(x), chunks, which) for which in range(len(chunks))]
    assert isinstance(axis.extent, int)
    if part.size * n == axis.extent:
        return totals[x.attr.which]
    rest = Axis(axis.extent - part.size * n, axis.name)
    moved = tuple([_moved(b, axis, index(rest) + part.size * n) for b in bodies(x)])
    if name in PICKS:  # of equal values the first, so what is left comes last
        return fold(name, part.along(rest), tuple(totals), moved, x.attr.which)
    return op(name, totals[0], fold(name, part.along(rest), inits(x), moved))


def _moved(body: Expr, axis: Axis, to: Expr) -> Expr:
    at = index(axis)
    return rewrite(body, lambda x: to if x is at else None)
