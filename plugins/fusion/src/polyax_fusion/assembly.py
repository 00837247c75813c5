"""The kernels of a graph while a fuser puts some of them together: who computes and who reads each value, the order,
and the decisions. What may be put together, and whether it pays, is the fuser's business.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from polyax.backend import Decision
from polyax_fusion.order import Order
from polyax_kernels.api.fusers import Graph, KernelNode, Limits, Node, eliminate_dead, equations


class Assembly:
    """Nodes are numbered by their positions in the graph; two that were joined have the number of the second."""

    def __init__(self, name: str, graph: Graph, limits: Limits) -> None:
        self.name = name
        self.graph = graph
        self.limits = limits
        self.nodes: dict[int, Node] = dict(enumerate(graph.nodes))
        self.outputs = set(graph.outputs)
        self.decisions: list[Decision] = []
        self.producer = {v: n for n, node in self.nodes.items() for v in node.outs}
        self.readers: dict[int, set[int]] = {}
        for n, node in self.nodes.items():
            self._reads(n, node)
        self.home: dict[int, int] = {}
        """Values that are others in another shape, and which ones."""
        self.updated: set[int] = set()
        self.order = Order(self._needs())

    def kernel(self, n: int) -> KernelNode | None:
        """Node ``n``, if it is a kernel that can be joined with others."""
        node = self.nodes.get(n)
        return node if isinstance(node, KernelNode) and node.pure and node.alias is None else None

    def users(self, n: int) -> list[int]:
        """The nodes that read results of node ``n``."""
        return self.order.running({m for v in self.nodes[n].outs for m in self.readers.get(v, ())})

    def producers(self, n: int) -> set[int]:
        """The nodes whose results node ``n`` reads."""
        return {self.producer[v] for v in self.nodes[n].inputs if v in self.producer}

    def needed_elsewhere(self, n: int, user: int) -> list[int]:
        """The results of node ``n`` that must be in memory even if ``user`` computes them itself."""
        outs = self.nodes[n].outs
        return [v for v in outs if v in self.outputs or not self.readers.get(v, set()) <= {user}]

    def overwritten(self, value: int) -> bool:
        """Whether some node updates ``value`` in place: whoever reads it must come before."""
        return self.home.get(value, value) in self.updated

    def join(self, first: int, second: int, node: KernelNode) -> None:
        """``node`` takes the place of both."""
        self.order.join(first, second)
        for n in (first, second):
            self._forget(n)
        self.nodes[second] = node
        self.producer.update((v, second) for v in node.outs)
        self._reads(second, node)

    def dissolve(self, n: int, found: Mapping[int, KernelNode]) -> None:
        """All users of node ``n`` compute it themselves: ``found`` takes their places."""
        self._forget(n)
        for user, node in found.items():
            self._forget(user)
            self.nodes[user] = node
            self._reads(user, node)

    def log(self, producer: int, consumers: Sequence[int], reason: str | None) -> None:
        names = ", ".join(dict.fromkeys(self.nodes[n].name for n in consumers))
        node = self.nodes[producer]
        self.decisions.append(Decision(self.name, node.name, names, reason, equations(node.primitives)))

    def result(self) -> Graph:
        nodes = [self.nodes[n] for n in self.order.running(self.nodes)]
        return eliminate_dead(self.graph.with_nodes(nodes, self.decisions))

    def _forget(self, n: int) -> None:
        for v in self.nodes.pop(n).inputs:
            self.readers[v].discard(n)

    def _reads(self, n: int, node: Node) -> None:
        for v in node.inputs:
            self.readers.setdefault(v, set()).add(n)

    def _needs(self) -> list[set[int]]:
        """Who must run before each node: who computes what it reads, and who reads what it updates in place."""
        readers: dict[int, list[int]] = {}
        needs: list[set[int]] = []
        for n, node in self.nodes.items():
            before = {self.producer[v] for v in node.inputs if v in self.producer}
            if isinstance(node, KernelNode) and node.alias is not None:
                self.home[node.outs[0]] = self.home.get(node.alias, node.alias)
            if isinstance(node, KernelNode) and node.updates is not None:
                base = self.home.get(node.updates, node.updates)
                self.updated.add(base)
                before.update(readers.get(base, ()))
            for v in node.inputs:
                readers.setdefault(self.home.get(v, v), []).append(n)
            needs.append(before - {n})
        return needs


def extents(node: KernelNode) -> tuple[object, ...]:
    """The shape of the grid."""
    return tuple([axis.extent for axis in node.grid])
