"""Who reads an array that is updated in place reads it first, where that is possible: then nothing is copied.

Programs name the update first as often as not. Knows nodes, not what they compute.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from polyax_kernels.ir.graph import Graph, KernelNode, Node

FARTHEST = 1000
"""How far behind an update its readers are looked for: long programs take linear time."""


def readers_first(graph: Graph) -> Graph:
    """The graph in an order in which updates come after what can be computed before them, if that reads their array."""
    updated = {n.updates for n in graph.nodes if isinstance(n, KernelNode) and n.updates is not None}
    if not updated:
        return graph
    nodes = list(graph.nodes)
    places = {node.outs: n for n, node in enumerate(nodes)}
    readers: dict[int, list[Node]] = {v: [] for v in updated}
    for node in nodes:
        for v in updated.intersection(node.inputs):
            readers[v].append(node)
    for n in reversed(range(len(nodes))):  # what is behind has its order already, which the rest of the work keeps
        node = nodes[n]
        if not isinstance(node, KernelNode) or node.updates is None:
            continue
        end = 1 + max(places[r.outs] for r in readers[node.updates])
        if n + 1 < end <= n + FARTHEST:
            nodes[n:end] = _parted(nodes[n:end])
            places.update((moved.outs, n + k) for k, moved in enumerate(nodes[n:end]))
    return replace(graph, nodes=nodes)


def _parted(nodes: Sequence[Node]) -> list[Node]:
    """What doesn't depend on the first node, then that and the others. Updates and effects stay where they are."""
    free: list[Node] = []
    bound: list[Node] = [nodes[0]]
    made = set(nodes[0].outs)
    for node in nodes[1:]:
        fixed = node.updates is not None if isinstance(node, KernelNode) else node.effects
        if fixed or not made.isdisjoint(node.inputs):
            bound.append(node)
            made.update(node.outs)
        else:
            free.append(node)
    return [*free, *bound]
