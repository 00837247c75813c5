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
from typing import Any

import numpy as np

Axes = tuple[tuple[Any, int], ...]
Groups = tuple[tuple[int, ...], ...]
Give = Callable[[int], np.ndarray]
"""What a member gives to the one at a place among its peers."""

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
        self.error: BaseException | None = None
        self._values: list[list[Any]] = [[None] * self.size, [None] * self.size]
        self._turns = [0] * self.size
        self.local = tuple(range(self.size) if local is None else local)
        self._barrier = threading.Barrier(len(self.local))

    def coordinates(self, rank: int) -> dict[Any, int]:
        """The member's position along each axis."""
        position = np.unravel_index(rank, self.sizes) if self.sizes else ()
        return {name: int(n) for name, n in zip(self.names, position, strict=True)}

    def peers(self, rank: int, names: Sequence[Any], groups: Groups | None = None) -> tuple[list[int], int]:
        """The members that ``rank`` exchanges values with along the named axes, in order, and its place among them.

        ``groups``: positions along the axes; those of one group are together.
        """
        return _peers(self.axes, rank, tuple(names), groups)

    def meet(self, rank: int, value: Any) -> list[Any]:
        """The values of all members in this process, once all have come; None for others. Nobody may change a value
        before the members meet again.

        Raises:
          The error of another member that failed, so that it will never come.
        """
        slot = self._values[self._turns[rank] % 2]  # who is ahead writes to the other one
        self._turns[rank] += 1
        slot[rank] = value
        try:
            self._barrier.wait()
        except threading.BrokenBarrierError:
            raise self.error or RuntimeError("another device of this computation failed") from None
        return list(slot)

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
            copies = self.meet(rank, [x.copy() for x in args])
            for n, out in enumerate(outs):
                out[...] = combined(operation, [copies[p][n] for p in peers])
            return
        met = self.meet(rank, ([flat(x) for x in args], [flat(x) for x in outs]))
        sources, targets = ([met[p][side] for p in peers] for side in (0, 1))
        reduce_share(operation, sources, targets, own)
        self.meet(rank, None)

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
        """What each of the peers gives to this member, in their order; they mustn't change it before they meet again.

        ``gives(i, j)``: whether the one at place ``i`` gives to the one at ``j``, if not all do; None stands for
        nothing. ``same``: each gives the same to all.
        """
        peers, own = self.peers(rank, names, groups)
        met = self.meet(rank, give)
        return [met[p](own) if gives is None or gives(n, own) else None for n, p in enumerate(peers)]

    def abort(self, error: BaseException) -> None:
        """Lets all members know that one has failed."""
        self.error = self.error or error
        self._barrier.abort()


def flat(x: np.ndarray) -> np.ndarray:
    """``x`` as a vector, on the same memory."""
    assert x.flags.c_contiguous, "a copy wouldn't be what others write to"
    return x.reshape(-1)


def combined(operation: str, xs: Sequence[np.ndarray]) -> np.ndarray:
    first, *others = xs
    total = first.copy()
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


_here = threading.local()


@contextlib.contextmanager
def as_member(group: Group, rank: int) -> Generator[None]:
    """Makes this thread run member ``rank`` of ``group``."""
    before = getattr(_here, "member", None)
    _here.member = (group, rank)
    try:
        yield
    finally:
        _here.member = before


@contextlib.contextmanager
def entered(group: Group, rank: int) -> Generator[None]:
    """Makes this thread run member ``rank`` of ``group``; an error in it reaches the other members."""
    try:
        with as_member(group, rank):
            yield
    except BaseException as e:
        group.abort(e)
        raise


def member() -> tuple[Group, int]:
    """The group, and the number in it, that this thread runs a program for."""
    found = getattr(_here, "member", None)
    if found is None:
        raise RuntimeError("a collective runs outside of any group of devices; use it under pmap")
    return found
