"""How programs on several devices meet: a group whose members exchange arrays, through the host.

Whoever runs a member's program enters the group in its thread first; the rules of collectives ask for it there.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import threading
from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple

import numpy as np

Axes = tuple[tuple[Any, int], ...]
Groups = tuple[tuple[int, ...], ...]
Give = Callable[[int], np.ndarray]
"""What a member gives to the one at a place among its peers."""

Take = Callable[[list[Any]], np.ndarray]
"""What a member makes of what its peers give it."""

OPERATIONS: dict[str, np.ufunc] = {"psum": np.add, "pmax": np.maximum, "pmin": np.minimum}
SMALL = 1 << 14
"""Operands of at most this many bytes are copied before members meet, so that they needn't meet again afterwards."""


class Group:
    """The members that run one program together; they are numbered in row-major order over the axes.

    A backend with a communication library of its own derives from it, and its rules of collectives use that instead.

    >>> Group((("i", 2), ("j", 3))).peers(4, ("i",))
    ([1, 4], 1)
    """

    def __init__(self, axes: Axes, local: Sequence[int] | None = None) -> None:
        """``local``: the members in this process, if not all are."""
        self.axes = axes
        self.what = "a program"
        """Whose members they are, for messages."""
        self.names = [name for name, _ in axes]
        self.sizes = [size for _, size in axes]
        self.size = math.prod(self.sizes)
        self.local = tuple(range(self.size) if local is None else local)
        self.error: BaseException | None = None
        self.ended: set[int] = set()
        """Members that won't meet others any more."""
        self._held: tuple[int, Callable[[str], BaseException]] | None = None
        self._changed = threading.Condition()
        self._meetings: dict[tuple[tuple[int, ...], str], _Meeting] = {}

    def begin(self, what: str) -> None:
        """Its members are about to run the program of this name."""
        self.what = what

    def coordinates(self, rank: int) -> dict[Any, int]:
        """The member's position along each axis."""
        return _coordinates(self.axes, rank)

    def peers(self, rank: int, names: Sequence[Any], groups: Groups | None = None) -> tuple[list[int], int]:
        """The members that ``rank`` exchanges values with along the named axes, in order, and its place among them.

        ``groups``: positions along the axes; those of one group are together.
        """
        return _peers(self.axes, rank, tuple(names), groups)

    def meet(self, rank: int, value: Any, peers: Sequence[int] | None = None, name: str = "") -> list[Any]:
        """The values of some members, ``rank`` among them, once all of these have come; None for others. Nobody may
        change a value before they meet again.

        ``peers``: who meets; if None, all in this process. ``name``: of the collective; no other one is this meeting.

        Raises:
          The error of another member that failed, so that it will never come.
          RuntimeError: all wait for each other.
        """
        expected = self.local if peers is None else tuple(peers)
        with self._changed:
            meeting = self._meetings.get((expected, name))
            if meeting is None:
                meeting = self._meetings[expected, name] = _Meeting([None] * self.size, set(expected))
            meeting.values[rank] = value
            meeting.missing.discard(rank)
            if meeting.missing:
                self._find_endless()
            else:
                del self._meetings[expected, name]
                self._changed.notify_all()
            while meeting.missing:
                if self.error is not None:
                    raise self.error
                self._changed.wait()
        return meeting.values

    def hold(self, rank: int, error: Callable[[str], BaseException]) -> None:
        """Those after ``rank`` in this process don't begin before it has ended. If it comes to wait for one of them, it
        never will: that is ``error(name)`` then, of the collective."""
        with self._changed:
            self._held = rank, error
            self._find_endless()

    def _find_endless(self) -> None:
        """Whether all that have begun and haven't ended wait."""
        waiting = {n: key for key, m in self._meetings.items() for n in key[0] if n not in m.missing}
        if self.error is not None or not waiting:
            return
        if self._held is not None and self._held[0] in waiting:
            if len(waiting) + len(self.ended) == self.local.index(self._held[0]) + 1:
                self.error = self._held[1](waiting[self._held[0]][1] or "a collective")
                self._changed.notify_all()
        elif len(waiting) + len(self.ended) == len(self.local):
            rank, (peers, name) = min(waiting.items())
            other = min(self._meetings[peers, name].missing)
            does = "has ended" if other in self.ended else f"waits in {waiting[other][1] or 'another one'}"
            self.error = RuntimeError(never_come(self.what, name, rank, other, does))
            self._changed.notify_all()

    def reduce(
        self,
        rank: int,
        args: Sequence[np.ndarray],
        outs: Sequence[np.ndarray],
        operation: str,
        names: Sequence[Any],
        groups: Groups | None,
    ) -> None:
        """Puts into ``outs`` what the operands of the peers make together, combined in their order: all get the same
        bits. Of large ones each member computes its share, for all."""
        peers, own = self.peers(rank, names, groups)
        if sum(x.nbytes for x in args) <= SMALL:
            copies = self.meet(rank, [x.copy() for x in args], peers, operation)
            for n, out in enumerate(outs):
                out[...] = combined(operation, [copies[p][n] for p in peers])
            return
        met = self.meet(rank, ([flat(x) for x in args], [flat(x) for x in outs]), peers, operation)
        sources, targets = ([met[p][side] for p in peers] for side in (0, 1))
        reduce_share(operation, sources, targets, own)
        self.meet(rank, None, peers, operation)

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
        """What ``take`` makes of what each of the peers gives to this member, in their order. ``name``: of the
        collective.

        ``gives(i, j)``: whether the one at place ``i`` gives to the one at ``j``, if not all do; None stands for
        nothing. ``same``: each gives the same to all. ``lasting``: what is given stays as it is, also if those who
        give go on before it is taken.
        """
        peers, own = self.peers(rank, names, groups)
        met = self.meet(rank, give, peers, name)
        result = take([met[p](own) if gives is None or gives(n, own) else None for n, p in enumerate(peers)])
        if not lasting:
            self.meet(rank, None, peers, name)
        return result

    def abort(self, error: BaseException) -> None:
        """Lets all members know that one has failed."""
        with self._changed:
            self.error = self.error or error
            self._changed.notify_all()

    def end(self, rank: int) -> None:
        """Lets all members know that one won't meet them any more."""
        with self._changed:
            self.ended.add(rank)
            self._find_endless()


class _Meeting(NamedTuple):
    """What members have brought, and who is still to come."""

    values: list[Any]
    missing: set[int]


def never_come(what: str, name: str, rank: int, other: int, does: str) -> str:
    """Of a member that waits for another one: for ever."""
    return (
        f"{what}: device {rank} waits in {name or 'a collective'} for device {other}, which {does}. All devices along "
        "the axes of a collective must come to it: loops and branches around it must go the same way on them, so what "
        "decides there must not differ along these axes."
    )


def flat(x: np.ndarray) -> np.ndarray:
    """``x`` as a vector, on the same memory."""
    assert x.flags.c_contiguous, "a copy wouldn't be what others write to"
    return x.reshape(-1)


def combined(operation: str, xs: Sequence[np.ndarray]) -> np.ndarray:
    first, *others = xs
    total = np.array(first)  # of a scalar, too: others are added to its memory
    for x in others:
        total = OPERATIONS[operation](total, x, out=total, casting="unsafe")
    return total


def reduce_share(
    operation: str, sources: Sequence[Sequence[np.ndarray]], targets: Sequence[Sequence[np.ndarray]], own: int
) -> None:
    """The part of the member at place ``own`` in a reduction of vectors: a piece of each, for all targets."""
    count = len(sources)
    for n, x in enumerate(sources[own]):
        piece = slice(len(x) * own // count, len(x) * (own + 1) // count)
        result = combined(operation, [xs[n][piece] for xs in sources])
        for out in targets:
            out[n][piece] = result


@functools.lru_cache(4096)
def _coordinates(axes: Axes, rank: int) -> dict[Any, int]:
    position = np.unravel_index(rank, [size for _, size in axes]) if axes else ()
    return {name: int(n) for (name, _), n in zip(axes, position, strict=True)}


@functools.lru_cache(4096)
def _peers(axes: Axes, rank: int, names: tuple[Any, ...], groups: Groups | None) -> tuple[list[int], int]:
    sizes = [size for _, size in axes]
    own = [int(n) for n in np.unravel_index(rank, sizes)]
    at = {name: range(size) if name in names else [n] for (name, size), n in zip(axes, own, strict=True)}
    order = [*names, *(name for name, _ in axes if name not in names)]  # along several axes: as they are named
    positions = [dict(zip(order, p, strict=True)) for p in itertools.product(*(at[name] for name in order))]
    ranks = [int(np.ravel_multi_index([p[name] for name, _ in axes], sizes)) for p in positions]
    place = ranks.index(rank)
    if groups is None:
        return ranks, place
    group = next(g for g in groups if place in g)
    return [ranks[n] for n in group], group.index(place)


@functools.lru_cache(4096)
def peer_sets(axes: Axes, names: tuple[Any, ...], groups: Groups | None) -> tuple[tuple[int, ...], ...]:
    """The members that exchange values with each other: each set once, in order."""
    size = math.prod(size for _, size in axes)
    return tuple(dict.fromkeys(tuple(_peers(axes, n, names, groups)[0]) for n in range(size)))


_here = threading.local()


class as_member:
    """Makes this thread run member ``rank`` of ``group``."""

    def __init__(self, group: Group, rank: int) -> None:
        self.member = group, rank

    def __enter__(self) -> None:
        self.before = getattr(_here, "member", None)
        _here.member = self.member

    def __exit__(self, *_: object) -> None:
        _here.member = self.before


@contextlib.contextmanager
def entered(group: Group, rank: int) -> Generator[None]:
    """Makes this thread run member ``rank`` of ``group``; the others learn of an error in it, and of its end."""
    try:
        with as_member(group, rank):
            yield
    except BaseException as e:
        group.abort(e)
        raise
    finally:
        group.end(rank)


def member() -> tuple[Group, int]:
    """The group, and the number in it, that this thread runs a program for."""
    found = getattr(_here, "member", None)
    if found is None:
        raise RuntimeError("a collective runs outside of any group of devices; use it under pmap")
    return found
