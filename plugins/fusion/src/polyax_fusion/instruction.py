"""Instruction fusion: a producer goes into the kernels of its consumers, if it may and if it pays.

::

         x                      x
         |                      |
      a = ..                    |
         |          =>          |
      b = .. a ..           b = .. (a ..) ..

What is cheap may be computed in several kernels, or several times in one; what is expensive never is, nor library calls
(products, convolutions, sorts). No kernel grows beyond what the device takes, and the bytes moved don't grow.

Producers are visited from the last to the first, so that each one's consumers have their kernels when its turn comes.
Nodes are only assigned to kernels then; expressions are rewritten once, in the end. Both are linear in the size of the
graph.
"""

from __future__ import annotations

from collections.abc import Iterable

from polyax.backend import Decision
from polyax_fusion.cost import cones
from polyax_fusion.group import TOO_MANY, Cluster, Places, fold_size
from polyax_kernels.api.fusers import (
    Fuser,
    Graph,
    Inliner,
    KernelNode,
    Limits,
    Node,
    equations,
    rebuilt,
    why_not_inline,
)

NAME = "instruction"
ROWS = 64
"""A reduction may move into a kernel that uses each of its results many times, in loops of its own, if it has at least
so many: its rows then keep all threads busy. So many elements are computed together rather than one after the other."""
SMALL = 4096
"""Or if it folds no more elements than this, which any thread does in no time."""


class _Pass:
    def __init__(self, graph: Graph, limits: Limits) -> None:
        self.graph = graph
        self.limits = limits
        self.nodes = graph.nodes
        self.consumers = graph.consumers()
        self.producer = {v: n for n, node in enumerate(self.nodes) for v in node.outs}
        self.outputs = set(graph.outputs)
        self.cones = cones(graph)
        self.groups: dict[int, list[Cluster]] = {}
        """Position of a node -> the kernels that compute it."""
        self.decisions: list[Decision] = []

    def decide(self) -> None:
        for n in range(len(self.nodes) - 1, -1, -1):
            uses = list(dict.fromkeys(c for v in self.nodes[n].outs for c in self.consumers.get(v, ())))
            wanted = list({id(g): g for c in uses for g in self.groups[c]}.values())
            reason = self.why_alone(n, uses, wanted) or self.join(n, uses, wanted)
            if reason is None:
                self.groups[n] = wanted
            else:
                self.groups[n] = [Cluster(self.graph, n)]
            if wanted:
                names = ", ".join(dict.fromkeys(self.nodes[g.root].name for g in wanted))
                node = self.nodes[n]
                self.decisions.append(Decision(NAME, node.name, names, reason, equations(node.primitives)))

    def why_alone(self, n: int, uses: list[int], wanted: list[Cluster]) -> str | None:
        """Why node ``n`` becomes a kernel of its own, whatever the kernels of its consumers are like."""
        node = self.nodes[n]
        if not wanted:
            return "nobody reads it"
        if any(v in self.outputs for v in node.outs):
            return "it is a result of the program"
        for c in uses:
            if reason := why_not_inline(node, self.nodes[c]) or self.why_not_alias(c):
                return reason
        if len(wanted) > 1 and self.cones[n] > self.limits.duplicable_nodes:
            return f"it is expensive, and {len(wanted)} kernels would compute it"
        return None

    def why_not_alias(self, consumer: int) -> str | None:
        """Giving memory another shape costs nothing; a kernel would copy it."""
        node = self.nodes[consumer]
        alias = isinstance(node, KernelNode) and node.alias is not None
        if alias and any(g.root == consumer for g in self.groups[consumer]):
            return f"{node.name} only gives it another shape"
        return None

    def join(self, n: int, uses: list[int], wanted: list[Cluster]) -> str | None:
        """Puts node ``n`` into all the kernels that want it, or into none; the reason is returned then."""
        node = self.nodes[n]
        assert isinstance(node, KernelNode)
        demands = [(group, group.demand(node, uses)) for group in wanted]
        for group, places in demands:
            if reason := self.why_not(n, node, group, places, group.times(places)):
                return reason
            if node.folds and (reason := self.why_no_fold(node, group, places, uses)):
                return reason
        if reason := self.why_more_bytes(node, wanted):
            return reason
        for group, places in demands:
            group.join(n, node, places, uses)
        return None

    def why_not(self, n: int, node: KernelNode, group: Cluster, places: Places, times: int) -> str | None:
        """Why ``node``, needed at these places and computed so many times, stays out of a kernel."""
        limits, root = self.limits, self.nodes[group.root]
        assert isinstance(root, KernelNode)
        size = max(1, self.graph.avals[node.outs[0]].size)
        if self.computed_again(places, times, size) and self.cones[n] > limits.duplicable_nodes:
            return f"it is expensive, and {len(places)} places of it are needed"
        if times > size and self.cones[n] > limits.recomputable_nodes and not self.moves_stored(node, times, size):
            return f"its elements would be computed {times // size} times"
        in_turn = root.in_turn and limits.group == 1  # groups share rows of running values
        if times >= ROWS and self.cones[n] > limits.duplicable_nodes and in_turn:
            return f"it is expensive, and {root.name} takes one element after the other"
        if root.updates is not None and root.updates in node.reads:
            return f"it reads what {root.name} updates in place"
        if group.weight + len(places) * node.weight > limits.kernel_nodes:
            return f"the kernel would exceed {limits.kernel_nodes} operations"
        if len((group.reads - set(node.outs)) | set(node.reads)) + len(root.outs) > limits.operands:
            return f"the kernel would exceed {limits.operands} operands"
        return None

    def moves_stored(self, node: KernelNode, times: int, size: int) -> bool:
        """Whether ``node`` only gives elements other places, and who computes them isn't asked for many more: they are
        in memory anyway, or needed hardly more often than it has elements, as by a pad."""
        return _moves(node) and (times < 2 * size or all(map(self.stored, node.reads)))

    def stored(self, value: int) -> bool:
        """Whether a value is surely in memory: given, or computed by a library, or expensive and read by several."""
        n = self.producer.get(value)
        if n is None or not isinstance(self.nodes[n], KernelNode) or value in self.outputs:
            return True
        return self.cones[n] > self.limits.duplicable_nodes and len(self.consumers[value]) > 1

    @staticmethod
    def computed_again(places: Places, times: int, size: int) -> bool:
        """Whether places share elements: they don't if they are as many elements as there are, as the columns of a
        pair of indices."""
        apart = times <= size and len(places) <= TOO_MANY and all(mask is None for _, mask in places)
        return len(places) > 1 and not apart

    def why_no_fold(self, node: KernelNode, group: Cluster, places: Places, uses: list[int]) -> str | None:
        """A reduction is computed once per row of its consumer's kernel, before the loop over the row, or not there."""
        times = group.times(places)
        if times > group.size or (group.in_folds(places) and fold_size(node) * times > SMALL):
            return "a reduction would run inside a reduction"
        size = max(1, self.graph.avals[node.outs[0]].size)
        loops = size < group.size or group.folds(uses)
        if loops and size < ROWS and fold_size(node) * size > SMALL:
            return f"a large reduction to {size} elements would not be shared among threads"
        return None

    def why_more_bytes(self, node: KernelNode, wanted: list[Cluster]) -> str | None:
        """Why several kernels that read what ``node`` reads move more than if they read what it computes, or as much:
        then only what computes nothing goes into them, as its kernel would do nothing else."""
        if len(wanted) == 1:
            return None
        before = self.nbytes(node.reads) + (1 + len(wanted)) * self.nbytes(node.outs)
        after = sum(self.nbytes(set(node.reads) - group.reads) for group in wanted)
        pays = after < before or not before or (after == before and _moves(node))
        return None if pays else f"{after} bytes would be moved instead of {before}"

    def nbytes(self, values: Iterable[int]) -> int:
        return sum(self.graph.avals[v].nbytes for v in values)

    def apply(self) -> list[Node]:
        """The nodes of the kernels, with what went into each."""
        roots = [g for n in range(len(self.nodes)) for g in self.groups[n] if g.root == n]
        return [self.fused(g) if len(g.places) > 1 else self.nodes[g.root] for g in roots]

    def fused(self, group: Cluster) -> Node:
        """The kernel of a group."""
        inliner = Inliner()
        members = sorted(group.places)
        for n in members[:-1]:
            node = self.nodes[n]
            assert isinstance(node, KernelNode)
            inliner.add(node)
        root = self.nodes[group.root]
        assert isinstance(root, KernelNode) and group.root == members[-1]
        return rebuilt(root, inliner.inlined(root), tuple([p for n in members for p in self.nodes[n].primitives]))


def _moves(node: KernelNode) -> bool:
    """Whether each of its results is an element of what it reads."""
    return all(store.value.kind == "load" for stage in node.stages for store in stage.stores)


def run(graph: Graph, limits: Limits) -> Graph:
    """The graph with producers in their consumers' kernels."""
    fusion = _Pass(graph, limits)
    fusion.decide()
    return graph.with_nodes(fusion.apply(), fusion.decisions)


instruction_fusion = Fuser(NAME, run)
