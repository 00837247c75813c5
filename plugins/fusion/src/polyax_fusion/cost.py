"""The cost model of fusion: what computing a value anew costs. Counts scalar operations, knows no kernels."""

from __future__ import annotations

from polyax_kernels.graph import Graph, KernelNode

EXPENSIVE = 1 << 40
"""More than any limit."""


def cones(graph: Graph) -> dict[int, int]:
    """Position of a node -> the operations of the node and of all that it needs, down to values in memory.

    Results of the program, of folds and of library calls are taken to be in memory.
    """
    outputs = set(graph.outputs)
    costs: dict[int, int] = {}
    found: dict[int, int] = {}
    for n, node in enumerate(graph.nodes):
        inlinable = isinstance(node, KernelNode) and node.pure and not node.folds
        found[n] = min(EXPENSIVE, node.weight + sum(costs.get(v, 0) for v in node.reads)) if inlinable else EXPENSIVE
        costs.update((v, found[n] if inlinable and v not in outputs else 0) for v in node.outs)
    return found
