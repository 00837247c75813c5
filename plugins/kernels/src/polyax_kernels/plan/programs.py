"""Programs within plans, ready to run on memory that is given to them: what loops and branches are made of.

An inner program is an executable of its own. Its operands are windows of the outer memory, and what it computes is
written to its place in the outer result where that is possible. Nothing here knows a device.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from polyax.ir.jaxpr import ClosedJaxpr
from polyax_kernels.plan.plan import CallStep, Plan, Ref

Run = Callable[[Sequence[Any]], None]


class Inner(Protocol):
    """What is asked of the executable of an inner program."""

    plan: Plan
    literals: Sequence[Any]
    steps: Sequence[Run]


class Machine(Protocol):
    """What an executable offers to programs within its steps."""

    def inner(self, program: ClosedJaxpr, donated: tuple[bool, ...]) -> Inner:
        """The executable of ``program``. The memory of inputs that are ``donated`` may become that of the result of
        the same number among them."""
        ...

    def shelf(self, nbytes: int) -> Any:
        """Where memory comes from."""
        ...

    def window(self, base: Any, offset: int, nbytes: int) -> Any:
        """A part of a buffer, as a buffer that can be moved along."""
        ...

    def move(self, source: Any, target: Any, nbytes: int) -> None:
        """Copies the beginning of one buffer to that of another."""
        ...

    def peek(self, base: Any, dtype: np.dtype) -> Any:
        """The scalar at the beginning of a buffer; waits for it."""
        ...


class InnerFrame:
    """The memory of an inner program: its bases, and which results are copied to where they are wanted."""

    __slots__ = ("bases", "copies")

    def __init__(self, bases: list[Any], copies: list[tuple[int, Any, int]]) -> None:
        self.bases = bases
        self.copies = copies


class InnerProgram:
    """An inner program, ready to run on given memory."""

    def __init__(self, machine: Machine, program: ClosedJaxpr, donated: tuple[bool, ...] = ()) -> None:
        self.machine = machine
        executable = machine.inner(program, donated or (False,) * len(program.in_avals))
        plan = executable.plan
        self.steps: list[Any] = list(executable.steps)
        self.literals = list(executable.literals)
        arena = [plan.arena_bytes] if plan.arena_bytes else []
        self.shelves = [machine.shelf(n) for n in (*plan.fresh, *arena)]
        self.outputs = plan.outputs
        self.overwritten = plan.overwritten
        self.sizes = [a.nbytes for a in program.out_avals]
        self.first_fresh = len(plan.inputs)
        fresh = range(self.first_fresh, self.first_fresh + len(plan.fresh))
        self.direct = [b in fresh and plan.outputs.count(b) == 1 for b in plan.outputs]
        """Results that can be computed at any place."""

    def frame(self, inputs: Sequence[Any], targets: Sequence[Any | None], like: InnerFrame | None = None) -> InnerFrame:
        """Memory in which ``inputs`` are read and results end at ``targets``, where there are any; what lives in the
        program alone is where it is in the frame ``like``."""
        first = self.first_fresh
        scratch = like.bases[first : first + len(self.shelves)] if like else [None] * len(self.shelves)
        copies: list[tuple[int, Any, int]] = []
        for base, direct, target, nbytes in zip(self.outputs, self.direct, targets, self.sizes, strict=True):
            if direct and target is not None:
                scratch[base - first] = target
            elif target is not None:
                copies.append((base, target, nbytes))
        filled = [shelf.take() if s is None else s for s, shelf in zip(scratch, self.shelves, strict=True)]
        bases = [*inputs, *filled, *self.literals]
        return InnerFrame(bases, [(b, target, n) for b, target, n in copies if bases[b] is not target])

    def pair(self, even: Sequence[Any], odd: Sequence[Any], after: Sequence[Any], before: Sequence[Any]) -> Any:
        """The frames of even and odd turns, which leave their results ``after`` and ``before``."""
        first = self.frame(even, after)
        return first, self.frame(odd, before, first)

    def run(self, frame: InnerFrame) -> None:
        bases = frame.bases
        for step in self.steps:
            step(bases)
        for base, target, nbytes in frame.copies:
            self.machine.move(bases[base], target, nbytes)


class Places:
    """Where a step's operands and results are, as windows of the outer memory; the same window for the same place."""

    def __init__(self, machine: Machine, step: CallStep) -> None:
        self.machine = machine
        self.args = self._sized(step.args, step.arg_avals)
        self.outs = self._sized(step.outs, step.out_avals)

    def _sized(self, refs: Sequence[Ref], avals: Sequence[Any]) -> list[tuple[int, int, int]]:
        return [(r.base, r.offset, a.nbytes) for r, a in zip(refs, avals, strict=True)]

    def windows(self, bases: Sequence[Any] | Mapping[int, Any]) -> tuple[list[Any], list[Any]]:
        window = self.machine.window
        places = {p: window(bases[p[0]], p[1], p[2]) for p in (*self.args, *self.outs)}
        return [places[p] for p in self.args], [places[p] for p in self.outs]


class Step(ABC):
    """A step of an outer plan that runs programs."""

    def __init__(self, machine: Machine, step: CallStep) -> None:
        self.machine = machine
        self.places = Places(machine, step)
        self.prepare(step.params)

    @abstractmethod
    def prepare(self, params: Mapping[str, Any]) -> None:
        """Works out all that doesn't depend on memory."""

    @abstractmethod
    def run(self, args: list[Any], outs: list[Any]) -> None:
        """Runs on windows of the operands and results."""

    def __call__(self, bases: Sequence[Any]) -> None:
        self.run(*self.places.windows(bases))
