"""Loops as steps of plans: where carries live, and what each turn works on. Walked from Python; a backend may walk the
same layout in native code.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any

import numpy as np

from polyax_kernels.plan.programs import InnerFrame, InnerProgram, Step

_BOOL = np.dtype(bool)


class Carries:
    """Where the carries of a loop live: each at one place if the body can leave it or change it there, else at two
    places in turn."""

    def __init__(self, body: InnerProgram, first: int, count: int) -> None:
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


@dataclass(frozen=True)
class Turns:
    """A loop whose memory is laid out: what even and odd turns work on."""

    frames: tuple[InnerFrame, InnerFrame]
    places: tuple[list[Any], list[Any]]
    """The carries before such a turn."""
    strides: Sequence[tuple[Any, int]] = ()
    """Windows that move on after each turn, and by how much."""
    tests: tuple[InnerFrame, InnerFrame] | None = None
    """Of the program that says whether there is such a turn."""
    holds: Any = None
    """Its answer."""


class Loop(Step):
    """A step that runs a program again and again."""

    body: InnerProgram
    carries: Carries
    test: InnerProgram | None = None
    length: int | None = None
    """How often, if that is known."""

    @abstractmethod
    def layout(self, args: list[Any], outs: list[Any]) -> Turns:
        """The memory of all turns; the initial carries are brought to their places."""

    def finish(self, turns: Turns, odd: bool, outs: Sequence[Any]) -> None:
        """Brings the last carries to where results are wanted."""
        self.carries.finish(turns.places[odd], outs)


class While(Loop):
    def prepare(self, params: Mapping[str, Any]) -> None:
        fixed, carried = params["body_nconsts"], len(params["body_jaxpr"].out_avals)
        self.consts = params["cond_nconsts"]
        self.fixed = self.consts + fixed
        self.test = InnerProgram(self.machine, params["cond_jaxpr"])
        self.body = InnerProgram(self.machine, params["body_jaxpr"], (False,) * fixed + (True,) * carried)
        self.carries = Carries(self.body, fixed, carried)

    def layout(self, args: list[Any], outs: list[Any]) -> Turns:
        of_test, of_body, init = args[: self.consts], args[self.consts : self.fixed], args[self.fixed :]
        here, there = self.carries.begin(init, outs, swapped=False)
        holds = self.machine.shelf(1).take()
        assert self.test is not None
        tests = self.test.pair([*of_test, *here], [*of_test, *there], [holds], [holds])
        frames = self.body.pair([*of_body, *here], [*of_body, *there], there, here)
        return Turns(frames, (here, there), (), tests, holds)

    def run(self, args: list[Any], outs: list[Any]) -> None:
        turns = self.layout(args, outs)
        assert turns.tests is not None and self.test is not None
        for odd, test, frame in cycle(zip((False, True), turns.tests, turns.frames, strict=True)):
            self.test.run(test)
            if not self.machine.peek(turns.holds, _BOOL):
                return self.finish(turns, odd, outs)
            self.body.run(frame)


class Scan(Loop):
    def prepare(self, params: Mapping[str, Any]) -> None:
        jaxpr, num_consts, num_carry = params["jaxpr"], params["num_consts"], params["num_carry"]
        num_xs = len(jaxpr.in_avals) - num_consts - num_carry
        donated = (False,) * num_consts + (True,) * num_carry + (False,) * num_xs
        self.body = InnerProgram(self.machine, jaxpr, donated)
        self.sizes = num_consts, num_carry, num_xs
        self.carries = Carries(self.body, num_consts, num_carry)
        self.rows = [a.nbytes for a in (*jaxpr.in_avals[num_consts + num_carry :], *jaxpr.out_avals[num_carry:])]
        self.count = self.length = params["length"]
        self.reverse = params["reverse"]

    def layout(self, args: list[Any], outs: list[Any]) -> Turns:
        num_consts, num_carry, num_xs = self.sizes
        consts, init, xs = args[:num_consts], args[num_consts : num_consts + num_carry], args[num_consts + num_carry :]
        here, there = self.carries.begin(init, outs[:num_carry], swapped=self.count % 2 == 1)
        rows = self._rows([*xs, *outs[num_carry:]])
        xs, ys = rows[:num_xs], rows[num_xs:]
        frames = self.body.pair([*consts, *here, *xs], [*consts, *there, *xs], [*there, *ys], [*here, *ys])
        strides = [(row, -n if self.reverse else n) for row, n in zip(rows, self.rows, strict=True) if n]
        return Turns(frames, (here, there), strides)

    def run(self, args: list[Any], outs: list[Any]) -> None:
        turns = self.layout(args, outs)
        run, strides = self.body.run, turns.strides
        for frame in islice(cycle(turns.frames), self.count):
            run(frame)
            for row, stride in strides:
                row.advance(stride)
        self.finish(turns, self.count % 2 == 1, outs)

    def finish(self, turns: Turns, odd: bool, outs: Sequence[Any]) -> None:
        super().finish(turns, odd, outs[: self.sizes[1]])

    def _rows(self, stacks: Sequence[Any]) -> list[Any]:
        """The windows of the rows that the first step works on."""
        first = self.count - 1 if self.reverse else 0
        window = self.machine.window
        return [window(s, first * n, n) for s, n in zip(stacks, self.rows, strict=True)]
