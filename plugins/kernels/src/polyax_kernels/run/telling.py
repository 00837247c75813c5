"""What plans tell traces: each step as it runs, with the primitives whose work it does and the user's lines.

Steps that would run together run one at a time meanwhile, but for those of runners that tell of them by themselves
(``tells``). Each is waited for, unless the device tells afterwards when it came to which. Knows steps, not executables.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from polyax.runtime.contract.probes import Stamp, Telling, ToldPart
from polyax.runtime.contract.report import counted
from polyax_kernels.ir.origin import sources
from polyax_kernels.plan.plan import KernelStep, Step
from polyax_kernels.plan.reports import kind_of

Runner = Callable[[Sequence[Any]], None]


class StepAlone(NamedTuple):
    """A step, what does it alone, and what is told of it."""

    step: Step
    runner: Runner
    part: ToldPart


def told_run(before: Callable[..., None], telling: Telling) -> Callable[..., None]:
    """``PlanExecutable.run``, which tells of each step."""

    def run(executable: Any, bases: Sequence[Any], copies: Sequence[tuple[Any, Any]], _: Any = None) -> None:
        if executable.told is None:
            executable.told = list(_parts(executable.steps))
        if (begin := executable.stamp()) is None:
            executable.settle()  # what came before isn't the first step's
            steps = [_Told(x, executable, telling) if isinstance(x, StepAlone) else x for x in executable.told]
            before(executable, bases, copies, steps)
            return
        stamps, alone = [begin], [x for x in executable.told if isinstance(x, StepAlone)]
        try:
            before(executable, bases, copies, [_Stamped(x, executable, stamps) for x in alone])
        finally:
            telling.between([x.part for x in alone], stamps)

    return run


def _parts(runners: Sequence[Any]) -> Iterator[StepAlone | Runner]:
    for runner in runners:
        if getattr(runner, "tells", False):
            yield runner
        else:
            for step, single in runner.apart() if hasattr(runner, "apart") else [(runner.step, runner)]:
                yield StepAlone(step, single, told_part(step))


def told_part(step: Step) -> ToldPart:
    """What traces tell of a step, but for the time."""
    return ToldPart(kind_of(step), counted(step.primitives) or "copy", _facts(step))


def _facts(step: Step) -> dict[str, Any]:
    """What else a trace keeps: the name of a kernel, what moves, and the lines that it is for."""
    named = {"kernel": step.kernel.name} if isinstance(step, KernelStep) else {}
    lines = dict.fromkeys(source.by_line for source in sources(step.primitives))
    return {**named, "bytes": step.bytes_moved, "flops": step.flops, **({"lines": "\n".join(lines)} if lines else {})}


class _Told:
    """A step that tells when it has ended."""

    __slots__ = ("alone", "executable", "step", "telling")

    def __init__(self, alone: StepAlone, executable: Any, telling: Telling) -> None:
        self.alone, self.executable, self.telling = alone, executable, telling
        self.step = alone.step

    def __call__(self, bases: Sequence[Any]) -> None:
        start = time.perf_counter_ns()
        try:
            self.alone.runner(bases)
            self.executable.settle()
        finally:
            kind, title, facts = self.alone.part
            self.telling.add(kind, title, start, facts)


class _Stamped:
    """A step, and the point in the queue behind it."""

    __slots__ = ("alone", "executable", "stamps", "step")

    def __init__(self, alone: StepAlone, executable: Any, stamps: list[Stamp]) -> None:
        self.alone, self.executable, self.stamps = alone, executable, stamps
        self.step = alone.step

    def __call__(self, bases: Sequence[Any]) -> None:
        self.alone.runner(bases)
        self.stamps.append(self.executable.stamp())
