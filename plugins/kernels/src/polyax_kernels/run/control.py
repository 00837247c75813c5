"""Loops and branches walked from Python: steps run on windows of the outer memory, which the plan has laid out."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

import numpy as np

from polyax.ir import blame
from polyax.runtime.contract.queue import check_wanted
from polyax_kernels.plan.plan import BranchStep, Inner, LoopStep, Ref
from polyax_kernels.run.executable import PlanExecutable, step_facts

_BOOL, _INT32 = np.dtype(bool), np.dtype("int32")
Windows = list[Any]


def control_runner(executable: PlanExecutable, step: LoopStep | BranchStep) -> Callable[[Sequence[Any]], None]:
    """The function of the bases that runs ``step``."""
    return _Loop(executable, step) if isinstance(step, LoopStep) else _Branch(executable, step)


Stop = tuple[Any, Sequence[Any]]
"""A step that is done for several members of a group at once, and what one of them works on there."""


def waits(steps: Sequence[Any]) -> bool:
    """Whether members wait for each other in one of the steps."""
    return any(getattr(step, "waits", False) for step in steps)


def works(steps: Sequence[Any]) -> bool:
    """Whether members compute anything on their way from stop to stop."""
    return any(getattr(step, "works", True) for step in steps)


def walk(steps: Sequence[Any], bases: Sequence[Any]) -> Generator[Stop]:
    """Runs steps; those that are done for several members at once are left to whoever asks for what comes next."""
    for step in steps:
        if getattr(step, "stops", False):
            yield from step.walk(bases)
        else:
            step(bases)


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


class _Control:
    """A step that runs others: those of its inner plans, one plan after the other."""

    def __init__(self, inners: Sequence[_Inner]) -> None:
        self.stops = self.waits = any(waits(inner.steps) for inner in inners)
        self.works = not self.stops or any(works(inner.steps) for inner in inners)

    def turns(self, bases: Sequence[Any]) -> Generator[tuple[_Inner, Windows]]:
        """The plans in the order in which they run, each once the one before it has."""
        raise NotImplementedError

    def __call__(self, bases: Sequence[Any]) -> None:
        step = None
        try:
            for inner, windows in self.turns(bases):
                for step in inner.steps:
                    step(windows)
        except BaseException as e:
            blame.about(e, **step_facts(getattr(step, "step", None)))
            raise

    def walk(self, bases: Sequence[Any]) -> Generator[Stop]:
        for inner, windows in self.turns(bases):
            yield from walk(inner.steps, windows)


class _Branch(_Control):
    def __init__(self, executable: PlanExecutable, step: BranchStep) -> None:
        self.peek = executable.peek
        self.index = step.index
        self.branches = [_Inner(executable, inner) for inner in step.branches]
        super().__init__(self.branches)

    def turns(self, bases: Sequence[Any]) -> Generator[tuple[_Inner, Windows]]:
        branch = self.branches[int(self.peek(bases[self.index.base], self.index.offset, _INT32))]
        yield branch, branch.windows(bases)[0]


class _Loop(_Control):
    def __init__(self, executable: PlanExecutable, step: LoopStep) -> None:
        self.peek = executable.peek
        self.step = step
        self.body = _Inner(executable, step.body)
        self.test = None if step.test is None else _Inner(executable, step.test)
        self.before = executable.runners(step.before)
        self.ends = [executable.runners(copies) for copies in step.ends]
        self.launches = self._launches()
        super().__init__([self.body] if self.test is None else [self.body, self.test])

    def _launches(self) -> int:
        """How many launches it is, if that is known and it is nothing else; else 0."""
        each = [getattr(runner, "launches", 0) for runner in self.body.steps]
        known = self.test is None and self.step.length is not None and all(each)
        return self.step.length * sum(each) if known and self.step.length else 0

    def turns(self, bases: Sequence[Any]) -> Generator[tuple[_Inner, Windows]]:
        for copy in self.before:
            copy(bases)
        test, strides = self.test, self.step.strides
        tests = test and test.windows(bases)
        frames = self.body.windows(bases, [n for n, _ in strides])
        rows = [(frames[0][n], nbytes) for n, nbytes in strides]
        turn = 0
        while turn != self.step.length:
            check_wanted()
            if test is not None and tests is not None:
                yield test, tests[turn % 2]
                if not self.holds(bases):
                    break
            yield self.body, frames[turn % 2]
            for row, nbytes in rows:
                row.advance(nbytes)
            turn += 1
        for copy in self.ends[turn % 2]:
            copy(bases)

    def holds(self, bases: Sequence[Any]) -> bool:
        flag = self.step.holds
        assert flag is not None
        return bool(self.peek(bases[flag.base], flag.offset, _BOOL))
