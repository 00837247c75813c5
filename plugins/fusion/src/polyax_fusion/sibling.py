"""Sibling fusion: consumers of a common operand become one kernel with several results, which reads it once.

::

          g                       g
        /   \\                     |
    m' = ..  v' = ..    =>    m', v' = ..
       |        |               |    |

Kernels are siblings if their grids are equal, neither needs the other, and they read the operand at the same points.
It pays if the operand is a good part of what they move, and it must not take the vector loop away from one of them: a
kernel that folds and one that doesn't stay apart.
"""

from __future__ import annotations

from polyax_fusion.assembly import Assembly, extents
from polyax_fusion.cost import moved, why_little
from polyax_kernels.edits import merge, why_not_merge, with_loops_of
from polyax_kernels.graph import Fuser, Graph, KernelNode
from polyax_kernels.limits import Limits

NAME = "sibling"
TRIES = 4
"""Siblings that a kernel is compared with: the last ones of its shape."""


def run(graph: Graph, limits: Limits) -> Graph:
    """The graph with siblings put together."""
    assembly = Assembly(NAME, graph, limits)
    for value in [v for v, readers in assembly.readers.items() if len(readers) > 1]:
        _join_readers(assembly, value)
    return assembly.result()


def _join_readers(assembly: Assembly, value: int) -> None:
    families: dict[object, list[int]] = {}
    for n in assembly.order.running(assembly.readers[value]):
        node = assembly.kernel(n)
        if node is None or not _matters(assembly, value, node):
            continue
        family = families.setdefault((extents(node), node.folds), [])
        joined = next((m for m in reversed(family[-TRIES:]) if _join(assembly, value, m, n)), None)
        if joined is not None:
            family.remove(joined)
        family.append(n)


def _matters(assembly: Assembly, value: int, node: KernelNode) -> bool:
    """Whether the operand is a good part of what the kernel moves."""
    total = moved(assembly.graph, node)
    return why_little(total, total - assembly.graph.avals[value].nbytes) is None


def _join(assembly: Assembly, value: int, m: int, n: int) -> bool:
    """Makes one kernel of ``m`` and ``n``, which both read ``value``, if that can be done and pays."""
    first, second = assembly.order.running([m, n])
    if first in assembly.order.before[second]:
        return False
    found = assembly.order.why_not_join(first, second) or _merged(assembly, value, first, second)
    reason = found if isinstance(found, str) else None
    assembly.log(first, [second], reason)
    if isinstance(found, KernelNode):
        assembly.join(first, second, found)
    return reason is None


def _merged(assembly: Assembly, value: int, first: int, second: int) -> KernelNode | str:
    """The kernel that computes what both do, or why there is none."""
    a, b = assembly.nodes[first], assembly.nodes[second]
    if reason := why_not_merge(a, b, assembly.limits):
        return reason
    assert isinstance(a, KernelNode) and isinstance(b, KernelNode)
    both, graph = merge(a, with_loops_of(a, b)), assembly.graph
    before, after = moved(graph, a) + moved(graph, b), moved(graph, both)
    if len(both.reads[value].places) == len(a.reads[value].places) + len(b.reads[value].places):
        return "they read it at different points"
    if reason := why_little(before, after):
        return reason
    return both


sibling_fusion = Fuser(NAME, run)
