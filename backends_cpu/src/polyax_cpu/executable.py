"""Programs as native code: runs of kernels, products and copies become one table that one native call works off.

Loops and branches are steps themselves, which call out where a step needs Python. Other calls into Python (host
fallbacks) stand between runs of native steps. Knows plans; must not know how kernels are compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from time import perf_counter_ns
from typing import Any

from polyax.ir.aval import ShapedArray
from polyax.runtime.contract.backend import ChainLink, CompileOptions, Executable
from polyax.runtime.contract.calls import CallKind, NativeCall, later
from polyax.runtime.contract.queue import INLINE_COST
from polyax_cpu import pool
from polyax_cpu.calls.table import Runs, native_call, supported
from polyax_cpu.kernels import Cuts, compiling
from polyax_cpu.libraries.callouts import call_out
from polyax_cpu.loops import Made, native_control, too_large
from polyax_cpu.machine_code import Started
from polyax_cpu.steps import (
    MOST,
    PARALLEL_COST,
    Described,
    Table,
    Work,
    copying,
    cost_of,
    described,
    piece_of,
    piece_of_library,
)
from polyax_kernels.host.backend import HostExecutable, rows
from polyax_kernels.host.meeting import meets
from polyax_kernels.ir.kernel import Kernel
from polyax_kernels.plan.chain import chained, why_not_chained
from polyax_kernels.plan.journal import Journal
from polyax_kernels.plan.plan import CallStep, ControlStep, CopyStep, KernelStep, LoopStep, Plan, Step

SPEED = 100
"""How many times faster native code on all threads is than what queues reckon: a program of up to 100 microseconds runs
in the thread that asks for it, as handing it over takes 25 to 50, on few cores at the expense of its own threads."""
FORGETS = 8
"""A search that took long is taken for shorter by so much with each call that is."""
OFTEN = 50
"""How many usual calls cost a tenth of making the code of native ones."""


class CpuExecutable(HostExecutable):
    """A plan of which all runs of native steps are one call each."""

    def __init__(self, backend: Any, plan: Plan, options: CompileOptions, journal: Journal) -> None:
        self.options, self.members = options, options.members
        self.divides = self.members < pool.thread_count()
        """Whether steps are cut into pieces for several threads; members of a group are a thread's work each."""
        super().__init__(backend, plan, options, journal)
        self.asked = 0
        """How often native calls were asked for before their code was there."""
        self.cost = sum(map(cost_of, plan.steps)) // SPEED
        self.guesses = any(map(_searches, plan.steps))
        """Whether it has loops of which nobody knows how long they take: it is told by how long they took."""

    def run(
        self,
        bases: Sequence[Any],
        copies: Sequence[tuple[Any, Any]],
        steps: Iterable[Callable[..., None]] | None = None,
    ) -> None:
        if not self.guesses:
            return super().run(bases, copies, steps)
        begun = perf_counter_ns()
        super().run(bases, copies, steps)
        self.cost = max(perf_counter_ns() - begun, self.cost // FORGETS)
        return None

    def native_call(self, kind: CallKind) -> NativeCall | None:
        steps: list[Any] = list(self.steps)
        if self.cost > INLINE_COST or len(steps) > 1 or not all(isinstance(step, Table) for step in steps):
            return None
        if not supported():
            return None
        if not self._has_native_calls():
            return later
        run = steps[0] if steps else Table([], 0)
        return native_call(
            kind, Runs(self.plan, run.steps, run.known.sources, run.release, self.literals, self.backend.pool, self)
        )

    def _has_native_calls(self) -> bool:
        """Who calls once doesn't ask for their code, who calls twice doesn't wait for it. Who calls often does: it
        takes a dozen turns of the interpreter's lock, which a thread that calls would hold for 5 ms each."""
        if not pool.native_calls.ready:
            self.asked += 1
            if self.asked > OFTEN:
                pool.native_calls.symbols()
            elif self.asked > 1:
                pool.native_calls.prepare()
        return pool.native_calls.ready

    def chained(
        self, links: Sequence[ChainLink], inputs: Sequence[ShapedArray], results: Sequence[int]
    ) -> Executable | None:
        plans = [(x.executable.plan, x.operands) for x in links if isinstance(x.executable, CpuExecutable)]
        if len(plans) < len(links) or any(why_not_chained(plan) for plan, _ in plans):
            return None
        return CpuExecutable(self.backend, chained(plans, inputs, results), self.options, Journal())

    def runners(self, steps: Sequence[Step]) -> list[Callable[..., None]]:
        runners: list[Callable[..., None]] = []
        control = [step for step in steps if isinstance(step, ControlStep)]
        with compiling((self.backend.compiled(kernel) for kernel in _called(steps)), busy=bool(control)) as started:
            written = [(step, _control(self, step, started)) for step in control]
            made = {id(step): code and code() for step, code in written}
            made |= {id(step): _native(self, step) for step in steps if id(step) not in made}
        known = [(step, made[id(step)]) for step in steps]
        for native, group in groupby(known, lambda pair: pair[1] is not None):
            if native:
                run = [(step, d) for step, d in group if d is not None]
                cost = sum(cost_of(step) for step, _ in run)
                runners.append(Table([d for _, d in run], cost, self.members, [step for step, _ in run]))
            else:
                runners += [self.runner(step) for step, _ in group]
        return runners


def _searches(step: Step) -> bool:
    """Whether a step has loops that end when something holds."""
    if not isinstance(step, ControlStep):
        return False
    unknown = isinstance(step, LoopStep) and step.length is None
    return unknown or any(_searches(s) for _, inner in step.inners for s in inner.plan.steps)


def _called(steps: Sequence[Step]) -> Iterator[Kernel]:
    """The kernels that steps call, those in loops and branches included."""
    for step in steps:
        if isinstance(step, KernelStep):
            yield step.kernel
        elif isinstance(step, ControlStep):
            inner = [s for _, inner in step.inners for s in inner.plan.steps]
            yield from _called([s for s in inner if not isinstance(s, KernelStep) or too_large(s)])


def _native(executable: CpuExecutable, step: Step) -> Described | None:
    """How the native runtime runs ``step``; None if Python must."""
    if isinstance(step, KernelStep):
        kernel = executable.backend.compiled(step.kernel)
        extent = rows(step)
        piece = _piece(step, extent, kernel.cuts) if executable.divides else extent
        return described(kernel.address, step.operands, step.scalars, extent, piece, cost_of(step), kernel)
    if isinstance(step, CopyStep):
        return copying(step.source, step.target, step.nbytes, executable.divides)
    if isinstance(step, ControlStep):
        code = _control(executable, step)
        return code and code()
    return _library_call(step, executable.divides)


def _control(executable: CpuExecutable, step: ControlStep, started: Started = lambda make: make) -> Made | None:
    """A loop or a branch as a native function. Members of a group run as one call, no part of which may fail."""
    return native_control(lambda inner: _within(executable, inner), step, executable.members == 1, started)


def _piece(step: KernelStep, extent: int, cuts: Cuts) -> int:
    """The rows of a kernel that a thread computes at a time."""
    return piece_of(cost_of(step), extent, cuts.grain, 1 if cuts.strips else MOST) if cuts.several else extent


def _within(executable: CpuExecutable, step: Step) -> Described | None:
    """How it is run within a loop or a branch; members of a group go through Python, where they may meet."""
    found = _native(executable, step)
    if found is None and isinstance(step, CallStep) and executable.members == 1 and not meets(step):
        return call_out(step, executable.context)
    return found


def _library_call(step: CallStep, divides: bool) -> Described | None:
    found: tuple[int, Work] | None = step.native
    if found is None:
        return None
    address, work = found
    cost = cost_of(step)
    divided = divides and cost > PARALLEL_COST and work.extent > 1
    piece = piece_of_library(work.flops, work.extent) if divided else work.extent
    return described(address, (*step.args, *step.outs), work.scalars, work.extent, piece, cost)
