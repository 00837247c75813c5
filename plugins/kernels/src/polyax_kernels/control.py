"""Programs within plans: loops and branches, walked from Python by any executable that knows windows of memory.

The inner programs are executables of their own, whose steps run on memory that is given to them: constants and slices
of the outer arrays are windows, carries are handed from one run to the next, and what an inner program computes is
written to its place in the outer result where that is possible. Nothing here knows a device.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from polyax.ir.jaxpr import ClosedJaxpr, walk_eqns
from polyax_kernels.lowering import WhyNot, always
from polyax_kernels.memory import FREE
from polyax_kernels.plan import CallStep, Plan, Ref

Run = Callable[[Sequence[Any]], None]


class Machine(Protocol):
    """What an executable offers to programs within its steps."""

    plan: Plan
    shelves: Sequence[Any]
    literals: Sequence[Any]
    steps: Sequence[Run]
    overwritten: Sequence[int]

    def inner(self, program: ClosedJaxpr, donated: tuple[bool, ...]) -> Machine:
        """The executable of ``program``, which may write to the memory of inputs that are ``donated``."""
        ...

    def shelf(self, nbytes: int) -> Any:
        """Where memory comes from."""
        ...

    def window(self, base: Any, offset: int, nbytes: int) -> Any:
        """A part of a buffer, as a buffer."""
        ...

    def move(self, source: Any, target: Any, nbytes: int) -> None:
        """Copies the beginning of one buffer to that of another."""
        ...

    def peek(self, base: Any, dtype: np.dtype) -> Any:
        """The scalar at the beginning of a buffer; waits for it."""
        ...


@dataclass(frozen=True)
class Control:
    """Control flow: ``make(machine, step)`` gives the function that runs the step on the memory of its executable's
    bases. ``reads_back``: on the way, values that decide how it goes on are read on the host."""

    make: Callable[[Machine, CallStep], Run]
    turns: Callable[..., int] = lambda **_: 1
    """How often the inner programs run, as far as is known."""
    reads_back: bool = False
    why_not: WhyNot = always
    priority: int = 0

    def work(self, params: dict[str, Any]) -> int:
        """About how many elements are computed: whether it is worth a thread of its own."""
        programs = [p for x in params.values() for p in (x if isinstance(x, tuple) else (x,))]
        bodies = [p for p in programs if isinstance(p, ClosedJaxpr)]
        return self.turns(**params) * sum(sum(v.aval.size for v in e.outs) for p in bodies for e in walk_eqns(p.jaxpr))


class Program:
    """An inner program, ready to run on given memory."""

    def __init__(self, machine: Machine, program: ClosedJaxpr, donated: tuple[bool, ...] = ()) -> None:
        self.machine = machine
        executable = machine.inner(program, donated or (False,) * len(program.in_avals))
        plan = executable.plan
        self.steps = executable.steps
        self.literals = list(executable.literals)
        self.shelves = list(executable.shelves)
        self.overwritten = list(executable.overwritten)
        self.outputs = plan.outputs
        self.input_sizes = [a.nbytes for a in program.in_avals]
        self.sizes = [a.nbytes for a in program.out_avals]
        self.first_fresh = len(plan.inputs)
        fresh = range(self.first_fresh, self.first_fresh + len(plan.fresh))
        self.direct = [b in fresh and plan.outputs.count(b) == 1 for b in plan.outputs]
        """Results that can be computed at any place."""
        own = {*fresh, *self.overwritten}
        self.distinct = len(set(plan.outputs)) == len(plan.outputs) and own.issuperset(plan.outputs)
        """Whether no two results share memory, with each other or with an input that stays."""

    def __call__(self, inputs: Sequence[Any], targets: Sequence[Any | None]) -> list[Any]:
        """The buffers of the results: at their targets, where there are any. Donated inputs are consumed unless they
        are windows of somebody else's memory."""
        fresh: list[Any] = [None] * len(self.shelves)
        for base, direct, target in zip(self.outputs, self.direct, targets, strict=True):
            if direct and target is not None:
                fresh[base - self.first_fresh] = target
        bases = [*inputs, *(f or s.take() for f, s in zip(fresh, self.shelves, strict=True)), *self.literals]
        for n in self.overwritten:
            self._own(bases, n)
        for step in self.steps:
            step(bases)
        results = [bases[b] for b in self.outputs]
        for k, target in enumerate(targets):
            if target is not None and results[k] is not target:
                self.machine.move(results[k], target, self.sizes[k])
        return results

    def _own(self, bases: list[Any], n: int) -> None:
        """Puts a copy in place of memory that others see, since it will be written to."""
        old = bases[n]
        if old.seen == FREE and (self.distinct or sum(b is old for b in bases) == 1):
            return
        nbytes = self.input_sizes[n]
        bases[n] = self.machine.shelf(nbytes).take()
        self.machine.move(old, bases[n], nbytes)


class _Places:
    """Where a step's operands or results are, as windows of the outer memory."""

    def __init__(self, machine: Machine, refs: Sequence[Ref], avals: Sequence[Any]) -> None:
        self.machine = machine
        self.places = [(r.base, r.offset, a.nbytes) for r, a in zip(refs, avals, strict=True)]

    def of(self, bases: Sequence[Any]) -> list[Any]:
        window = self.machine.window
        return [window(bases[b], offset, nbytes) for b, offset, nbytes in self.places]


class _Step(ABC):
    """A step of an outer plan that runs programs."""

    def __init__(self, machine: Machine, step: CallStep) -> None:
        self.machine = machine
        self.args = _Places(machine, step.args, step.arg_avals)
        self.outs = _Places(machine, step.outs, step.out_avals)
        self.prepare(**step.params)

    @abstractmethod
    def prepare(self, **params: Any) -> None:
        """Works out all that doesn't depend on memory."""

    @abstractmethod
    def run(self, args: list[Any], outs: list[Any]) -> None:
        """Runs on windows of the operands and results."""

    def __call__(self, bases: Sequence[Any]) -> None:
        self.run(self.args.of(bases), self.outs.of(bases))


class _Cond(_Step):
    def prepare(self, *, branches: Sequence[ClosedJaxpr]) -> None:
        self.branches = [Program(self.machine, b) for b in branches]

    def run(self, args: list[Any], outs: list[Any]) -> None:
        self.branches[int(self.machine.peek(args[0], np.dtype("int32")))](args[1:], outs)


class _While(_Step):
    def prepare(
        self, *, cond_jaxpr: ClosedJaxpr, cond_nconsts: int, body_jaxpr: ClosedJaxpr, body_nconsts: int
    ) -> None:
        self.consts, self.fixed = cond_nconsts, cond_nconsts + body_nconsts
        carried = len(body_jaxpr.out_avals)
        self.cond = Program(self.machine, cond_jaxpr)
        self.body = Program(self.machine, body_jaxpr, (False,) * body_nconsts + (True,) * carried)
        self.nowhere = [None] * carried

    def run(self, args: list[Any], outs: list[Any]) -> None:
        of_cond, of_body, carry = args[: self.consts], args[self.consts : self.fixed], args[self.fixed :]
        while True:
            (holds,) = self.cond([*of_cond, *carry], [None])
            if not self.machine.peek(holds, np.dtype(bool)):
                break
            carry = self.body([*of_body, *carry], self.nowhere)
        for value, out, nbytes in zip(carry, outs, self.body.sizes, strict=True):
            self.machine.move(value, out, nbytes)


class _Scan(_Step):
    def prepare(
        self,
        *,
        jaxpr: ClosedJaxpr,
        length: int,
        num_carry: int,
        num_consts: int,
        reverse: bool,
        unroll: int = 1,
    ) -> None:
        num_xs = len(jaxpr.in_avals) - num_consts - num_carry
        donated = (False,) * num_consts + (True,) * num_carry + (False,) * num_xs
        self.body = Program(self.machine, jaxpr, donated)
        self.num_consts, self.num_carry = num_consts, num_carry
        self.x_sizes = [a.nbytes for a in jaxpr.in_avals[num_consts + num_carry :]]
        self.y_sizes = self.body.sizes[num_carry:]
        self.order = range(length - 1, -1, -1) if reverse else range(length)
        self.last = 0 if reverse else length - 1

    def run(self, args: list[Any], outs: list[Any]) -> None:
        window = self.machine.window
        consts = args[: self.num_consts]
        carry, xs = args[self.num_consts : self.num_consts + self.num_carry], args[self.num_consts + self.num_carry :]
        carry_outs, ys = outs[: self.num_carry], outs[self.num_carry :]
        nowhere = [None] * self.num_carry
        for n in self.order:
            slices = [window(x, n * size, size) for x, size in zip(xs, self.x_sizes, strict=True)]
            rows = [window(y, n * size, size) for y, size in zip(ys, self.y_sizes, strict=True)]
            ends = carry_outs if n == self.last else nowhere
            carry = self.body([*consts, *carry, *slices], [*ends, *rows])[: self.num_carry]
        if not self.order:
            for value, out, nbytes in zip(carry, carry_outs, self.body.sizes, strict=False):
                self.machine.move(value, out, nbytes)


UNKNOWN_TURNS = 1000

CONTROL: dict[str, Control] = {
    "cond": Control(_Cond, reads_back=True),
    "while": Control(_While, lambda **_: UNKNOWN_TURNS, reads_back=True),
    "scan": Control(_Scan, lambda *, length, **_: length),
}
"""The rules that all kernel backends share."""
