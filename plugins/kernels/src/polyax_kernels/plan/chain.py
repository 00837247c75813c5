"""Plans one after the other as one plan of the same steps: nothing is compiled anew, no bit of a result changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from polyax.ir.aval import ShapedArray
from polyax_kernels.plan.plan import CallStep, CopyStep, KernelStep, Plan, Ref, Step

PLAIN = (KernelStep, CallStep, CopyStep)


Linked = tuple[Plan, Sequence[int]]
"""A plan, and the numbers of the values that are its inputs."""


def chained(plans: Sequence[Linked], inputs: Sequence[ShapedArray], results: Sequence[int]) -> Plan:
    """The plan of all ``plans``. Values are ``inputs``, then their results; ``results`` are the numbers of those that
    are wanted.

    No plan may write to its inputs, nor have loops or branches. The arena serves one plan after the other.
    """
    fresh = sum(len(plan.fresh) for plan, _ in plans)
    arena = len(inputs) + fresh
    values, avals = list(range(len(inputs))), list(inputs)
    steps: list[Step] = []
    made, literal = len(inputs), arena + 1
    for plan, operands in plans:
        new, literals = range(made, made + len(plan.fresh)), range(literal, literal + len(plan.literals))
        places = [*[values[n] for n in operands], *new, arena, *literals]
        steps += [_moved(step, places) for step in plan.steps]
        values += [places[n] for n in plan.outputs]
        avals += plan.results
        made, literal = new.stop, literals.stop
    return Plan(
        inputs=tuple(inputs),
        fresh=tuple([n for plan, _ in plans for n in plan.fresh]),
        arena_bytes=max([plan.arena_bytes for plan, _ in plans], default=0),
        literals=tuple([x for plan, _ in plans for x in plan.literals]),
        steps=steps,
        outputs=tuple([values[n] for n in results]),
        results=tuple([avals[n] for n in results]),
    )


def why_not_chained(plan: Plan) -> str | None:
    """Why a plan can't be part of a chain."""
    if plan.overwritten:
        return "it writes to its inputs"
    other = next((step for step in plan.steps if not isinstance(step, PLAIN)), None)
    return None if other is None else f"{other.primitive} holds plans"


def _moved(step: Step, places: Sequence[int]) -> Step:
    """The step on other bases."""
    at = lambda ref: Ref(places[ref.base], ref.offset)
    if isinstance(step, KernelStep):
        return replace(step, operands=tuple(map(at, step.operands)))
    if isinstance(step, CopyStep):
        return replace(step, source=at(step.source), target=at(step.target))
    assert isinstance(step, CallStep)
    return replace(step, args=tuple(map(at, step.args)), outs=tuple(map(at, step.outs)))
