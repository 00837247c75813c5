"""A kernel in the making: a node and the producers that go into it, and what each of them costs there.

A producer is computed at *places*: index expressions over the loops of the kernel. Two consumers that read it at one
place share the computation, and it is computed in the outermost loop that its place depends on, which gives how often.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from polyax_kernels.api.fusers import Axis, Graph, KernelNode, Place, at_point, axes_of, op, own_point, postorder

Places = frozenset[Place]
TOO_MANY = 16
"""Places beyond which counting stops: nothing is computed at so many."""


class Cluster:
    """The kernel that ends in node number ``root``."""

    def __init__(self, graph: Graph, root: int) -> None:
        node = graph.nodes[root]
        self.graph = graph
        self.root = root
        self.weight = 0
        self.reads = set(node.inputs)
        self.places: dict[int, Places] = {}
        """Position of a node in the graph -> where it is computed."""
        self.depths: dict[Axis, int] = {}
        """Axis -> how often the body of its loop runs."""
        self.fold_axes: set[Axis] = set()
        """Those of them that a fold goes over."""
        self.folded: set[int] = set()
        """Positions of the members that fold, or whose results others fold."""
        self.size = 1
        """Points of the grid."""
        if isinstance(node, KernelNode):
            self._enter(root, node)

    def _enter(self, n: int, node: KernelNode) -> None:
        self.weight = node.weight
        self.places[n] = frozenset([(own_point(node.grid), None)])
        self.size = self._open(node.grid, 1)
        for stage in node.stages:
            self._open(stage.axes, self.size)
        self._open_folds(node, self.size)
        self._note_folds(n, node, ())

    def _open(self, axes: Iterable[Axis], times: int) -> int:
        for axis in axes:
            times *= axis.extent if isinstance(axis.extent, int) else 1
            self.depths[axis] = times
        return times

    def _open_folds(self, node: KernelNode, times: int) -> None:
        """Folds of a node run as often as the node is computed."""
        if not node.folds:
            return
        for x in postorder(*[s.value for s in node.stores]):
            if x.kind == "fold":
                self._open(x.attr.axes, times)
                self.fold_axes.update(x.attr.axes)

    def _note_folds(self, n: int, node: KernelNode, uses: Iterable[int]) -> None:
        if node.folds or self.folds(uses):
            self.folded.add(n)

    def folds(self, uses: Iterable[int]) -> bool:
        """Whether members fold what nodes are used for at the positions ``uses``."""
        return not self.folded.isdisjoint(uses)

    def demand(self, node: KernelNode, uses: Iterable[int]) -> Places:
        """The places where the members among ``uses`` need ``node``."""
        found: set[Place] = set()
        for c in uses:
            if c not in self.places:
                continue
            user = self.graph.nodes[c]
            assert isinstance(user, KernelNode)
            for v in node.outs:
                access = user.reads.get(v)
                if access is None:
                    continue
                if access.aligned:
                    found |= self.places[c]
                else:
                    found.update([moved(p, user, at) for at in self.places[c] for p in access.places])
                if len(found) > TOO_MANY:
                    return frozenset(found)
        return frozenset(found)

    def times(self, places: Places) -> int:
        """How often something is computed that is needed at ``places``."""
        return sum(max([1, *(self.depths.get(a, 1) for a in axes_of(place))]) for place in places)

    def in_folds(self, places: Places) -> bool:
        """Whether what is needed at ``places`` is computed for each element of a fold."""
        return any(not self.fold_axes.isdisjoint(axes_of(place)) for place in places)

    def join(self, n: int, node: KernelNode, places: Places, uses: Iterable[int]) -> None:
        self.places[n] = places
        self.weight += len(places) * node.weight
        self.reads.difference_update(node.outs)
        self.reads.update(node.reads)
        self._open_folds(node, self.times(places))
        self._note_folds(n, node, uses)


def moved(place: Place, user: KernelNode, at: Place) -> Place:
    """Where ``user``, computed at ``at``, reads something that it reads at ``place`` of its own grid."""
    indices, mask = place
    here, outer = at
    indices = tuple([at_point(i, user.grid, here) for i in indices])
    mask = None if mask is None else at_point(mask, user.grid, here)
    if mask is None or outer is None:
        return indices, mask if outer is None else outer
    return indices, op("and", outer, mask)


def fold_size(node: KernelNode) -> int:
    """The elements that one point of a node folds at most; 1 without a fold."""
    folds = [x for x in postorder(*[s.value for s in node.stores]) if x.kind == "fold"]
    return max([1, *(math.prod(a.extent for a in x.attr.axes if isinstance(a.extent, int)) for x in folds)])
