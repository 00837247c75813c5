"""Splitting reductions: one large fold with few results becomes two kernels, so that all threads have work.

How many chunks there are depends on shapes alone, so that results repeat bit for bit.
"""

from __future__ import annotations

from polyax.ir.aval import ShapedArray
from polyax_kernels.ir.expr import PICKS, Axis, Expr, fold, folds_of, index, load, op, rewrite
from polyax_kernels.ir.graph import Graph, KernelNode, Node, own_point, points, pure_node
from polyax_kernels.ir.limits import Limits


def split_reductions(graph: Graph, limits: Limits) -> Graph:
    """The graph with every fold that is worth it cut into chunks."""
    if not any(_worth_it(node, limits) for node in graph.nodes):
        return graph
    graph = graph.with_nodes(graph.nodes)
    graph.avals = list(graph.avals)
    nodes: list[Node] = []
    for node in graph.nodes:
        if isinstance(node, KernelNode) and _worth_it(node, limits):
            nodes += _split(graph, node, limits)
        else:
            nodes.append(node)
    graph.nodes = nodes
    return graph


def _worth_it(node: Node, limits: Limits) -> bool:
    """Empty grids have nothing to split."""
    if not isinstance(node, KernelNode) or not node.folds or not node.pure or node.stacked:
        return False
    return 0 < points(node.grid) <= limits.split_chunks // 4


def chunks(x: Expr, grid: int, limits: Limits) -> int:
    """Into how many chunks the outermost axis of a fold is cut; 1 leaves it whole."""
    if x.kind != "fold" or x.attr.combine in PICKS:
        return 1
    extent = x.attr.axes[0].extent
    wanted = points(x.attr.axes) // limits.split_elements
    most = min(limits.split_chunks // grid, extent)
    return min(wanted, most) if wanted < 2 else _even(wanted, most, extent)


def _even(wanted: int, most: int, extent: int) -> int:
    """Equal chunks if there can be: what they leave is a second loop over all that the fold reads."""
    return next((n for n in range(wanted, min(2 * wanted, most) + 1) if extent % n == 0), min(wanted, most))


class _Part:
    """The kernel that computes the chunks of all folds over the same axes: it reads what they share once."""

    def __init__(self, node: KernelNode, axes: tuple[Axis, ...], n: int) -> None:
        self.outer, *self.inner = axes
        assert isinstance(self.outer.extent, int)
        self.size = self.outer.extent // n
        self.chunk, self.within = Axis(n, "chunk"), Axis(self.size, self.outer.name)
        self.grid = self.chunk, *node.grid
        self.bodies: dict[int, Expr] = {}

    def add(self, graph: Graph, x: Expr) -> int:
        """The value that holds the chunks of the fold ``x``."""
        (init, body), start = x.args, index(self.chunk) * self.size
        graph.avals.append(ShapedArray(tuple([a.extent for a in self.grid if isinstance(a.extent, int)]), x.dtype))
        value = len(graph.avals) - 1
        moved = _moved(body, self.outer, start + index(self.within))
        self.bodies[value] = fold(x.attr.combine, (self.within, *self.inner), (init,), (moved,))
        return value


def _split(graph: Graph, node: KernelNode, limits: Limits) -> list[Node]:
    """The kernels that compute chunks of the large folds, and the kernel that combines them."""
    parts: dict[tuple[tuple[Axis, ...], int], _Part] = {}
    grid = points(node.grid)

    def rule(x: Expr) -> Expr | None:
        """Folds that hold others are left alone."""
        if x.kind != "fold" or (n := chunks(x, grid, limits)) < 2 or folds_of(*x.args):
            return None
        key = x.attr.axes, n
        if key not in parts:
            parts[key] = _Part(node, *key)
        return _chunked(graph, node, x, n, parts[key])

    memo: dict[Expr, Expr] = {}
    bodies = {v: rewrite(node.body(v), rule, memo) for v in node.outs}
    made = [pure_node(p.grid, own_point(p.grid), p.bodies, node.primitives) for p in parts.values()]
    return [*made, pure_node(node.grid, own_point(node.grid), bodies, node.primitives)]


def _chunked(graph: Graph, node: KernelNode, x: Expr, n: int, part: _Part) -> Expr:
    """The fold as a fold over chunks that ``part`` computes, and over what they leave."""
    (init, body), name, outer = x.args, x.attr.combine, part.outer
    again = Axis(n, "chunk")
    at = index(again), *own_point(node.grid)
    total = fold(name, (again,), (init,), (load(part.add(graph, x), x.dtype, at),))
    assert isinstance(outer.extent, int)
    if part.size * n == outer.extent:
        return total
    rest = Axis(outer.extent - part.size * n, outer.name)
    left = fold(name, (rest, *part.inner), (init,), (_moved(body, outer, index(rest) + part.size * n),))
    return op(name, total, left)


def _moved(body: Expr, axis: Axis, to: Expr) -> Expr:
    at = index(axis)
    return rewrite(body, lambda x: to if x is at else None)
