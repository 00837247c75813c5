"""Members of one program in several processes: those of a process meet in memory, and one of them speaks for all.

So each collective is one call to the connection of the processes, whatever the number of devices in each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from polyax.runtime.contract.collectives import Axes, Give, Group, Groups, Take, flat, reduce_share
from polyax.runtime.contract.processes import ProcessGroup, Transfer


class _Operands(NamedTuple):
    """What a member brings to a reduction."""

    peers: tuple[int, ...]
    sources: list[np.ndarray]
    targets: list[np.ndarray]


class _Hand(NamedTuple):
    """What a member brings to a deal."""

    peers: list[int]
    own: int
    give: Give


class SpanningGroup(Group):
    """``homes``: for each member the place of its process in ``link``."""

    def __init__(self, axes: Axes, homes: Sequence[int], link: ProcessGroup) -> None:
        super().__init__(axes, [n for n, home in enumerate(homes) if home == link.rank])
        self.homes = tuple(homes)
        self.link = link

    def begin(self, what: str) -> None:
        super().begin(what)
        self.link.begin(what)

    def end(self, rank: int) -> None:
        super().end(rank)
        if len(self.ended) == len(self.local):
            self.link.end(self.what)

    def leads(self, rank: int) -> bool:
        """Whether the member speaks for its process."""
        return rank == self.local[0]

    def homes_of(self, peers: Sequence[int]) -> tuple[int, ...]:
        """The processes of some members."""
        return tuple(sorted({self.homes[p] for p in peers}))

    def together(self, peers: Sequence[int]) -> list[int]:
        """Those of them that are in this process."""
        return [p for p in peers if self.homes[p] == self.link.rank]

    def _spans(self, names: Sequence[Any], groups: Groups | None) -> bool:
        """Whether any members along these axes are in different processes: the same for all members."""
        return self.link.size > 1 and any(
            len(self.homes_of(self.peers(n, names, groups)[0])) > 1 for n in range(self.size)
        )

    def reduce(
        self,
        rank: int,
        args: Sequence[np.ndarray],
        outs: Sequence[np.ndarray],
        operation: str,
        names: Sequence[Any],
        groups: Groups | None,
    ) -> None:
        """The first of those together gets their common result, then that of all processes; the others copy it."""
        if not self._spans(names, groups):
            super().reduce(rank, args, outs, operation, names, groups)
            return
        peers = tuple(self.peers(rank, names, groups)[0])
        mine = _Operands(peers, [flat(x) for x in args], [flat(x) for x in outs])
        met: list[_Operands] = self.meet(rank, mine)
        beside = self.together(peers)
        first = met[beside[0]]
        if len(beside) > 1:
            reduce_share(operation, [met[p].sources for p in beside], [first.targets], beside.index(rank))
            self.meet_again(rank)
        if self.leads(rank):
            self._reduce_between(met, operation)
        self.meet_again(rank)
        if rank != beside[0]:
            for out, result in zip(mine.targets, first.targets, strict=True):
                out[...] = result
        self.meet_again(rank)

    def meet_again(self, rank: int) -> None:
        """Waits for the others in this process, if there are any."""
        if len(self.local) > 1:
            self.meet(rank, None)

    def _reduce_between(self, met: Sequence[_Operands], operation: str) -> None:
        """One call for each set of processes, in an order that is the same in all of them."""
        calls: dict[tuple[int, ...], list[tuple[np.ndarray, np.ndarray]]] = {}
        for peers in sorted({met[n].peers for n in self.local}):
            beside = self.together(peers)
            first = met[beside[0]]
            sources = first.sources if len(beside) == 1 else first.targets
            calls.setdefault(self.homes_of(peers), []).extend(zip(sources, first.targets, strict=True))
        for homes in sorted(calls):
            self.link_of(homes).all_reduce(calls[homes], operation, self.what)

    def link_of(self, homes: tuple[int, ...]) -> ProcessGroup:
        """The connection of some of the processes."""
        if len(homes) == self.link.size:
            return self.link
        return self.link.among(homes)

    def deal(
        self,
        rank: int,
        name: str,
        names: Sequence[Any],
        groups: Groups | None,
        give: Give,
        take: Take,
        gives: Callable[[int, int], bool] | None = None,
        *,
        same: bool = False,
        lasting: bool = False,
    ) -> np.ndarray:
        if not self._spans(names, groups):
            return super().deal(rank, name, names, groups, give, take, gives, same=same, lasting=lasting)
        peers, own = self.peers(rank, names, groups)
        met: list[_Hand] = self.meet(rank, _Hand(peers, own, give))
        come = self.meet(rank, self._dealt(met, gives, same) if self.leads(rank) else None)[self.local[0]]

        def part(n: int, p: int) -> Any:
            if gives is not None and not gives(n, own):
                return None
            return met[p].give(own) if p in self.local else come[p, None if same else rank]

        result = take([part(n, p) for n, p in enumerate(peers)])
        if not lasting:
            self.meet_again(rank)
        return result

    def _dealt(
        self, met: Sequence[_Hand], gives: Callable[[int, int], bool] | None, same: bool
    ) -> dict[tuple[int, int | None], np.ndarray]:
        """What comes from other processes, by who gives and who gets; what is the same for all comes once."""
        sends: dict[Any, Transfer] = {}
        come: dict[tuple[int, int | None], np.ndarray] = {}
        for n in self.local:
            peers, own, give = met[n]
            for place, p in enumerate(peers):
                home = self.homes[p]
                if home == self.link.rank:
                    continue
                if gives is None or gives(own, place):
                    key = (n, home) if same else (n, p)
                    sends.setdefault(key, Transfer(home, give(place)))
                if gives is None or gives(place, own):
                    come.setdefault((p, None if same else n), np.empty_like(give(place), order="C"))
        receives = [Transfer(self.homes[key[0]], come[key]) for key in sorted(come, key=_order)]
        contiguous = [Transfer(t.place, np.ascontiguousarray(t.data)) for _, t in sorted(sends.items())]
        self.link.exchange(contiguous, receives, self.what)
        return come


def _order(key: tuple[int, int | None]) -> tuple[int, int]:
    return key[0], key[1] or 0
