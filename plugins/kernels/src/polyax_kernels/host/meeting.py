"""Programs whose members all run in the thread that launches them: each goes on until it is to meet others."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, TypeGuard

from polyax.engines.host import CALLBACKS, COLLECTIVES
from polyax.reference.rules_together import Shared, in_order
from polyax.runtime.contract.collectives import Axes, Group, as_member, never_come, peer_sets
from polyax_kernels.host.threads import num_threads, parallel_for
from polyax_kernels.plan.plan import CallStep, Plan, Step, walk_steps
from polyax_kernels.run.control import Stop, Windows, walk, works

Arrays = Callable[[Sequence[Any]], tuple[Sequence[Any], Sequence[Any]]]
"""The results and the operands of a call, given the memory of all bases."""


class Meeting:
    """A step in which the members of a group exchange values. Called for one member, it waits for the others."""

    stops = waits = True
    works = False

    def __init__(self, step: CallStep, arrays: Arrays, alone: Callable[[Sequence[Any]], None]) -> None:
        self.alone = alone
        self.arrays = arrays
        self.together = step.lowering.together
        self.params = step.params
        self.groups = step.params.get("axis_index_groups")
        self.names = tuple(step.primitive.axes(**step.params))
        self.name = step.primitive.name

    def __call__(self, bases: Sequence[Any]) -> None:
        self.alone(bases)

    def walk(self, bases: Windows) -> Generator[Stop]:
        yield self, bases

    def of_all(self, members: Mapping[int, Sequence[Any]], axes: Axes) -> list[int]:
        """Does it for those whose peers have all come, and returns these; the others still wait."""
        done: list[int] = []
        for peers in peer_sets(axes, self.names, self.groups):
            if all(p in members for p in peers):
                outs, args = zip(*[self.arrays(members[p]) for p in peers], strict=True)
                self.together(outs, args, shared, **self.params)
                done += peers
        return done


def meets(step: Step) -> TypeGuard[CallStep]:
    """Whether members exchange values in this step."""
    return isinstance(step, CallStep) and step.primitive.name in COLLECTIVES and step.primitive.name != "axis_index"


def takes_turns(plan: Plan) -> bool:
    """Whether one thread can run all members: all collectives, also those of plugins, can be done for all at once."""
    return all(step.lowering.together is not None for step in walk_steps(plan) if meets(step))


def calls_users(plan: Plan) -> bool:
    """Whether a step calls a user's function, which may ask for anything."""
    return any(isinstance(step, CallStep) and step.primitive.name in CALLBACKS for step in walk_steps(plan))


def by_turns(steps: Sequence[Any], every: Sequence[Sequence[Any]], group: Group, run: Shared) -> None:
    """Runs the steps for all members of a group: each goes on until it is to meet others, and on when these have come.

    Nobody is sent off to do nothing where they meet first or last of all.

    Raises:
      RuntimeError: they wait for others that will never come.
    """
    first, last = bool(steps) and _of_all(steps[0]), steps[-1] if steps else None
    run = run if works(steps) else in_order
    walks = [walk(steps[first:], bases) for bases in every]
    waiting: dict[int, Stop] = dict(enumerate([(steps[0], bases) for bases in every])) if first else {}
    ready = _met(waiting, group.axes, last) if first else list(range(len(walks)))
    while ready:

        def advance(n: int, ready: Sequence[int] = ready) -> None:
            with as_member(group, ready[n]):
                stop = next(walks[ready[n]], None)
            if stop is not None:
                waiting[ready[n]] = stop

        run(len(ready), advance)
        ready = _met(waiting, group.axes, last)
    if waiting:
        raise RuntimeError(_endless(waiting, group))


def _of_all(step: Any) -> bool:
    """Whether it is done for several members at once, and so isn't one that holds others."""
    return getattr(step, "stops", False) and hasattr(step, "of_all")


def _met(waiting: dict[int, Stop], axes: Axes, last: Any) -> list[int]:
    """Those that had to wait for nobody else no longer do; the numbers of those that go on, behind any step but the
    last one."""
    ready: list[int] = []
    for meeting in {id(meeting): meeting for meeting, _ in waiting.values()}.values():
        done = meeting.of_all({n: bases for n, (m, bases) in waiting.items() if m is meeting}, axes)
        for n in done:
            del waiting[n]
        ready += () if meeting is last else done
    return ready


def _endless(waiting: Mapping[int, Stop], group: Group) -> str:
    rank, (meeting, _) = min(waiting.items(), key=lambda item: item[0])
    peers, _ = group.peers(rank, meeting.names, meeting.groups)
    other = next(p for p in peers if p not in waiting or waiting[p][0] is not meeting)
    does = f"waits in {waiting[other][0].name}" if other in waiting else "has ended"
    return never_come(group.what, meeting.name, rank, other, does)


def shared(count: int, work: Callable[[int], None]) -> None:
    """``work`` with each number below ``count``, on the threads of the machine; who is ready takes the next."""
    numbers = iter(range(count))

    def take(*_: int) -> None:
        for n in numbers:
            work(n)

    parallel_for(min(count, num_threads()), take)
