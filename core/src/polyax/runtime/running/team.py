"""``Team``: one program on several devices, started together. Knows no collective, and not how programs come about."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from polyax.control.spmd import Axes
from polyax.ir.effects import of_one_device
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.runtime.arrays.array import Array
from polyax.runtime.contract import edge, questions
from polyax.runtime.contract.backend import Buffer, Device, Executable, Queue, Token
from polyax.runtime.contract.collectives import Group, entered
from polyax.runtime.contract.processes import ProcessGroup
from polyax.runtime.contract.queue import HELP_COST, HostQueue, Task, check_wanted, serve, serving
from polyax.runtime.contract.report import Report
from polyax.runtime.contract.whose import broken
from polyax.runtime.running.programs import Program


def check_effects(jaxpr: ClosedJaxpr, count: int, name: str) -> None:
    ordered = of_one_device(jaxpr.effects)
    if ordered and count > 1:
        raise ValueError(
            f"{name}: The following ordered effects are not supported for more than 1 device: {ordered}. Call with "
            "ordered=False."
        )


_launching = threading.Lock()
"""Held while a program is started on all devices: in which order two of them are started must not differ."""
Started = tuple[list[Array], Any]
WAITS = (
    "launch of {!r} waits for what it has put into the queue, which waits in {} for devices that are launched after it"
)
RETURNS = "let launch return at once, with buffers whose `wait` waits for what `queue.run` gave"


class Team(Executable):
    """Programs that each get a part of every input and give a part of every result. A value is the list of its parts.

    ``axes``: along which they meet; None if nobody waits for another one. ``devices``: those of all members, if some
    are in other processes, which ``link`` connects; the programs are those of this one. ``consts``: values that they
    take before what they are launched with.
    """

    def __init__(
        self,
        programs: Sequence[Program],
        axes: Axes | None = None,
        devices: Sequence[Device] | None = None,
        link: ProcessGroup | None = None,
        consts: Sequence[Any] = (),
    ) -> None:
        self.programs = programs
        self.consts = consts
        self.axes = axes
        self.devices = tuple(p.device for p in programs) if devices is None else devices
        self.link = link
        self.ranks = [n for n, d in enumerate(self.devices) if d.is_addressable]
        self.one = _executable_of_all(programs) if link is None else None

    def launch(self, buffers: Sequence[Any], queue: Any) -> tuple[list[Any], Any]:
        members = [[parts[n] for parts in (*self.consts, *buffers)] for n in range(len(self.programs))]
        if self.one is not None:
            return self._launch_as_one(members)
        with _launching:
            started = self._start_all(members)
        tokens = [(t, p.device) for p, (_, t) in zip(self.programs, started, strict=True) if t is not None]
        return list(zip(*[outs for outs, _ in started], strict=True)), tokens or None

    def _launch_as_one(self, members: Sequence[Sequence[Array]]) -> tuple[list[Any], Any]:
        """On the first device's queue: members take turns, so no other one is needed."""
        assert self.one is not None
        inputs = [[x.alive() for x in xs] for xs in members]
        first = self.devices[0]
        name, avals = self.programs[0].name, [a for a, _ in self.programs[0].outputs]
        outs, token = edge.launch_members(self.one, first, inputs, self.axes or (), (name, avals))
        parts = [
            [Array(aval, bs[n], d.chosen) for bs, d in zip(outs, self.devices, strict=True)]
            for n, aval in enumerate(avals)
        ]
        return parts, None if token is None else [(edge.token(token, first, name), first)]

    def _start_all(self, members: Sequence[Sequence[Array]]) -> list[Started]:
        if self.axes is None:
            return [_start(p, xs, p.device.queue) for p, xs in zip(self.programs, members, strict=True)]
        joined = () if self.link is None else (self.link,)
        group = questions.collectives(self.devices, self.axes, *joined)
        group.begin(self.programs[0].name)
        jobs = list(zip(self.ranks, self.programs, members, strict=True))
        at_once = serving()  # within a callback: the queues wait for it
        try:
            if not at_once and all(isinstance(p.device.queue, HostQueue) for p in self.programs):
                return [_start_member(group, *job) for job in jobs]
            from concurrent.futures import ThreadPoolExecutor  # when it is needed: `import polyax` stays quick

            with ThreadPoolExecutor(len(jobs), initializer=serve if at_once else None) as pool:  # each blocks
                return list(pool.map(lambda job: _enter(group, *job), jobs))
        except BaseException as e:
            group.abort(e)  # those that were started must not wait for the others
            raise

    def report(self) -> Report:
        """That of the first; those of the others are alike."""
        return self.programs[0].executable.report()


def _executable_of_all(programs: Sequence[Program]) -> Executable | None:
    """The executable that can run for all members at once, if there is one."""
    first = programs[0].executable
    alike = first.takes_turns and all(p.executable is first for p in programs)
    return first if alike else None


class Bystander(Executable):
    """Stands for a program on devices of other processes: of its results, this one has no part."""

    def __init__(self, results: int) -> None:
        self.results = results

    def launch(self, buffers: Sequence[Any], queue: Any) -> tuple[list[Any], Any]:
        return [[] for _ in range(self.results)], None

    def report(self) -> Report:
        return Report("none of this process")


def _enter(group: Group, rank: int, program: Program, args: Sequence[Array]) -> Started:
    with entered(group, rank):
        return _start(program, args, program.device.queue)


def _start(program: Program, args: Sequence[Array], queue: Queue) -> Started:
    outs, token = program.launch([x.alive() for x in args], queue)
    if token is not None:
        edge.token(token, program.device, program.name)
    return [Array(a, b, program.device.chosen) for (a, _), b in zip(program.outputs, outs, strict=True)], token


def _start_member(group: Group, rank: int, program: Program, args: Sequence[Array]) -> Started:
    """Returns before it has ended: others, which it is to meet, are started after it."""
    queue = _MemberQueue(program, group, rank)
    try:
        return _start(program, args, queue)
    finally:
        queue.starter = None


class _MemberQueue(Queue):
    """The queue of a device on which a member of a group runs, always on the queue's own thread: it may block."""

    def __init__(self, program: Program, group: Group, rank: int) -> None:
        assert isinstance(program.device.queue, HostQueue)
        self.queue = program.device.queue
        self.program = program
        self.group = group
        self.rank = rank
        self.starter: int | None = threading.get_ident()
        """The thread that launches it, until it has."""

    def run(self, work: Callable[[], None], inputs: Sequence[Buffer], cost: int) -> Token | None:
        after = [t for b in inputs if (t := b.awaits()) is not None]  # donated ones are this program's from now on

        def as_member() -> None:
            with entered(self.group, self.rank):
                for task in after:  # an operand that failed concerns the other members as well
                    task.wait()
                check_wanted()
                work()

        task = self.queue.run(as_member, (), max(cost, HELP_COST + 1), joined=True)
        if isinstance(task, Task):
            task.help = self._waited_for
        return task

    def _waited_for(self, task: Task) -> None:
        """By the thread in which it is called."""
        if self.starter == threading.get_ident():
            name, device = self.program.name, self.program.device
            self.group.hold(self.rank, lambda at: broken(device, WAITS.format(name, at), RETURNS))

    def synchronize(self) -> None:
        self.queue.synchronize()
