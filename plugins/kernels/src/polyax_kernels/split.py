"""Splitting reductions: one large fold with few results becomes two kernels, so that all threads have work.

How many chunks there are depends on shapes alone, so that results repeat bit for bit.
"""

from __future__ import annotations

from polyax.ir.aval import ShapedArray
from polyax_kernels.expr import Axis, Expr, fold, index, load, op, postorder, rewrite
from polyax_kernels.graph import Graph, KernelNode, Node, own_point, points, pure_node
from polyax_kernels.limits import Limits


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
    if x.kind != "fold" or x.attr.combine in ("argmax", "argmin"):
        return 1
    extent = x.attr.axes[0].extent
    wanted = points(x.attr.axes) // limits.split_elements
    return min(wanted, limits.split_chunks // grid, extent)


def _split(graph: Graph, node: KernelNode, limits: Limits) -> list[Node]:
    """A kernel per large fold that computes its chunks, and the kernel that combines them."""
    parts: list[Node] = []
    grid = points(node.grid)

    def rule(x: Expr) -> Expr | None:
        if x.kind != "fold" or (n := chunks(x, grid, limits)) < 2 or _nested(x):
            return None
        return _chunked(graph, node, x, n, parts)

    memo: dict[Expr, Expr] = {}
    bodies = {v: rewrite(node.body(v), rule, memo) for v in node.outs}
    return [*parts, pure_node(node.grid, own_point(node.grid), bodies, node.primitives)]


def _nested(x: Expr) -> bool:
    """Whether the fold holds another one; those are left alone."""
    return any(a.kind == "fold" for a in postorder(*x.args))


def _chunked(graph: Graph, node: KernelNode, x: Expr, n: int, parts: list[Node]) -> Expr:
    """The fold as a fold over chunks that another kernel computes, and over what they leave."""
    outer, *inner = x.attr.axes
    (init, body), name = x.args, x.attr.combine
    size = outer.extent // n
    chunk, within = Axis(n, "chunk"), Axis(size, outer.name)
    start = index(chunk) * size
    value = fold(name, (within, *inner), (init,), (_moved(body, outer, start + index(within)),))
    shape = (n, *[a.extent for a in node.grid if isinstance(a.extent, int)])
    graph.avals.append(ShapedArray(shape, x.dtype))
    partial = len(graph.avals) - 1
    axes = (chunk, *node.grid)
    parts.append(pure_node(axes, own_point(axes), {partial: value}, node.primitives))
    again = Axis(n, "chunk")
    total = fold(name, (again,), (init,), (load(partial, x.dtype, (index(again), *own_point(node.grid))),))
    if size * n == outer.extent:
        return total
    rest = Axis(outer.extent - size * n, outer.name)
    left = fold(name, (rest, *inner), (init,), (_moved(body, outer, index(rest) + size * n),))
    return op(name, total, left)


def _moved(body: Expr, axis: Axis, to: Expr) -> Expr:
    at = index(axis)
    return rewrite(body, lambda x: to if x is at else None)
