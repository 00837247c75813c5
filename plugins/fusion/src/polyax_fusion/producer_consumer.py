"""Producer-consumer fusion: the producer is computed in its consumer's kernel and also written, for others need it.

::

        x                          x
        |                          |
    p = ..                     p, c = ..
      |    \\             =>      |    |
    c = ..  others              others
      |

The consumer doesn't read ``p`` from memory any more. Where it needs more of ``p`` than its own point, as a softmax
needs the sum of the row, the two are stacked: both loop over the rows, and a stage of each row computes ``p``.

Sibling fusion runs before this one: siblings that are one kernel already offer it more to take in.
"""

from __future__ import annotations

from polyax_fusion.assembly import Assembly
from polyax_fusion.cost import total_moved, why_little
from polyax_fusion.stacking import stacked
from polyax_kernels.api.fusers import Fuser, Graph, KernelNode, Limits, bytes_moved

NAME = "producer_consumer"


def run(graph: Graph, limits: Limits) -> Graph:
    """The graph with producers in the kernels of their consumers."""
    assembly = Assembly(NAME, graph, limits)
    for n in range(len(graph.nodes)):
        if assembly.kernel(n) is not None:
            _take_in_producers(assembly, n)
    return assembly.result()


def _take_in_producers(assembly: Assembly, consumer: int) -> None:
    """The last producer first: an earlier one may be needed by it."""
    waiting, seen = assembly.producers(consumer), set[int]()
    while waiting:
        producer = max(waiting, key=lambda n: assembly.order.position[n])
        seen.add(producer)
        if assembly.kernel(producer) is not None and _join(assembly, producer, consumer):
            waiting = assembly.producers(consumer)
        waiting -= seen


def _join(assembly: Assembly, producer: int, consumer: int) -> bool:
    """Makes one kernel of the two, if that can be done and pays."""
    found = assembly.order.why_not_join(producer, consumer) or _both(assembly, producer, consumer)
    assembly.log(producer, [consumer], found if isinstance(found, str) else None)
    if isinstance(found, str):
        return False
    assembly.join(producer, consumer, found)
    return True


def _both(assembly: Assembly, producer: int, consumer: int) -> KernelNode | str:
    """The kernel that computes both, or why there is none."""
    nodes, graph = (assembly.nodes[producer], assembly.nodes[consumer]), assembly.graph
    both = stacked(*nodes, assembly.needed_elsewhere(producer, consumer), assembly.limits)
    if isinstance(both, str):
        return both
    return why_little(total_moved(graph, nodes), bytes_moved(graph, both)) or both


producer_consumer_fusion = Fuser(NAME, run)
