"""Instruction fusion: a producer goes into the kernels of its consumers, if it may and if it pays.

Producers are visited from the last to the first, so that each one's consumers have their kernels when its turn comes. Nodes
are only assigned to kernels then; expressions are rewritten once, in the end. Both are linear in the size of the graph.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from polyax.runtime.backend import Decision
from polyax_kernels.edits import Inliner, why_not_inline
from polyax_kernels.graph import Fuser, Graph, KernelNode, Node, rebuilt
from polyax_kernels.limits import Limits

NAME = "instruction"
EXPENSIVE = 1 << 40


@dataclass(slots=True)
class Group:
    """The kernel that a node ends up in: the node and the producers that went into it."""

    root: int
    weight: int
    reads: set[int]
    members: dict[int, int] = field(default_factory=dict)
    """Position of a node -> how many places of it are computed for each point, at most."""
    times: dict[int, int] = field(default_factory=dict)
    """Position of a node -> how often it is computed in all."""
    folded: set[int] = field(default_factory=set)
    """Nodes that are computed inside a fold."""


class _Pass:
    def __init__(self, graph: Graph, limits: Limits) -> None:
        self.graph = graph
        self.limits = limits
        self.nodes = graph.nodes
        self.consumers = graph.consumers()
        self.outputs = set(graph.outputs)
        self.cones = _cones(graph)
        self.groups: dict[int, list[Group]] = {}
        """Position of a node -> the kernels that compute it."""
        self.decisions: list[Decision] = []

    def decide(self) -> None:
        for n in range(len(self.nodes) - 1, -1, -1):
            wanted, reason = self.wanted(n)
            if reason is None:
                for group in wanted:
                    self.join(n, group)
                self.groups[n] = wanted
            else:
                self.groups[n] = [self.alone(n)]
            if wanted:
                names = ", ".join(dict.fromkeys(self.nodes[g.root].name for g in wanted))
                self.decisions.append(Decision(NAME, self.nodes[n].name, names, reason))

    def alone(self, n: int) -> Group:
        node = self.nodes[n]
        if not isinstance(node, KernelNode):
            return Group(n, 0, set(node.inputs))
        size = max([1, *(a.size for a in (self.graph.avals[v] for v in node.outs))])
        return Group(n, node.weight, set(node.inputs), {n: 1}, {n: size})

    def uses(self, n: int) -> list[int]:
        """The positions of the consumers of node ``n``."""
        return list(dict.fromkeys(c for v in self.nodes[n].outs for c in self.consumers.get(v, ())))

    def wanted(self, n: int) -> tuple[list[Group], str | None]:
        """The kernels that node ``n`` should go into, and why it doesn't."""
        uses = self.uses(n)
        groups = list({id(g): g for c in uses for g in self.groups[c]}.values())
        if not groups:
            return [], "nobody reads it"
        node = self.nodes[n]
        if any(v in self.outputs for v in node.outs):
            return groups, "it is a result of the program"
        for c in uses:
            if reason := why_not_inline(node, self.nodes[c]) or self.why_not_alias(c):
                return groups, reason
        assert isinstance(node, KernelNode)
        if len(groups) > 1 and self.cones[n] > self.limits.duplicable_nodes:
            return groups, f"it is expensive, and {len(groups)} kernels would compute it"
        for group in groups:
            if reason := self.why_not(n, node, uses, group):
                return groups, reason
        return groups, None

    def why_not_alias(self, consumer: int) -> str | None:
        """Giving memory another shape costs nothing; a kernel would copy it."""
        node = self.nodes[consumer]
        if isinstance(node, KernelNode) and node.alias is not None:
            if any(g.root == consumer for g in self.groups[consumer]):
                return f"{node.name} only gives it another shape"
        return None

    def why_not(self, n: int, node: KernelNode, uses: list[int], group: Group) -> str | None:
        limits = self.limits
        root = self.nodes[group.root]
        assert isinstance(root, KernelNode)
        places, times = self.demand(node, uses, group)
        size = self.graph.avals[node.outs[0]].size
        if places > 1 and self.cones[n] > limits.duplicable_nodes:
            return f"it is expensive, and {places} places of it are needed"
        if times > size and self.cones[n] > limits.recomputable_nodes:
            return f"its elements would be computed {times // max(size, 1)} times"
        if node.folds and self.in_fold(uses, group):
            return "a reduction would run inside a reduction"
        if root.updates is not None and root.updates in node.reads:
            return f"it reads what {root.name} updates in place"
        if group.weight + places * node.weight > limits.kernel_nodes:
            return f"the kernel would exceed {limits.kernel_nodes} operations"
        if len(group.reads - set(node.outs) | set(node.reads)) + len(root.outs) > limits.operands:
            return f"the kernel would exceed {limits.operands} operands"
        return None

    def in_fold(self, uses: list[int], group: Group) -> bool:
        """Whether some consumer in the kernel is a fold, or inside one."""
        return any(c in group.members and (c in group.folded or self.nodes[c].folds) for c in uses)

    def demand(self, node: KernelNode, uses: list[int], group: Group) -> tuple[int, int]:
        """How many places of ``node`` the kernel needs for each point, and how often it would compute it in all.

        Consumers that read it at their own point share one computation if they are at one place themselves.
        """
        shared, apart, times = 0, 0, 0
        for c in uses:
            if c not in group.members:
                continue
            user = self.nodes[c]
            assert isinstance(user, KernelNode)
            for v in node.outs:
                access = user.reads.get(v)
                if access is None:
                    continue
                ratio = -(-group.times[c] * access.times // self.points(c))
                times = max(times, ratio)
                if access.aligned and group.members[c] == 1:
                    shared = 1
                else:
                    apart += group.members[c] * access.places
        return shared + apart, times

    def points(self, n: int) -> int:
        return max(1, self.graph.avals[self.nodes[n].outs[0]].size)

    def join(self, n: int, group: Group) -> None:
        node = self.nodes[n]
        assert isinstance(node, KernelNode)
        places, times = self.demand(node, self.uses(n), group)
        if self.in_fold(self.uses(n), group):
            group.folded.add(n)
        group.members[n], group.times[n] = places, times
        group.weight += places * node.weight
        group.reads.difference_update(node.outs)
        group.reads.update(node.reads)

    def apply(self) -> list[Node]:
        """The nodes of the kernels, with what went into each."""
        done: list[Node] = []
        for n, node in enumerate(self.nodes):
            for group in self.groups[n]:
                if group.root == n:
                    done.append(self.fused(group) if len(group.members) > 1 else node)
        return done

    def fused(self, group: Group) -> Node:
        """The kernel of a group; its members are visited from the first to the last, each of which takes in its
        producers, whose expressions are complete by then."""
        inliner = Inliner()
        members = sorted(group.members)
        for n in members[:-1]:
            node = self.nodes[n]
            assert isinstance(node, KernelNode)
            inliner.add(node, inliner.inlined(node))
        root = self.nodes[group.root]
        assert isinstance(root, KernelNode) and group.root == members[-1]
        return rebuilt(root, inliner.inlined(root), tuple([p for n in members for p in self.nodes[n].primitives]))


def _cones(graph: Graph) -> dict[int, int]:
    """What computing a node from values in memory costs at most: its operations and those of its producers.

    Results of the program, of folds and of library calls are taken to be in memory.
    """
    outputs = set(graph.outputs)
    costs: dict[int, int] = {}
    cones: dict[int, int] = {}
    for n, node in enumerate(graph.nodes):
        inlinable = isinstance(node, KernelNode) and node.pure and not node.folds
        cones[n] = min(EXPENSIVE, node.weight + sum(costs.get(v, 0) for v in node.reads)) if inlinable else EXPENSIVE
        costs.update((v, cones[n] if inlinable and v not in outputs else 0) for v in node.outs)
    return cones


def run(graph: Graph, limits: Limits) -> Graph:
    """The graph with producers in their consumers' kernels."""
    fusion = _Pass(graph, limits)
    fusion.decide()
    return graph.with_nodes(fusion.apply(), fusion.decisions)


instruction_fusion = Fuser(NAME, run)
