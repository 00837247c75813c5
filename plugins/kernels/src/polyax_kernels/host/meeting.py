"""Collectives of programs whose members run in turns on the host, step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from polyax.runtime.contract.turns import Turns
from polyax_kernels.host.threads import num_threads, parallel_for
from polyax_kernels.lower.fallback import CALLBACKS, COLLECTIVES
from polyax_kernels.plan.plan import CallStep, ControlStep, Plan, Step, walk_steps


class Meeting:
    """A step in which the members of a group exchange values. Called for one member, it waits for the others."""

    def __init__(self, alone: Callable[[Sequence[Any]], None]) -> None:
        self.alone = alone

    def __call__(self, bases: Sequence[Any]) -> None:
        self.alone(bases)

    def of_all(self, members: Sequence[Sequence[Any]], group: Turns) -> None:
        group.collective([partial(self.alone, bases) for bases in members])


def meets(step: Step) -> bool:
    """Whether members exchange values in this step, or ask who they are."""
    return isinstance(step, CallStep) and step.primitive.name in COLLECTIVES


def meets_inside(steps: Iterable[Step]) -> bool:
    """Whether they do so in loops or branches, which each member walks on its own."""
    inner = [plan for step in steps if isinstance(step, ControlStep) for _, i in step.inners for plan in [i.plan]]
    return any(meets(step) for plan in inner for step in walk_steps(plan))


def calls_users(plan: Plan) -> bool:
    """Whether a step calls a user's function, which may ask for anything."""
    return any(isinstance(step, CallStep) and step.primitive.name in CALLBACKS for step in walk_steps(plan))


def shared(count: int, work: Callable[[int], None]) -> None:
    """``work`` with each number below ``count``, on the threads of the machine; who is ready takes the next."""
    numbers = iter(range(count))

    def take(*_: int) -> None:
        for n in numbers:
            work(n)

    parallel_for(min(count, num_threads()), take)
