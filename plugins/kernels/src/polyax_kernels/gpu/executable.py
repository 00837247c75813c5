"""Plans on a device with a queue of its own: a launch puts the steps into the queue and returns.

Knows steps and memory; not how kernels are made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from polyax.ir.aval import ShapedArray
from polyax.ir.blame import expected
from polyax.runtime.contract.backend import CompileOptions
from polyax.runtime.contract.probes import Stamp
from polyax_kernels.gpu.emitter import GpuEmitter
from polyax_kernels.gpu.kernels import GpuKernel
from polyax_kernels.gpu.memory import GpuBuffer, GpuShelf, GpuStore, GpuWindow
from polyax_kernels.gpu.recording import joined
from polyax_kernels.gpu.runtime import Mark, Runtime
from polyax_kernels.lower.lowering import CallContext
from polyax_kernels.plan.journal import Journal
from polyax_kernels.plan.plan import CallStep, ControlStep, CopyStep, KernelStep, Plan, Ref, Step
from polyax_kernels.run.control import control_runner
from polyax_kernels.run.executable import PlanExecutable, Runner


class View(NamedTuple):
    """An operand of a library call: ``offset`` counts bytes."""

    memory: Any
    offset: int
    aval: ShapedArray


@dataclass(frozen=True)
class GpuContext(CallContext):
    """What a library call on a GPU may use: it puts its work into the queue of ``runtime``."""

    runtime: Runtime
    dialect: type[GpuEmitter]
    allocate: Callable[[int], Any]
    """Gives memory of so many bytes, which work put into the queue later may use again once it is let go."""


class GpuExecutable(PlanExecutable):
    """``kernel_of`` compiles the kernel of a step for the device."""

    def __init__(
        self,
        backend: Any,
        plan: Plan,
        options: CompileOptions,
        journal: Journal,
        store: GpuStore,
        kernel_of: Callable[[KernelStep], GpuKernel],
    ) -> None:
        device = options.device
        self.store = store
        self.runtime = store.runtime
        self.kernel_of = kernel_of
        self.context = GpuContext(device, store.runtime, backend.emitter, store.allocate)
        super().__init__(backend, plan, options, journal)
        self.cost = int(any(map(_waits, self.steps)))
        self.written = [*self.overwritten, *range(len(plan.inputs), len(plan.inputs) + len(plan.fresh))]

    def shelf(self, nbytes: int) -> GpuShelf:
        return self.store.shelf(nbytes)

    def duplicate(self, source: GpuBuffer, target: GpuBuffer) -> None:
        self.runtime.copy(source.memory, 0, target.memory, 0, source.shelf.nbytes)

    def settle(self) -> None:
        self.runtime.synchronize()

    def stamp(self) -> Stamp | None:
        return self.runtime.stamp()

    def run(
        self,
        bases: Sequence[GpuBuffer],
        copies: Sequence[tuple[GpuBuffer, GpuBuffer]],
        steps: Iterable[Runner] | None = None,
    ) -> None:
        super().run(bases, copies, steps)
        mark = expected(self.runtime.mark(), Mark, "mark gave", "a Mark")
        for n in self.written:
            bases[n].mark = mark

    def window(self, base: Any, offset: int) -> GpuWindow:
        return GpuWindow(base, offset)

    def peek(self, base: Any, offset: int, dtype: np.dtype) -> Any:
        value = np.empty((), dtype)
        self.runtime.read(base.memory, base.offset + offset, value)
        return value[()]

    def runners(self, steps: Sequence[Step]) -> list[Runner]:
        made = super().runners(steps)
        return list(joined(self.runtime, made)) if self.runtime.records else made

    def runner(self, step: Step) -> Runner:
        if isinstance(step, CopyStep):
            return _copier(self.runtime, step)
        if isinstance(step, CallStep):
            return _caller(self.context, step)
        if isinstance(step, ControlStep):
            return control_runner(self, step)
        return _launcher(self.runtime, step, self.kernel_of(step))


def _waits(runner: Runner) -> bool:
    """Whether a launch may wait for the device on the way."""
    step = getattr(runner, "step", None)  # recordings have none, and don't wait
    return isinstance(step, ControlStep) or (isinstance(step, CallStep) and step.lowering.waits)


def _copier(runtime: Runtime, step: CopyStep) -> Runner:
    source, target, nbytes = step.source, step.target, step.nbytes

    def run(bases: Sequence[GpuBuffer]) -> None:
        here, there = bases[source.base], bases[target.base]
        begin, end = here.offset + source.offset, there.offset + target.offset
        if here.memory is not there.memory or begin != end:  # a loop may carry its constant from where it is
            runtime.copy(here.memory, begin, there.memory, end, nbytes)

    return _recordable(run)


def _caller(context: GpuContext, step: CallStep) -> Runner:
    outs, args = _places(step.outs, step.out_avals), _places(step.args, step.arg_avals)
    ready = step.lowering.ready(context, step.out_avals, step.arg_avals, step.params)
    run = lambda bases: ready(_views(bases, outs), _views(bases, args))
    return _recordable(run) if getattr(ready, "records", False) else run


def _places(refs: Sequence[Ref], avals: Sequence[ShapedArray]) -> list[tuple[int, int, ShapedArray]]:
    return [(r.base, r.offset, a) for r, a in zip(refs, avals, strict=True)]


def _views(bases: Sequence[GpuBuffer], places: Sequence[tuple[int, int, ShapedArray]]) -> list[View]:
    return [View(bases[b].memory, bases[b].offset + offset, aval) for b, offset, aval in places]


def _launcher(runtime: Runtime, step: KernelStep, kernel: GpuKernel) -> Runner:
    places = [(r.base, r.offset) for r in step.operands]
    groups, threads = kernel.schedule.geometry(step.kernel, step.scalars)
    function, scalars = kernel.function, step.scalars[: kernel.scalars]

    def run(bases: Sequence[GpuBuffer]) -> None:
        operands = [((at := bases[b]).memory, at.offset + offset) for b, offset in places]
        runtime.launch(function, groups, threads, operands, scalars)

    return _recordable(run)


def _recordable(run: Any) -> Runner:
    """``run``, which only puts work into the queue."""
    run.launches = 1
    return run
