"""Transposes beside matrix products: libraries read and write either order, so that nothing need be moved.

Only products that are library calls are concerned; in kernels, transposes are index arithmetic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from polyax_kernels.ir.graph import CallNode, Graph, KernelNode, Node, eliminate_dead, own_point
from polyax_kernels.ir.products import sides, stored

Dims = tuple[int, ...]


def absorb_transposes(graph: Graph) -> Graph:
    """The graph with transposes of operands and results of products written into their dimension numbers."""
    if not any(_is_product(node) for node in graph.nodes):
        return graph
    graph = graph.with_nodes(_with_plain_results(graph))
    producers = graph.producers()
    return eliminate_dead(graph.with_nodes([_with_plain_operands(graph, node, producers) for node in graph.nodes]))


def _is_product(node: Node) -> bool:
    return isinstance(node, CallNode) and node.primitive.name == "dot_general"


def permutation(graph: Graph, node: Node | None) -> tuple[int, Dims] | None:
    """The value that a node transposes, and the dimension of it that each dimension of the result is.

    A slice that begins at 0 reads at the same indices, but not all of the value.
    """
    if not isinstance(node, KernelNode) or not node.pure or node.stacked or len(node.outs) != 1:
        return None
    body = node.body(node.outs[0])
    if body.kind != "load" or body.attr.masked:
        return None
    places = {i: d for d, i in enumerate(body.args)}
    found = tuple([places.get(i, -1) for i in own_point(node.grid)])
    shape, extents = graph.avals[body.attr.slot].shape, [axis.extent for axis in node.grid]
    whole = sorted(found) == list(range(len(shape))) and [shape[d] for d in found] == extents
    return (body.attr.slot, found) if whole else None


# --- operands ---------------------------------------------------------------------------------------------------------


def _with_plain_operands(graph: Graph, node: Node, producers: Mapping[int, Node]) -> Node:
    """A product of transposed arrays, as a product of the arrays."""
    if not isinstance(node, CallNode) or not _is_product(node):
        return node
    for side in (0, 1):
        node = _with_plain_operand(graph, node, side, producers.get(node.inputs[side]))
    return node


def _with_plain_operand(graph: Graph, node: CallNode, side: int, producer: Node | None) -> CallNode:
    """Unless the product would have to copy what is transposed before."""
    found = permutation(graph, producer)
    if found is None or producer is None:
        return node
    source, moved = found
    contracting, batch = node.params["dimension_numbers"]
    free = [moved[d] for d in range(len(moved)) if d not in contracting[side] and d not in batch[side]]
    if free != sorted(free):
        return node
    inputs, numbers = list(node.inputs), ([*contracting], [*batch])
    inputs[side] = source
    for dims in numbers:
        dims[side] = tuple([moved[d] for d in dims[side]])
    plain = _changed(graph, node, tuple(inputs), (tuple(numbers[0]), tuple(numbers[1])), node.outs, [producer])
    return node if _in_place(graph, node, side) and not _in_place(graph, plain, side) else plain


def _in_place(graph: Graph, node: CallNode, side: int) -> bool:
    """Whether libraries can step through an operand where it lies."""
    return stored(sides([graph.avals[v] for v in node.inputs], node.params)[side], left=side == 0) is not None


def _changed(
    graph: Graph, node: CallNode, inputs: Dims, numbers: Any, outs: Dims, absorbed: Sequence[Node]
) -> CallNode:
    """The product with other operands, if its lowering takes it; it does the work of the transposes ``absorbed``."""
    params = node.params | {"dimension_numbers": numbers}
    if node.lowering.why_not([graph.avals[v] for v in inputs], params) is not None:
        return node
    primitives = (*(p for other in absorbed for p in other.primitives), *node.primitives)
    return replace(node, inputs=inputs, params=params, outs=outs, primitives=primitives)


# --- results ----------------------------------------------------------------------------------------------------------


def _with_plain_results(graph: Graph) -> list[Node]:
    """Products that are only read transposed compute the transpose: ``(a b)' = b' a'``."""
    uses = graph.consumers()
    outputs = set(graph.outputs)
    nodes = list(graph.nodes)
    for n, node in enumerate(graph.nodes):
        if not isinstance(node, CallNode) or not _is_product(node) or node.outs[0] in outputs:
            continue
        readers = uses.get(node.outs[0], [])
        found = permutation(graph, graph.nodes[readers[0]]) if len(readers) == 1 else None
        if found is None or found[1] != _exchanged(graph, node):
            continue
        (lc, rc), (lb, rb) = node.params["dimension_numbers"]
        inputs = node.inputs[1], node.inputs[0]
        reader = graph.nodes[readers[0]]
        swapped = _changed(graph, node, inputs, ((rc, lc), (rb, lb)), reader.outs, [reader])
        if swapped is not node:
            nodes[n] = swapped
            nodes[readers[0]] = replace(node, outs=(node.outs[0],))  # dead now
    return nodes


def _exchanged(graph: Graph, node: CallNode) -> Dims:
    """The permutation that puts the rest of the right operand before that of the left one."""
    (contracting, _), (batch, _) = node.params["dimension_numbers"]
    shared, rank = len(batch), len(graph.avals[node.outs[0]].shape)
    left = len(graph.avals[node.inputs[0]].shape) - len(contracting)
    return (*range(shared), *range(left, rank), *range(shared, left))
