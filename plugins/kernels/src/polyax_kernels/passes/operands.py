"""Operands of products in an order in which libraries step through them: kernels copy them where they lie otherwise.

A library's native function reads operands where they lie. A kernel is as native as that, can take in what makes the
operand, and moves memory by squares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeGuard

from polyax.ir.aval import ShapedArray
from polyax_kernels.ir.expr import Axis, load
from polyax_kernels.ir.graph import CallNode, Graph, Node, own_point, pure_node
from polyax_kernels.ir.limits import Limits
from polyax_kernels.ir.products import sides, taken


def order_operands(graph: Graph, limits: Limits) -> Graph:
    """The graph with copies before products that no native function computes otherwise."""
    if not any(_needs_copies(node, graph, limits) for node in graph.nodes):
        return graph
    graph = replace(graph, avals=list(graph.avals))
    nodes: list[Node] = []
    for node in graph.nodes:
        nodes += _ordered(graph, node) if _needs_copies(node, graph, limits) else [node]
    return graph.with_nodes(nodes)


def _needs_copies(node: Node, graph: Graph, limits: Limits) -> TypeGuard[CallNode]:
    """Whether only Python can run the product."""
    if not isinstance(node, CallNode) or node.primitive.name != "dot_general" or node.lowering.native is None:
        return False
    args, outs = graph.types(node)
    known = all(graph.avals[v].size and graph.avals[v].dtype in limits.dtypes for v in node.inputs)
    return known and node.lowering.native(args, outs, node.params) is None


def _ordered(graph: Graph, node: CallNode) -> list[Node]:
    """The product, behind copies of its operands."""
    (args, outs), inputs, made = graph.types(node), [*node.inputs], list[Node]()
    types, (contracting, batch) = [*args], ([*dims] for dims in node.params["dimension_numbers"])
    for n, side in enumerate(sides(args, node.params)):
        _, order = taken(n, side, args[n], node.params)
        if order is not None:
            made.append(_copy(graph, node, inputs[n], order))
            inputs[n], types[n] = made[-1].outs[0], _reordered(args[n], order)
            contracting[n], batch[n] = ([order.index(d) for d in dims[n]] for dims in (contracting, batch))
    params = node.params | {"dimension_numbers": tuple(tuple(map(tuple, dims)) for dims in (contracting, batch))}
    return [*made, replace(node, inputs=tuple(inputs), params=params, seen=node.seen and (tuple(types), outs))]


def _reordered(aval: ShapedArray, order: Sequence[int]) -> ShapedArray:
    return ShapedArray(tuple([aval.shape[d] for d in order]), aval.dtype)


def _copy(graph: Graph, node: CallNode, value: int, order: Sequence[int]) -> Node:
    """The dimensions of a value in another order; the words of complex numbers stay together."""
    aval = graph.avals[value]
    order = (*order, *range(len(order), len(aval.shape)))
    graph.avals.append(_reordered(aval, order))
    grid = tuple([Axis(extent, f"i{d}") for d, extent in enumerate(graph.avals[-1].shape)])
    point = own_point(grid)
    source = load(value, aval.dtype, tuple([point[order.index(d)] for d in range(len(order))]))
    return pure_node(grid, point, {len(graph.avals) - 1: source}, node.primitives)
