"""What a loop does with memory between its turns: places that move on, and carries that have two of them by turns.

Knows plans; writes no steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from polyax_cpu.llvm import Builder, IrValue
from polyax_cpu.places import SMALL, Frame, copy, sizes
from polyax_kernels.plan.plan import Inner, LoopStep, Ref


def pairs_of(inner: Inner) -> list[tuple[Ref | None, Ref | None]]:
    """The places of a plan within a loop, in even and in odd turns."""
    return list(zip(inner.even, inner.odd, strict=True))


def stretches(
    b: Builder,
    inits: Sequence[IrValue],
    stretch: int,
    test: Callable[[list[IrValue]], IrValue],
    body: Callable[[list[IrValue]], list[IrValue]],
    ask: Callable[[], None],
) -> list[IrValue]:
    """``while test(carries): carries = body(carries)``, which counts its turns in the first carry, with ``ask()``
    behind each ``stretch`` of them.

    Inside is a plain loop, whose values stay in registers around a call that is rarely reached. From its test a way
    leads to the end on which nothing else is asked: searches of a few turns are mostly there.
    """
    before, turn, asked, end = b.block, b.fresh("turn"), b.fresh("asked"), b.fresh("end")
    outer, outer_at, first = b.head(inits)
    stop = first[0] + stretch
    inner, inner_at, carries = b.head(first)
    b.branch(test(carries), turn, end)
    b.start(turn)
    new = body(carries)
    b.phis(inner_at, carries, {outer: first, b.block: new})
    b.branch(new[0] < stop, inner, asked)
    b.start(asked)
    ask()
    b.phis(outer_at, first, {before: inits, b.block: new})
    b.jump(outer)
    b.start(end)
    return carries


class Turning:
    """The places of a loop's turns: those that are the same in all turns, those that move on, and pairs of places that
    a carry has by turns. Small pairs are two locals, of which one is copied to the other; larger ones are exchanged.
    """

    def __init__(self, b: Builder, step: LoopStep, outer: Frame) -> None:
        self.b = b
        self.outer = outer
        self.step = step
        moving = {n for n, _ in step.strides}
        plan = step.body.plan
        self.local: dict[tuple[Ref, Ref], tuple[IrValue, int]] = {}
        self.written: set[tuple[Ref, Ref]] = set()
        """Locals of the first place of a pair, and of places that never move; and which of these the loop writes to."""
        self.pairs: list[tuple[Ref, Ref]] = []
        """Larger pairs."""
        self.holds = b.alloca("i8", 1)
        """What the test says."""
        if step.holds is not None:
            self.local[step.holds, step.holds] = self.holds, 1
        for _, inner in step.inners:
            of_body = inner is step.body
            for n, (nbytes, (even, odd)) in enumerate(zip(sizes(inner), pairs_of(inner), strict=True)):
                if even is None or odd is None or (of_body and n in moving):
                    continue
                self.known(even, odd, nbytes, n < len(inner.plan.inputs))
                if of_body and n < len(plan.inputs) and (even != odd or n in plan.overwritten):
                    self.written.add((even, odd))

    def known(self, even: Ref, odd: Ref, nbytes: int, is_input: bool) -> None:
        if not is_input or (even, odd) in self.local or (even, odd) in self.pairs:
            return
        if nbytes <= SMALL:
            b = self.b
            self.local[even, odd] = b.alloca("i8", max(1, nbytes)), nbytes
            if even != odd:
                self.local[odd, even] = b.alloca("i8", max(1, nbytes)), nbytes
        elif even != odd:
            self.pairs.append((even, odd))

    def enter(self) -> None:
        for (even, odd), (pointer, nbytes) in self.local.items():
            if self._is_first(even, odd):
                copy(self.b, self.outer.at(even), pointer, nbytes)

    def _is_first(self, even: Ref, odd: Ref) -> bool:
        """Whether a local has a value before the first turn."""
        if even == odd:
            return even != self.step.holds
        return (even, odd) in self.written

    def swapped(self) -> list[IrValue]:
        return [self.outer.at(ref) for pair in self.pairs for ref in pair]

    def place(self, even: Ref | None, odd: Ref | None, carries: Sequence[IrValue], stride: int = 0) -> IrValue | None:
        """Where a place of the body or the test is in this turn."""
        if even is None or odd is None:
            return None
        if stride:
            return self.b.at(self.outer.at(even), carries[0] * stride, "i8")
        if (even, odd) in self.local:
            return self.local[even, odd][0]
        for n, pair in enumerate(self.pairs):
            if pair in ((even, odd), (odd, even)):
                return carries[1 + 2 * n + (pair == (odd, even))]
        assert even == odd, "each pair of places is one of a carry"
        return self.outer.at(even)

    def turn(self, carries: Sequence[IrValue]) -> list[IrValue]:
        """What the next turn sees: new values at the first places."""
        for (even, odd), (pointer, nbytes) in self.local.items():
            if even != odd and (even, odd) in self.written:
                copy(self.b, self.local[odd, even][0], pointer, nbytes)
        rest = carries[1:]
        return [x for n in range(0, len(rest), 2) for x in (rest[n + 1], rest[n])]

    def leave(self, odd: IrValue) -> None:
        """The last values go to where they are looked for."""
        b = self.b
        for (even, other), (pointer, nbytes) in self.local.items():
            if (even, other) in self.written:
                target = self.outer.at(even)
                target = target if even == other else b.select(odd, self.outer.at(other), target)
                copy(self.b, pointer, target, nbytes)
