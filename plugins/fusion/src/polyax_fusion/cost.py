"""The cost model of fusion: the operations that computing a value anew takes, and the bytes that kernels move.

Only counts. Each element of an operand is counted once per kernel that reads it.
"""

from __future__ import annotations

from collections.abc import Iterable

from polyax_kernels.api.fusers import Graph, KernelNode, Node, bytes_moved

SHARE = 8
"""What is read once less must be at least this part of what kernels move, or they aren't joined."""
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
        found[n] = EXPENSIVE
        if isinstance(node, KernelNode) and node.pure and not node.folds:
            found[n] = min(EXPENSIVE, node.weight + sum(costs.get(v, 0) for v in node.reads))
            costs.update((v, found[n]) for v in node.outs if v not in outputs)
    return found


def total_moved(graph: Graph, nodes: Iterable[Node]) -> int:
    """The bytes that ``nodes`` read and write."""
    return sum(bytes_moved(graph, node) for node in nodes)


def why_little(before: int, after: int) -> str | None:
    """Why it doesn't pay to move so many bytes instead."""
    if (before - after) * SHARE >= before > after:
        return None
    return f"{after} bytes would be moved instead of {before}"
