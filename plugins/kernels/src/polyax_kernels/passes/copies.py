"""Copies that only give a value another shape become aliases: its maker then writes where the copy is wanted."""

from __future__ import annotations

from dataclasses import replace

from polyax_kernels.ir.expr import points
from polyax_kernels.ir.graph import Graph, KernelNode, Node
from polyax_kernels.ir.strides import contiguous_from


def alias_copies(graph: Graph) -> Graph:
    """Of values that nodes compute; a copy of an argument stays one."""
    computed = {v for node in graph.nodes for v in node.outs}
    changed = [_aliased(graph, node, computed) for node in graph.nodes]
    return graph if all(a is b for a, b in zip(changed, graph.nodes, strict=True)) else graph.with_nodes(changed)


def _aliased(graph: Graph, node: Node, computed: set[int]) -> Node:
    if not isinstance(node, KernelNode) or not node.pure or len(node.stores) != 1 or node.alias is not None:
        return node
    store = node.stores[0]
    value = store.value
    if value.kind != "load" or value.attr.masked or value.attr.slot not in computed:
        return node
    source, out = graph.avals[value.attr.slot], graph.avals[node.outs[0]]
    if source.dtype != out.dtype or not source.size == out.size == points(node.grid):
        return node
    starts = contiguous_from(value.args, source.shape, node.grid), contiguous_from(store.indices, out.shape, node.grid)
    return replace(node, alias=value.attr.slot) if starts == (0, 0) else node
