"""Members of a group that take turns in one thread: in a collective each says what it gives, then gets its part.

Nobody waits for anybody, and large reductions are shared by all cores.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polyax.runtime.contract.collectives import Axes, Give, Group, Groups, as_member, flat, reduce_share

Shared = Callable[[int, Callable[[int], None]], None]
"""``run(count, work)``: calls ``work`` with each number below ``count``, maybe on several threads."""

LARGE = 1 << 20
"""Reductions of more bytes are shared by threads."""


class _Said(Exception):
    """A member has said what it gives, and gets its part when all have."""


class Turns(Group):
    """A group whose members all run in the thread that calls ``collective``."""

    def __init__(self, axes: Axes, shared: Shared) -> None:
        super().__init__(axes)
        self.shared = shared
        self._given: dict[int, Give] = {}
        self._reductions: dict[int, Any] = {}
        self._saying = False

    def collective(self, members: Sequence[Callable[[], None]]) -> None:
        """One collective; ``members`` are what each of them does in it."""
        self._given, self._reductions, self._saying = {}, {}, True
        waiting = [n for n, run in enumerate(members) if not self._said_all(n, run)]
        self._saying = False
        for rank in sorted(self._reductions):
            self._reduce(rank)
        for n in waiting:
            with as_member(self, n):
                members[n]()

    def _said_all(self, rank: int, run: Callable[[], None]) -> bool:
        try:
            with as_member(self, rank):
                run()
        except _Said:
            return False
        return True

    def meet(self, rank: int, value: Any) -> list[Any]:
        """Nobody is to be waited for: a member goes on when it is its turn again."""
        return []

    def deal(
        self,
        rank: int,
        names: Sequence[Any],
        groups: Groups | None,
        give: Give,
        gives: Callable[[int, int], bool] | None = None,
        *,
        same: bool = False,
    ) -> list[Any]:
        if self._saying:
            self._given[rank] = give
            raise _Said
        peers, own = self.peers(rank, names, groups)
        return [self._given[p](own) if gives is None or gives(n, own) else None for n, p in enumerate(peers)]

    def reduce(
        self,
        rank: int,
        args: Sequence[np.ndarray],
        outs: Sequence[np.ndarray],
        operation: str,
        names: Sequence[Any],
        groups: Groups | None,
    ) -> None:
        peers, own = self.peers(rank, names, groups)
        self._reductions[rank] = operation, peers, own, [flat(x) for x in args], [flat(x) for x in outs]

    def _reduce(self, rank: int) -> None:
        """What the first of some peers does for all of them."""
        operation, peers, own, args, _ = self._reductions[rank]
        if own:
            return
        sources, targets = ([self._reductions[p][side] for p in peers] for side in (3, 4))

        def share(n: int) -> None:
            reduce_share(operation, sources, targets, n)

        if len(peers) * sum(x.nbytes for x in args) > LARGE:
            self.shared(len(peers), share)
        else:
            for n in range(len(peers)):
                share(n)
