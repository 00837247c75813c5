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
from polyax_fusion.cost import why_little
from polyax_kernels.api.fusers import Fuser, Graph, KernelNode, Limits, bytes_moved, merge, why_not_merge, with_loops_of

NAME = "sibling"
TRIES = 4
"""Siblings that a kernel is compared with: the last ones of its shape."""


def run(graph: Graph, limits: Limits) -> Graph:
    """The graph with siblings put together."""
    siblings = _Siblings(Assembly(NAME, graph, limits))
    for value in [v for v, readers in siblings.assembly.readers.items() if len(readers) > 1]:
        siblings.join_readers(value)
    return siblings.assembly.result()


class _Siblings:
    def __init__(self, assembly: Assembly) -> None:
        self.assembly = assembly
        self.refused: set[tuple[int, int]] = set()

    def join_readers(self, value: int) -> None:
        """Joins kernels that read ``value``, each with one of the last before it that have its shape."""
        families: dict[object, list[int]] = {}
        for n in self.assembly.order.running(self.assembly.readers[value]):
            node = self.assembly.kernel(n)
            if node is None or not self._matters(value, node):
                continue
            family = families.setdefault((extents(node), node.folds), [])
            joined = next((m for m in reversed(family) if self._join(m, n)), None)
            family[:] = [*[m for m in family if m != joined], n][-TRIES:]

    def _matters(self, value: int, node: KernelNode) -> bool:
        """Whether the operand is a good part of what the kernel moves."""
        total = bytes_moved(self.assembly.graph, node)
        return why_little(total, total - self.assembly.graph.avals[value].nbytes) is None

    def _join(self, first: int, second: int) -> bool:
        """Makes one kernel of the two, if that can be done and pays."""
        order = self.assembly.order
        if (first, second) in self.refused or first in order.before[second]:
            return False
        found = order.why_not_join(first, second) or self._merged(first, second)
        if isinstance(found, str):
            self.refused.add((first, second))
            self.assembly.log(first, [second], found)
            return False
        self.assembly.log(first, [second], None)
        self.assembly.join(first, second, found)
        return True

    def _merged(self, first: int, second: int) -> KernelNode | str:
        """The kernel that computes what both do, or why there is none."""
        a, b, graph = self.assembly.nodes[first], self.assembly.nodes[second], self.assembly.graph
        if reason := why_not_merge(a, b, self.assembly.limits):
            return reason
        assert isinstance(a, KernelNode) and isinstance(b, KernelNode)
        both = merge(a, with_loops_of(a, b))
        if not any(_reads_once(v, a, b, both) for v in a.reads if v in b.reads):
            return "they read the same at different points"
        return why_little(bytes_moved(graph, a) + bytes_moved(graph, b), bytes_moved(graph, both)) or both


def _reads_once(value: int, a: KernelNode, b: KernelNode, both: KernelNode) -> bool:
    """Whether some place at which both of them read ``value`` has become one."""
    return len(both.reads[value].places) < len(a.reads[value].places) + len(b.reads[value].places)


sibling_fusion = Fuser(NAME, run)
