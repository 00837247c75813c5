"""An order in which nodes can run, kept while nodes are joined. Knows who needs whom, and nothing of kernels.

Two nodes can be joined if no third one needs the one and is needed by the other: that would be a cycle. Only nodes
between the two in the order can be on such a way, and only so many of them are looked at, so that joining all that
can be joined takes time linear in the size of the program.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

REACH = 256
"""How many dependences are followed, at most, to find out whether two nodes can be joined."""

Edges = list[set[int]]


class Order:
    """Nodes are numbered; ``needs[n]`` are the ones that must run before ``n``, and all have smaller numbers.

    >>> order = Order([[], [0], [0], [1, 2]])
    >>> order.why_not_join(1, 3)
    >>> order.why_not_join(0, 3)
    'another step needs the one and is needed by the other'
    >>> order.join(1, 2)
    >>> sorted(order.before[2]), sorted(order.after[2]), order.running([0, 2, 3])
    ([0], [3], [0, 2, 3])
    """

    def __init__(self, needs: Sequence[Iterable[int]]) -> None:
        self.position = list(range(len(needs)))
        self.before: Edges = [set(found) for found in needs]
        self.after: Edges = [set() for _ in needs]
        for n, found in enumerate(self.before):
            for m in found:
                self.after[m].add(n)

    def running(self, nodes: Iterable[int]) -> list[int]:
        """``nodes`` in an order in which they can run."""
        return sorted(nodes, key=lambda n: self.position[n])

    def why_not_join(self, first: int, second: int) -> str | None:
        """Why these two can't become one; ``first`` comes before ``second``."""
        later, earlier = self._between(first, second)
        if later is None or earlier is None:
            return "too many steps lie between them"
        if later & earlier or any(self.after[n] & {second} for n in later):
            return "another step needs the one and is needed by the other"
        return None

    def join(self, first: int, second: int) -> None:
        """Node ``second`` takes the place of both, and what lies between them moves out of the way."""
        later, earlier = self._between(first, second)
        assert later is not None and earlier is not None
        self._move([*self.running(earlier), second, *self.running(later)], first)
        for m in self.before[first]:
            self.after[m].discard(first)
        for m in self.after[first]:
            self.before[m].discard(first)
        self._connect(self.before[first] - {second}, [second])
        self._connect([second], self.after[first] - {second})
        self.before[first], self.after[first] = set(), set()

    def _connect(self, earlier: Iterable[int], later: Iterable[int]) -> None:
        for m in earlier:
            self.after[m].update(later)
        for n in later:
            self.before[n].update(earlier)

    def _move(self, nodes: Sequence[int], gone: int) -> None:
        """Puts ``nodes`` in this order where they and the node ``gone`` are now."""
        free = sorted(self.position[n] for n in (*nodes, gone))
        for n, p in zip(nodes, free, strict=False):
            self.position[n] = p

    def _between(self, first: int, second: int) -> tuple[set[int] | None, set[int] | None]:
        """The nodes between the two that need ``first``, and those that ``second`` needs; None if they are many."""
        start, end = self.position[first], self.position[second]
        return self._reach(self.after, first, start, end), self._reach(self.before, second, start, end)

    def _reach(self, edges: Edges, node: int, start: int, end: int) -> set[int] | None:
        """The nodes at positions between ``start`` and ``end`` that ``edges`` lead to from ``node``."""
        found: set[int] = set()
        stack, steps = [node], 0
        while stack:
            for m in edges[stack.pop()]:
                steps += 1
                if steps > REACH:
                    return None
                if start < self.position[m] < end and m not in found:
                    found.add(m)
                    stack.append(m)
        return found
