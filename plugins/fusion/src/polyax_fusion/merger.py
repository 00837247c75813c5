"""Fusion merger: a kernel goes into the kernels of all its consumers, so that its result is never in memory.

::

         x                  x                       x              x
         |                  |                       |              |
       p = ..             / |                     p = ..        (p ..)
       /    \\     =>   (p  (p                       |     =>    c = ..
    c = ..  d = ..      c)   d)                   c = ..

Into all or into none: one consumer that reads ``p`` from memory is enough to make it be written there. Several
consumers compute it each for itself, so it must be cheap then. The bytes that the program moves must not grow: what
``p`` reads, each of them reads now. Where a consumer needs a row of ``p``, the two are stacked.
"""

from __future__ import annotations

from polyax_fusion.assembly import Assembly
from polyax_fusion.cost import cones, total_moved
from polyax_fusion.stacking import stacked
from polyax_kernels.api.fusers import Fuser, Graph, KernelNode, Limits

NAME = "merger"


def run(graph: Graph, limits: Limits) -> Graph:
    """The graph with kernels merged into all their consumers."""
    assembly, costs = Assembly(NAME, graph, limits), cones(graph)
    for n in range(len(graph.nodes) - 1, -1, -1):
        users = assembly.users(n)
        if assembly.kernel(n) is None or not users:
            continue
        found = _into_all(assembly, n, users, costs[n])
        assembly.log(n, users, found if isinstance(found, str) else None)
        if isinstance(found, dict):
            assembly.dissolve(n, found)
    return assembly.result()


def _into_all(assembly: Assembly, n: int, users: list[int], cost: int) -> dict[int, KernelNode] | str:
    """The kernels of the consumers with node ``n`` in each of them, or why there are none."""
    node = assembly.nodes[n]
    if any(v in assembly.outputs for v in node.outs):
        return "it is a result of the program"
    if len(users) > 1 and cost > assembly.limits.duplicable_nodes:
        return f"it is expensive, and {len(users)} kernels would compute it"
    if any(assembly.overwritten(v) for v in node.inputs):
        return "what it reads is updated in place"
    found: dict[int, KernelNode] = {}
    for user in users:
        both = stacked(node, assembly.nodes[user], (), assembly.limits)
        if isinstance(both, str):
            return both
        found[user] = both
    before = total_moved(assembly.graph, [node, *[assembly.nodes[user] for user in users]])
    after = total_moved(assembly.graph, found.values())
    return found if after <= before else f"the kernels would move {after} bytes instead of {before}"


fusion_merger = Fuser(NAME, run)
