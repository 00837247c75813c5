"""Results of library calls that nobody reads, left out where the library can give the others alone."""

from __future__ import annotations

from dataclasses import replace

from polyax_kernels.ir.graph import CallNode, Graph, Node


def leave_out_unread(graph: Graph) -> Graph:
    """Eigenvalues without eigenvectors take half of the time, for example."""
    if not any(_can_give_less(node) for node in graph.nodes):
        return graph
    wanted = {*graph.outputs, *(v for node in graph.nodes for v in node.inputs)}
    changed = [_without_unread(node, wanted) for node in graph.nodes]
    return graph if all(a is b for a, b in zip(changed, graph.nodes, strict=True)) else graph.with_nodes(changed)


def _can_give_less(node: Node) -> bool:
    return isinstance(node, CallNode) and node.lowering.some is not None and len(node.outs) > 1


def _without_unread(node: Node, wanted: set[int]) -> Node:
    if not isinstance(node, CallNode) or not _can_give_less(node):
        return node
    read = tuple([v in wanted for v in node.outs])
    lowering = None if all(read) else node.lowering.some(read, node.params)
    if lowering is None:
        return node
    outs = tuple([v for v, is_read in zip(node.outs, read, strict=True) if is_read])
    seen = node.seen and (node.seen[0], tuple([a for a, r in zip(node.seen[1], read, strict=True) if r]))
    return replace(node, lowering=lowering, outs=outs, seen=seen)
