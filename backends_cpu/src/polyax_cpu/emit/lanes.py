"""Loops whose turns are the lanes of vectors: whole vectors first, then what is left under a mask.

LLVM makes vectors of loops as well, in two thirds of the time that it takes to compile them, and now and then of the
wrong shape. Knows no kernels; the body of a loop is what an emitter writes of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from polyax_cpu.llvm import Builder, IrValue
from polyax_cpu.processors import host

Turn = Callable[[IrValue, Sequence[IrValue]], Sequence[IrValue]]
"""Writes a turn, or as many at once as its index has lanes: from the index and the carries to the next carries."""
Combine = Callable[[int, IrValue, IrValue], IrValue]
"""Puts two values of the carry with a number together."""
ACCUMULATORS = 4
"""Vectors that a fold carries: each waits for its last sum before it takes the next."""
STRAIGHT = 8
"""Vectors that code without a loop may hold."""


class LaneIndex(IrValue):
    """``start + step * (index + lane)``: places that are equally far apart in memory stay known as such. Only where the
    numbers themselves are needed a vector is made of them."""

    __slots__ = ("index", "start", "step")

    def __init__(self, b: Builder, index: IrValue, lanes: int, start: IrValue | None = None, step: int = 1) -> None:
        super().__init__(b, "i64", "", lanes)
        self.index = index
        self.start = b.const(0, "i64") if start is None else start
        self.step = step

    @property
    def name(self) -> str:
        first = self.start + self.index * self.step
        steps = [self.step * n for n in range(self.lanes)]
        return (self.b.splat(first, self.lanes) + self.b.numbers(steps, "i64")).name

    @property
    def is_first(self) -> bool:
        """Whether lane 0 is at place 0."""
        return self.step == 1 and self.start.name == self.index.name == "0"

    def moved(self, start: IrValue, step: int) -> IrValue:
        return LaneIndex(self.b, self.index, self.lanes, start, step) if step else start


def affine(name: str, *args: IrValue) -> IrValue | None:
    """An integer operation on places that are equally far apart, if such places are its result."""
    x, y = args if len(args) == 2 else (args[0], None)
    if isinstance(x, LaneIndex) and isinstance(y, LaneIndex):
        return _of_two(name, x, y) if x.index is y.index else None
    if y is None:
        assert isinstance(x, LaneIndex)
        return x.moved(-x.start, -x.step) if name == "neg" else None
    if isinstance(y, LaneIndex):
        return _of_one(name, y, x, swapped=True) if x.lanes == 1 else None
    assert isinstance(x, LaneIndex)
    return _of_one(name, x, y, swapped=False) if y.lanes == 1 else None


def _of_two(name: str, x: LaneIndex, y: LaneIndex) -> IrValue | None:
    if name == "add":
        return x.moved(x.start + y.start, x.step + y.step)
    return x.moved(x.start - y.start, x.step - y.step) if name == "sub" else None


def _of_one(name: str, x: LaneIndex, y: IrValue, swapped: bool) -> IrValue | None:
    if name == "add":
        return x.moved(x.start + y, x.step)
    if name == "sub":
        return x.moved(y - x.start, -x.step) if swapped else x.moved(x.start - y, x.step)
    if name == "mul" and y.is_constant:
        return x.moved(x.start * y, x.step * int(y.name))
    return None


@dataclass(frozen=True)
class _Turns:
    """How the turns of a loop are written. ``sizes``: lanes of its vectors, and of those for what is left."""

    turn: Turn
    combine: Combine
    sizes: tuple[int, int]
    straight: bool


class LaneLoops:
    """Writes loops over ``width`` lanes: as many values of the widest type in use as a register has."""

    def __init__(self, b: Builder, width: int, least: int, masks: bool = True) -> None:
        self.b = b
        self.masks = masks and host().has_masks
        """Whether a known number of turns that fill no vector are one under a mask."""
        self.width = width
        self.least = least
        """Lanes that are written at once of what is left; less under a mask."""
        self.mask: IrValue | None = None
        """The lanes that the code at hand is for; None: all of them."""

    def loop(self, start: IrValue, stop: IrValue, body: Callable[[IrValue], None], side: int, straight: bool) -> None:
        """``side``: vectors that are computed side by side. ``straight``: a known length is written without loops."""

        def turn(i: IrValue, _: Sequence[IrValue]) -> Sequence[IrValue]:
            body(i)
            return ()

        sizes = side * self.width, self.least
        self._run(start, stop, [], _Turns(turn, lambda _, x, y: x, sizes, straight))

    def fold(
        self, stop: IrValue, neutral: Sequence[IrValue], turn: Turn, combine: Combine, width: int
    ) -> Sequence[IrValue]:
        """What ``turn`` makes of ``neutral``, with which each lane starts; ``combine`` puts the lanes together."""
        start = self.b.const(0, "i64")
        length, side = _length(start, stop), ACCUMULATORS
        while side > 1 and length is not None and length < side * width:
            side //= 2
        return self._run(start, stop, neutral, _Turns(turn, combine, (side * width, width), straight=False))

    def _run(self, at: IrValue, stop: IrValue, carries: Sequence[IrValue], turns: _Turns) -> Sequence[IrValue]:
        """All turns, those that fill vectors first; the carries, each of one lane."""
        known = _length(at, stop) is not None
        for lanes in dict.fromkeys(turns.sizes if known else turns.sizes[:1]):
            if (length := _length(at, stop)) is None or length >= lanes:
                carries = self._narrowed(carries, lanes, turns.combine)
                at, carries = self._whole(at, stop, lanes, carries, turns)
        carries = (self._rest if known else self._unknown_rest)(at, stop, carries, turns)
        return self._narrowed(carries, 1, turns.combine)

    def _narrowed(self, carries: Sequence[IrValue], lanes: int, combine: Combine) -> Sequence[IrValue]:
        """The carries of ``lanes`` lanes. The first ones, which are neutral, are of one."""
        wide = [self.b.splat(c, lanes) if c.lanes == 1 else c for c in carries]
        return [self._halved(n, c, lanes, combine) for n, c in enumerate(wide)]

    def _halved(self, n: int, carry: IrValue, lanes: int, combine: Combine) -> IrValue:
        while (half := carry.lanes // 2) >= lanes:
            carry = combine(n, self.b.part(carry, 0, half), self.b.part(carry, half, half))
        return carry

    def _whole(
        self, at: IrValue, stop: IrValue, lanes: int, carries: Sequence[IrValue], turns: _Turns
    ) -> tuple[IrValue, Sequence[IrValue]]:
        """The turns that fill vectors of ``lanes`` lanes; where they end."""
        b, length = self.b, _length(at, stop)

        def step(i: IrValue, inner: Sequence[IrValue]) -> Sequence[IrValue]:
            return turns.turn(LaneIndex(b, i, lanes), inner)

        if length is None:
            end = at + ((stop - at) & -lanes)
        else:
            end = b.const(int(at.name) + length // lanes * lanes, "i64")
        if length is None or length // lanes > (STRAIGHT if turns.straight else 1):
            return end, b.carry(at, end, carries, step, step=lanes)
        for n in range(int(at.name), int(end.name), lanes):
            carries = step(b.const(n, "i64"), carries)
        return end, carries

    def _rest(self, at: IrValue, stop: IrValue, carries: Sequence[IrValue], turns: _Turns) -> Sequence[IrValue]:
        """A few turns: one vector, if need be under a mask, or, without masks, several. Carries keep their lanes under
        one, so that these are put together in the same order, whatever is left."""
        while (length := int(stop.name) - int(at.name)) > 0:
            lanes = 1 << ((length - 1).bit_length() if self.masks else length.bit_length() - 1)
            if self.masks:
                lanes = max([lanes, *[min(c.lanes, turns.sizes[-1]) for c in carries]])
            carries = self._narrowed(carries, lanes, turns.combine)
            mask = self.b.numbers([n < length for n in range(lanes)], "i1") if lanes > length else None
            carries = self._masked(mask, at, lanes, carries, turns.turn)
            at = self.b.const(int(at.name) + lanes, "i64")
        return carries

    def _unknown_rest(self, at: IrValue, stop: IrValue, carries: Sequence[IrValue], turns: _Turns) -> Sequence[IrValue]:
        b, lanes = self.b, turns.sizes[-1]
        if not host().has_masks:
            return b.carry(at, stop, self._narrowed(carries, 1, turns.combine), turns.turn)

        def step(i: IrValue, inner: Sequence[IrValue]) -> Sequence[IrValue]:
            left = b.convert("trunc", b.intrinsic("umin", stop - i, b.const(lanes, "i64")), "i8")
            mask = b.test("icmp ugt", left, b.numbers(range(lanes), "i8"))
            return self._masked(mask, i, lanes, inner, turns.turn)

        return b.carry(at, stop, self._narrowed(carries, lanes, turns.combine), step, step=lanes)

    def _masked(
        self, mask: IrValue | None, at: IrValue, lanes: int, carries: Sequence[IrValue], turn: Turn
    ) -> Sequence[IrValue]:
        if lanes == 1:
            return turn(at, carries)
        self.mask = mask
        after = turn(LaneIndex(self.b, at, lanes), carries)
        self.mask = None
        if mask is None:
            return after
        return [self.b.select(mask, new, old) for new, old in zip(after, carries, strict=True)]


def _length(start: IrValue, stop: IrValue) -> int | None:
    """The number of turns, if it is known."""
    known = start.name.isdecimal() and stop.name.isdecimal()
    return int(stop.name) - int(start.name) if known else None
