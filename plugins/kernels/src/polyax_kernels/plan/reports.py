"""The report of a plan: its steps as people see them, its memory, and what was decided on the way.

Made when it is asked for, since program texts are long.
"""

from __future__ import annotations

from collections.abc import Callable

from polyax.ir.blame import expected
from polyax.runtime.contract.report import BufferReport, KernelReport, Kind, ProgramReport, Report
from polyax_kernels.ir.kernel import Kernel
from polyax_kernels.ir.origin import equations, rules
from polyax_kernels.plan.journal import Journal
from polyax_kernels.plan.plan import BranchStep, CallStep, CopyStep, KernelStep, LoopStep, Plan, Step

Source = Callable[[Kernel], str]


def report(backend: str, source: Source, plan: Plan, journal: Journal) -> Report:
    """What the executable of ``plan`` consists of; ``source`` gives the text of a kernel."""
    whole = _program(source, "program", plan)
    return Report(
        backend,
        whole.kernels,
        whole.decisions,
        plan.arena_bytes,
        plan.bytes_unfused,
        sum(journal.phases.values()),
        _buffers(plan),
        dict(journal.phases),
        whole.program,
        list(journal.stages),
    )


def _program(source: Source, role: str, plan: Plan) -> ProgramReport:
    steps = [_step_report(source, step) for step in plan.steps]
    return ProgramReport(role, steps, list(plan.decisions), plan.program)


def kind_of(step: Step) -> Kind:
    """What reports and traces call it."""
    if isinstance(step, LoopStep | BranchStep):
        return "loop" if isinstance(step, LoopStep) else "branch"
    if isinstance(step, KernelStep):
        return "kernel"
    return "copy" if isinstance(step, CopyStep) else "call"


def _step_report(source: Source, step: Step) -> KernelReport:
    names, kind = tuple(map(str, step.primitives)) or ("copy",), kind_of(step)
    of = equations(step.primitives), rules(step.primitives)
    rest = step.bytes_moved, step.flops
    if isinstance(step, KernelStep):
        text = expected(source(step.kernel), str, "source gave", "the text of a kernel")
        return KernelReport(step.kernel.name, names, *rest, text, kind, step.out_avals, *of)
    if isinstance(step, CopyStep):
        return KernelReport("copy", names, *rest, "", kind, (), *of)
    name = step.primitive.name
    if isinstance(step, CallStep):
        return KernelReport(name, names, *rest, "", kind, step.out_avals, *of)
    programs = tuple([_program(source, role, inner.plan) for role, inner in step.inners])
    turns = step.length if isinstance(step, LoopStep) else None
    return KernelReport(name, names, *rest, "", kind, step.out_avals, *of, programs, turns)


def _buffers(plan: Plan) -> list[BufferReport]:
    inputs = [
        BufferReport("input", aval.nbytes, aval, "donated, reused" if n in plan.overwritten else "")
        for n, aval in enumerate(plan.inputs)
    ]
    results = [_result(plan, n, base) for n, base in enumerate(plan.outputs)]
    arena = [BufferReport("arena", plan.arena_bytes)] if plan.arena_bytes else []
    return [*inputs, *results, *arena]


def _result(plan: Plan, n: int, base: int) -> BufferReport:
    """Result number ``n``, in the memory of ``base``."""
    aval = plan.results[n]
    note = "the same memory as another result" if base in plan.outputs[:n] else ""
    if base < len(plan.inputs):
        note = "in a donated input" if base in plan.overwritten else "the same memory as an input"
    return BufferReport("result", aval.nbytes, aval, note)
