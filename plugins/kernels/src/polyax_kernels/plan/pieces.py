"""Memory that holds the names of values instead of their elements: what the checker of plans runs its steps on."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from polyax_kernels.plan.plan import ControlStep, Inner, LoopStep, Ref


class Piece(NamedTuple):
    """A piece of a base, and the value that is there since some step."""

    start: int
    end: int
    value: int
    since: str


class Pieces:
    """The pieces of each base that hold something; they are disjoint, and in order."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = sizes
        self._pieces: list[list[Piece]] = [[] for _ in sizes]

    def at(self, ref: Ref, nbytes: int) -> list[Piece]:
        return self._pieces[ref.base][self._met(ref, nbytes)]

    def put(self, ref: Ref, nbytes: int, value: int, since: str) -> None:
        """What it overlaps is gone."""
        self._pieces[ref.base][self._met(ref, nbytes)] = [Piece(ref.offset, ref.offset + nbytes, value, since)]

    def _met(self, ref: Ref, nbytes: int) -> slice:
        pieces = self._pieces[ref.base]
        first, end = (bisect_left(pieces, at, key=_start) for at in (ref.offset, ref.offset + nbytes))
        return slice(first - 1 if first and pieces[first - 1].end > ref.offset else first, end)


def _start(piece: Piece) -> int:
    return piece.start


def written(step: ControlStep) -> Iterator[tuple[Ref, int]]:
    """The places that a loop or a branch writes to before its turns, in the first two, and behind them; their sizes."""
    if isinstance(step, LoopStep):
        yield from ((copy.target, copy.nbytes) for copy in (*step.before, *step.ends[0], *step.ends[1]))
        yield from () if step.holds is None else ((step.holds, 1),)
        if step.length == 0:
            return
    for _, inner in step.inners:
        sizes = _written(inner)
        for places in (inner.even, inner.odd):
            yield from ((ref, sizes[n]) for n, ref in enumerate(places) if ref is not None and sizes.get(n))


def _written(inner: Inner) -> dict[int, int]:
    """The places of a plan within another one that its steps write to, and how many bytes."""
    plan, first = inner.plan, len(inner.plan.inputs)
    sizes = {n: plan.inputs[n].nbytes for n in plan.overwritten}
    sizes |= {first + n: nbytes for n, nbytes in enumerate((*plan.fresh, plan.arena_bytes))}
    return sizes | {copy.target.base: copy.nbytes for copy in inner.copies}
