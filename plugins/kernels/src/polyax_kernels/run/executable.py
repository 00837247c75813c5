"""``PlanExecutable``: a plan that is walked from Python; all that can be is worked out beforehand.

Knows what a launch allocates, what it may overwrite and in which order its steps run; not what memory and steps are.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from polyax.ir import blame
from polyax.ir.config import config
from polyax.runtime.contract.backend import Buffer, CompileOptions, Executable, Queue, Token
from polyax.runtime.contract.collectives import Axes
from polyax.runtime.contract.crashes import named
from polyax.runtime.contract.probes import Stamp, declare
from polyax.runtime.contract.report import Report
from polyax_kernels.ir.origin import facts, rules
from polyax_kernels.lower.choice import WITHOUT, plugin_of
from polyax_kernels.plan.journal import Journal
from polyax_kernels.plan.plan import CallStep, KernelStep, Plan, Step
from polyax_kernels.plan.reports import report
from polyax_kernels.run.memory import FREE
from polyax_kernels.run.telling import told_run

Runner = Callable[[Sequence[Any]], None]
"""A step, given the memory of all bases."""


def step_facts(step: Step | None) -> dict[str, Any]:
    """What errors tell of a step. A library call is its lowering's; what a kernel does wrong may be the emitter's."""
    if step is None:
        return {}
    kernel = step.kernel.name if isinstance(step, KernelStep) else ""
    plugins = [p for p in map(plugin_of, rules(step.primitives)) if p]
    if isinstance(step, CallStep):
        return {"plugin": plugins and plugins[0], "hint": plugins and WITHOUT, **facts(step.primitives)}
    hint = f"with lowerings of {', '.join(plugins)}" if plugins else ""
    return {"kernel": kernel, "hint": hint, **facts(step.primitives)}


def _text(step: Step) -> str:
    """What a step is, for people."""
    known = step_facts(step)
    return f"kernel {known['kernel']!r} ({known['primitives']})" if "kernel" in known else known["primitives"]


def _named(step: Step, runner: Runner) -> Runner:
    """``runner``, which says whose it is if it ends the process."""
    source, plugin = (step_facts(step).get(fact) for fact in ("source", "plugin"))
    made = named(
        runner, _text(step) + (f" of {plugin}" if plugin else "") + (f", asked for at {source}" if source else "")
    )
    vars(made).update(vars(runner))
    return made


class PlanExecutable(Executable):
    """A subclass says how memory is made and copied, and how a step is run.

    Its buffers have ``task``, ``seen``, ``share()`` and ``shelf``, from which more of the same size come, as
    ``memory.Memory`` has.
    """

    def __init__(self, backend: Any, plan: Plan, options: CompileOptions, journal: Journal) -> None:
        self.backend = backend
        self.plan = plan
        self.journal = journal
        self.name = options.name
        self.at = ""
        self.effects = bool(options.effects)
        self.cost = plan.cost
        self.overwritten = sorted(plan.overwritten)
        self.device = options.device
        arena = [plan.arena_bytes] if plan.arena_bytes else []
        self.shelves = [self.shelf(n) for n in (*plan.fresh, *arena)]
        literals = [backend.to_device(x, self.device) for x in plan.literals]
        self.literals: list[Any] = literals if arena else [None, *literals]
        self.steps = self.runners(plan.steps)
        self.told: Any = None
        """What traces know of the steps, once one was taken."""

    @abstractmethod
    def shelf(self, nbytes: int) -> Any:
        """Where memory of ``nbytes`` comes from: ``take()`` gives a buffer."""

    def fresh(self) -> list[Any]:
        """Memory for a launch's results and what lies between."""
        return [shelf.take() for shelf in self.shelves]

    @abstractmethod
    def runner(self, step: Step) -> Runner: ...

    @abstractmethod
    def duplicate(self, source: Any, target: Any) -> None:
        """Copies a whole buffer to another one."""

    @abstractmethod
    def window(self, base: Any, offset: int) -> Any:
        """A buffer from ``offset`` on, as a buffer that can be moved along with ``advance(nbytes)``."""

    @abstractmethod
    def peek(self, base: Any, offset: int, dtype: np.dtype) -> Any:
        """The scalar at ``offset`` of a buffer; waits for it."""

    def runners(self, steps: Sequence[Step]) -> list[Runner]:
        """Functions that run the steps one after the other; a subclass may join several."""
        return [self.made(step) for step in steps]

    def made(self, step: Step) -> Runner:
        """The step's runner, which knows what it is the runner of."""
        try:
            runner = self.runner(step)
        except BaseException as e:
            blame.about(e, **step_facts(step))
            raise
        if config.checks and isinstance(step, CallStep | KernelStep) and not hasattr(runner, "stops"):
            runner = _named(step, runner)
        runner.step = step  # pyright: ignore[reportFunctionMemberAccess]
        watched = config.launch_timeout and isinstance(step, CallStep | KernelStep) and not hasattr(runner, "stops")
        return self._noted(step, runner) if watched else runner

    def _noted(self, step: Step, runner: Runner) -> Runner:
        """A runner that says what it is at, for those who wait."""
        text = _text(step)

        def run(bases: Sequence[Any]) -> None:
            self.at = text
            runner(bases)

        vars(run).update(vars(runner))
        return run

    def progress(self) -> str:
        return self.at

    def settle(self) -> None:
        """Returns when the steps that have run have ended."""

    def stamp(self) -> Stamp | None:
        """The end of the steps so far, where the device tells afterwards when that was."""
        return None

    def launch(self, buffers: Sequence[Any], queue: Queue) -> tuple[list[Buffer], Token | None]:
        fresh = self.fresh()
        bases: list[Any] = [*buffers, *fresh, *self.literals]
        copies = self._protect(bases) if self.overwritten else ()
        task = queue.run(partial(self.run, bases, copies), buffers, self.cost)
        if task is not None:
            for b in (*fresh, *[bases[n] for n in self.overwritten]):
                b.task = task
        for n in self.plan.shared:
            bases[n].share()
        return [bases[n] for n in self.plan.outputs], task if self.effects else None

    def launch_members(self, members: Sequence[Sequence[Any]], queue: Queue, axes: Axes) -> Any:
        every: list[list[Any]] = []
        copies: list[Any] = []
        written: list[Any] = []
        for buffers in members:
            fresh = self.fresh()
            bases: list[Any] = [*buffers, *fresh, *self.literals]
            if self.overwritten:
                copies += self._protect(bases)
                written += [bases[n] for n in self.overwritten]
            written += fresh
            every.append(bases)
        inputs = [b for buffers in members for b in buffers]
        task = queue.run(partial(self.run_members, every, copies, axes), inputs, self.cost * len(members))
        if task is not None:
            for b in written:
                b.task = task
        for bases in every if self.plan.shared else ():
            for n in self.plan.shared:
                bases[n].share()
        return [[bases[n] for n in self.plan.outputs] for bases in every], task if self.effects else None

    def run_members(self, every: Sequence[Sequence[Any]], copies: Sequence[tuple[Any, Any]], axes: Axes) -> None:
        """Runs each step for all members before the next one."""
        raise NotImplementedError

    def run(
        self, bases: Sequence[Any], copies: Sequence[tuple[Any, Any]], steps: Iterable[Runner] | None = None
    ) -> None:
        """``steps``: what to run instead of those of the plan, which they do the work of."""
        for source, target in copies:
            self.duplicate(source, target)
        step = None
        try:
            for step in self.steps if steps is None else steps:
                step(bases)
        except BaseException as e:
            blame.about(e, program=self.name, **step_facts(getattr(step, "step", None)))
            raise

    def _protect(self, bases: list[Any]) -> list[tuple[Any, Any]]:
        """Replaces inputs that the plan writes to, but others still see, by copies that are to be made."""
        copies: list[tuple[Any, Any]] = []
        for n in self.overwritten:
            old = bases[n]
            if old.seen != FREE or sum(b is old for b in bases) > 1:
                bases[n] = old.shelf.take()
                copies.append((old, bases[n]))
        return copies

    def report(self) -> Report:
        return report(self.backend.name, self.backend.source, self.plan, self.journal)


declare(PlanExecutable, "run", told_run)
