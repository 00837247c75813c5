"""Loops and branches walked from Python: steps run on windows of the outer memory, which the plan has laid out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count, cycle
from typing import Any

import numpy as np

from polyax_kernels.plan.plan import BranchStep, Inner, LoopStep, Ref
from polyax_kernels.run.executable import PlanExecutable

_BOOL, _INT32 = np.dtype(bool), np.dtype("int32")
Windows = list[Any]


def control_runner(executable: PlanExecutable, step: LoopStep | BranchStep) -> Callable[[Sequence[Any]], None]:
    """The function of the bases that runs ``step``."""
    return _Loop(executable, step) if isinstance(step, LoopStep) else _Branch(executable, step)


class _Inner:
    """A plan within a step, ready to run on windows."""

    def __init__(self, executable: PlanExecutable, inner: Inner) -> None:
        self.window = executable.window
        self.steps = executable.runners([*inner.plan.steps, *inner.copies])
        self.even, self.odd = inner.even, inner.odd

    def windows(self, bases: Sequence[Any], moving: Sequence[int] = ()) -> tuple[Windows, Windows]:
        """Its places in even and odd turns; those that move are one in both."""
        even, odd = ([self.place(bases, ref) for ref in refs] for refs in (self.even, self.odd))
        for n in moving:
            odd[n] = even[n]
        return even, odd

    def place(self, bases: Sequence[Any], ref: Ref | None) -> Any:
        return None if ref is None else self.window(bases[ref.base], ref.offset)

    def run(self, windows: Windows) -> None:
        for step in self.steps:
            step(windows)


class _Branch:
    def __init__(self, executable: PlanExecutable, step: BranchStep) -> None:
        self.peek = executable.peek
        self.index = step.index
        self.branches = [_Inner(executable, inner) for inner in step.branches]

    def __call__(self, bases: Sequence[Any]) -> None:
        branch = self.branches[int(self.peek(bases[self.index.base], self.index.offset, _INT32))]
        branch.run(branch.windows(bases)[0])


class _Loop:
    def __init__(self, executable: PlanExecutable, step: LoopStep) -> None:
        self.peek = executable.peek
        self.step = step
        self.body = _Inner(executable, step.body)
        self.test = None if step.test is None else _Inner(executable, step.test)
        self.before = executable.runners(step.before)
        self.ends = [executable.runners(copies) for copies in step.ends]

    def __call__(self, bases: Sequence[Any]) -> None:
        for copy in self.before:
            copy(bases)
        for copy in self.ends[self.turn(bases) % 2]:
            copy(bases)

    def turn(self, bases: Sequence[Any]) -> int:
        """All turns; returns how many there were."""
        run, strides = self.body.run, self.step.strides
        frames = self.body.windows(bases, [n for n, _ in strides])
        rows = [(frames[0][n], nbytes) for n, nbytes in strides]
        holds = self.holding(bases)
        for turn, windows in zip(count(), cycle(frames)):
            if not holds(turn):
                return turn
            run(windows)
            for row, nbytes in rows:
                row.advance(nbytes)
        raise AssertionError("turns are endless")

    def holding(self, bases: Sequence[Any]) -> Callable[[int], bool]:
        """Whether there is a turn of this number."""
        length, test, flag = self.step.length, self.test, self.step.holds
        if test is None or flag is None:
            assert length is not None
            return lambda turn: turn < length
        frames = test.windows(bases)

        def holds(turn: int) -> bool:
            test.run(frames[turn % 2])
            return bool(self.peek(bases[flag.base], flag.offset, _BOOL))

        return holds
