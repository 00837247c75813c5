"""Programs within plans: loops and branches, walked from Python by any executable that knows windows of memory.

The inner programs are executables of their own, whose steps run on memory that is given to them: constants and slices
of the outer arrays are windows, and what an inner program computes is written to its place in the outer result where
that is possible. Nothing here knows a device.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any, Protocol

import numpy as np

from polyax.ir.jaxpr import ClosedJaxpr, walk_eqns
from polyax_kernels.lowering import WhyNot, always
from polyax_kernels.plan import CallStep, Plan, Ref

Run = Callable[[Sequence[Any]], None]


class Machine(Protocol):
    """What an executable offers to programs within its steps."""

    plan: Plan
    shelves: Sequence[Any]
    literals: Sequence[Any]
    steps: Sequence[Run]

    def inner(self, program: ClosedJaxpr, donated: tuple[bool, ...]) -> Machine:
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


@dataclass(frozen=True)
class Control:
    """Control flow: ``make(machine, step)`` gives the function that runs the step on the memory of its executable's
    bases. ``reads_back``: on the way, values that decide how it goes on are read on the host."""

    make: Callable[[Machine, CallStep], Run]
    turns: Callable[..., int] = lambda **_: 1
    """How often the inner programs run, as far as is known."""
    carries: Callable[..., range] = lambda **_: range(0)
    """The arguments that may be in the memory of the first results."""
    reads_back: bool = False
    why_not: WhyNot = always
    priority: int = 0

    def work(self, params: dict[str, Any]) -> int:
        """About how many elements are computed: whether it is worth a thread of its own."""
        programs = [p for x in params.values() for p in (x if isinstance(x, tuple) else (x,))]
        bodies = [p for p in programs if isinstance(p, ClosedJaxpr)]
        return self.turns(**params) * sum(sum(v.aval.size for v in e.outs) for p in bodies for e in walk_eqns(p.jaxpr))


class Frame:
    """The memory of an inner program: its bases, and which results are copied to where they are wanted."""

    __slots__ = ("bases", "copies")

    def __init__(self, bases: list[Any], copies: list[tuple[Any, Any, int]]) -> None:
        self.bases = bases
        self.copies = copies


class Program:
    """An inner program, ready to run on given memory."""

    def __init__(self, machine: Machine, program: ClosedJaxpr, donated: tuple[bool, ...] = ()) -> None:
        self.machine = machine
        executable = machine.inner(program, donated or (False,) * len(program.in_avals))
        plan = executable.plan
        self.steps = list(executable.steps)
        self.literals = list(executable.literals)
        self.shelves = list(executable.shelves)
        self.outputs = plan.outputs
        self.overwritten = plan.overwritten
        self.sizes = [a.nbytes for a in program.out_avals]
        self.first_fresh = len(plan.inputs)
        fresh = range(self.first_fresh, self.first_fresh + len(plan.fresh))
        self.direct = [b in fresh and plan.outputs.count(b) == 1 for b in plan.outputs]
        """Results that can be computed at any place."""

    def frame(self, inputs: Sequence[Any], targets: Sequence[Any | None], like: Frame | None = None) -> Frame:
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
        return Frame(bases, [(bases[b], target, n) for b, target, n in copies if bases[b] is not target])

    def run(self, frame: Frame) -> None:
        bases = frame.bases
        for step in self.steps:
            step(bases)
        for source, target, nbytes in frame.copies:
            self.machine.move(source, target, nbytes)


class Carries:
    """Where the carries of a loop live: each at one place if the body can leave it or change it there, else at two
    places in turn."""

    def __init__(self, body: Program, first: int, count: int) -> None:
        self.body = body
        self.machine = body.machine
        self.sizes = body.sizes[:count]
        self.stay = [out == first + k for k, out in enumerate(body.outputs[:count])]
        self.written = [not s or first + k in body.overwritten for k, s in enumerate(self.stay)]
        """Those that aren't where they began."""

    def begin(self, init: Sequence[Any], ends: Sequence[Any], swapped: bool) -> tuple[list[Any], list[Any]]:
        """The places of the carries before and after the first step; the initial values are at the former. Those of
        carries with two places are among ``ends`` before it, or, if ``swapped``, after it."""
        before: list[Any] = []
        after: list[Any] = []
        for start, end, stays, written, nbytes in zip(init, ends, self.stay, self.written, self.sizes, strict=True):
            here = there = end if written else start
            if not stays:
                there = self.machine.shelf(nbytes).take()
                here, there = (there, here) if swapped else (here, there)
            if here is not start:
                self.machine.move(start, here, nbytes)
            before.append(here)
            after.append(there)
        return before, after

    def finish(self, places: Sequence[Any], ends: Sequence[Any]) -> None:
        """Brings what isn't there yet to where the results are wanted."""
        for place, end, nbytes in zip(places, ends, self.sizes, strict=True):
            if place is not end:
                self.machine.move(place, end, nbytes)


class _Places:
    """Where a step's operands and results are, as windows of the outer memory; the same window for the same place."""

    def __init__(self, machine: Machine, step: CallStep) -> None:
        self.machine = machine
        self.args = self._sized(step.args, step.arg_avals)
        self.outs = self._sized(step.outs, step.out_avals)

    def _sized(self, refs: Sequence[Ref], avals: Sequence[Any]) -> list[tuple[int, int, int]]:
        return [(r.base, r.offset, a.nbytes) for r, a in zip(refs, avals, strict=True)]

    def windows(self, bases: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        window = self.machine.window
        places = {p: window(bases[p[0]], p[1], p[2]) for p in (*self.args, *self.outs)}
        return [places[p] for p in self.args], [places[p] for p in self.outs]


class _Step(ABC):
    """A step of an outer plan that runs programs."""

    def __init__(self, machine: Machine, step: CallStep) -> None:
        self.machine = machine
        self.places = _Places(machine, step)
        self.prepare(**step.params)

    @abstractmethod
    def prepare(self, **params: Any) -> None:
        """Works out all that doesn't depend on memory."""

    @abstractmethod
    def run(self, args: list[Any], outs: list[Any]) -> None:
        """Runs on windows of the operands and results."""

    def __call__(self, bases: Sequence[Any]) -> None:
        self.run(*self.places.windows(bases))


class _Cond(_Step):
    def prepare(self, *, branches: Sequence[ClosedJaxpr]) -> None:
        self.branches = [Program(self.machine, b) for b in branches]

    def run(self, args: list[Any], outs: list[Any]) -> None:
        branch = self.branches[int(self.machine.peek(args[0], np.dtype("int32")))]
        branch.run(branch.frame(args[1:], outs))


class _While(_Step):
    def prepare(
        self, *, cond_jaxpr: ClosedJaxpr, cond_nconsts: int, body_jaxpr: ClosedJaxpr, body_nconsts: int
    ) -> None:
        self.consts, self.fixed = cond_nconsts, cond_nconsts + body_nconsts
        carried = len(body_jaxpr.out_avals)
        self.cond = Program(self.machine, cond_jaxpr)
        self.body = Program(self.machine, body_jaxpr, (False,) * body_nconsts + (True,) * carried)
        self.carries = Carries(self.body, body_nconsts, carried)

    def run(self, args: list[Any], outs: list[Any]) -> None:
        of_cond, of_body, init = args[: self.consts], args[self.consts : self.fixed], args[self.fixed :]
        here, there = self.carries.begin(init, outs, swapped=False)
        holds = self.machine.shelf(1).take()
        test = self.cond.frame([*of_cond, *here], [holds])
        body = self.body.frame([*of_body, *here], there)
        turns = (
            (test, body, here),
            (
                self.cond.frame([*of_cond, *there], [holds], test),
                self.body.frame([*of_body, *there], here, body),
                there,
            ),
        )
        for test, body, places in cycle(turns):
            self.cond.run(test)
            if not self.machine.peek(holds, _BOOL):
                return self.carries.finish(places, outs)
            self.body.run(body)


class _Scan(_Step):
    def prepare(
        self, *, jaxpr: ClosedJaxpr, length: int, num_carry: int, num_consts: int, reverse: bool, unroll: int = 1
    ) -> None:
        num_xs = len(jaxpr.in_avals) - num_consts - num_carry
        donated = (False,) * num_consts + (True,) * num_carry + (False,) * num_xs
        self.body = Program(self.machine, jaxpr, donated)
        self.sizes = num_consts, num_carry, num_xs
        self.carries = Carries(self.body, num_consts, num_carry)
        self.rows = [a.nbytes for a in (*jaxpr.in_avals[num_consts + num_carry :], *jaxpr.out_avals[num_carry:])]
        self.length, self.reverse = length, reverse

    def run(self, args: list[Any], outs: list[Any]) -> None:
        num_consts, num_carry, num_xs = self.sizes
        consts, init, xs = args[:num_consts], args[num_consts : num_consts + num_carry], args[num_consts + num_carry :]
        ends, ys = outs[:num_carry], outs[num_carry:]
        if not self.length:
            return self.carries.finish(init, ends)
        odd = self.length % 2 == 1
        here, there = self.carries.begin(init, ends, swapped=odd)
        rows = self._rows([*xs, *ys])
        xs, ys = rows[:num_xs], rows[num_xs:]
        forth = self.body.frame([*consts, *here, *xs], [*there, *ys])
        back = self.body.frame([*consts, *there, *xs], [*here, *ys], forth)
        self._turn((forth, back), rows)
        self.carries.finish(there if odd else here, ends)

    def _turn(self, frames: tuple[Frame, Frame], rows: Sequence[Any]) -> None:
        strides = [(row, -n if self.reverse else n) for row, n in zip(rows, self.rows, strict=True) if n]
        run = self.body.run
        for frame in islice(cycle(frames), self.length):
            run(frame)
            for row, stride in strides:
                row.advance(stride)

    def _rows(self, stacks: Sequence[Any]) -> list[Any]:
        """The windows of the rows that the first step works on."""
        first = self.length - 1 if self.reverse else 0
        window = self.machine.window
        return [window(s, first * n, n) for s, n in zip(stacks, self.rows, strict=True)]


_BOOL = np.dtype(bool)
UNKNOWN_TURNS = 1000


def _carried_by_scan(*, num_consts: int, num_carry: int, **_: Any) -> range:
    return range(num_consts, num_consts + num_carry)


def _carried_by_while(*, cond_nconsts: int, body_nconsts: int, body_jaxpr: ClosedJaxpr, **_: Any) -> range:
    first = cond_nconsts + body_nconsts
    return range(first, first + len(body_jaxpr.out_avals))


CONTROL: dict[str, Control] = {
    "cond": Control(_Cond, reads_back=True),
    "while": Control(_While, lambda **_: UNKNOWN_TURNS, _carried_by_while, reads_back=True),
    "scan": Control(_Scan, lambda *, length, **_: length, _carried_by_scan),
}
"""The rules that all kernel backends share."""
