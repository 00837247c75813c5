"""Running one program on several devices: which ones, where the parts of its arguments and results lie, launching.

What can be known without the arguments is worked out once for each program. Knows no collective.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from polyax.control.inner.untyped import without_vma
from polyax.control.spmd import manual, on_one_device, shard_map_p, whole
from polyax.ir.config import config
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.ir.primitive import def_rule
from polyax.meshes.axes import AbstractMesh, Axes
from polyax.meshes.mesh import Mesh
from polyax.meshes.sharding import NamedSharding
from polyax.meshes.spec import Cuts, trimmed_spec
from polyax.runtime.arrays import devices as places
from polyax.runtime.arrays.array import Array
from polyax.runtime.contract.backend import Device, Executable
from polyax.runtime.contract.collectives import Group, entered
from polyax.runtime.contract.processes import ProcessGroup
from polyax.runtime.contract.queue import HELP_COST, HostQueue, Task, serving
from polyax.runtime.contract.report import Report
from polyax.runtime.running.agreement import connection
from polyax.runtime.running.dispatch import compile_program
from polyax.runtime.running.programs import Program
from polyax.runtime.running.regions import on_blocks, with_devices
from polyax.transforms.memo import kept
from polyax.transforms.vmap import axes_of


@def_rule(shard_map_p, "impl")
def _run(
    *args: Any,
    jaxpr: ClosedJaxpr,
    name: str,
    mesh: Mesh | AbstractMesh,
    manual_axes: frozenset[Any],
    in_specs: Any,
    out_specs: Any,
    check_vma: bool,
) -> list[Any]:
    if serving():  # a callback: the devices may wait for it, so it can't wait for them
        program = on_one_device(jaxpr, manual(mesh, manual_axes), in_specs, out_specs)
        return compile_program(program, places.default_device_now(), name).run([*program.consts, *args])
    jaxpr = without_vma(jaxpr) if check_vma else jaxpr
    placed = mesh if isinstance(mesh, Mesh) else with_devices(mesh, jaxpr, places.local_devices(), name)
    key = Team, placed, in_specs, out_specs, config.trace_key()
    return kept(jaxpr, key, lambda: _prepared(jaxpr, name, manual_axes, *key[1:4])).run(args)


def _prepared(
    jaxpr: ClosedJaxpr,
    name: str,
    manual_axes: frozenset[Any],
    mesh: Mesh,
    in_specs: Sequence[Cuts],
    out_specs: Sequence[Cuts],
) -> Program:
    """The program for whole arguments on the devices of the mesh."""
    parts = on_blocks(jaxpr, mesh, manual_axes, in_specs, out_specs)
    jaxpr, in_specs, out_specs = parts.program, parts.ins, parts.outs
    _check_effects(jaxpr, mesh.size, name)
    wholes = [whole(a, s, mesh.axes) for a, s in zip(jaxpr.out_avals, out_specs, strict=True)]
    meets = axes_of(jaxpr) or jaxpr.effects
    link = connection(mesh.device_list, name, (jaxpr, mesh, in_specs, out_specs))
    programs = [compile_program(jaxpr, d, name) for d in mesh.device_list if d.is_addressable]
    team = Team(programs, mesh.axes if meets else None, mesh.device_list, link)
    whole_program = link is None and programs[0].checked is not None
    return Program(
        name,
        team,
        inputs=list(zip(jaxpr.in_avals, _layouts(mesh, in_specs), strict=True)),
        outputs=list(zip(wholes, _layouts(mesh, out_specs), strict=True)),
        checked=on_one_device(jaxpr, mesh.axes, in_specs, out_specs) if whole_program else None,
    )


def _layouts(mesh: Mesh, specs: Sequence[Cuts]) -> list[NamedSharding]:
    return [NamedSharding(mesh, trimmed_spec(cuts)) for cuts in specs]


def _check_effects(jaxpr: ClosedJaxpr, count: int, name: str) -> None:
    ordered = [e for e in jaxpr.effects if e.ordered]
    if ordered and count > 1:
        raise ValueError(
            f"{name}: The following ordered effects are not supported for more than 1 device: {ordered}. Call with "
            "ordered=False."
        )


# --- launching -----------------------------------------------------------------------------------------------------

_launching = threading.Lock()
"""Held while a program is started on all devices: in which order two of them are started must not differ."""
Started = tuple[list[Array], Any]


class Team(Executable):
    """Programs that each get a part of every input and give a part of every result. A value is the list of its parts.

    ``axes``: along which they meet; None if nobody waits for another one. ``devices``: those of all members, if some
    are in other processes, which ``link`` connects; the programs are those of this one.
    """

    def __init__(
        self,
        programs: Sequence[Program],
        axes: Axes | None = None,
        devices: Sequence[Device] | None = None,
        link: ProcessGroup | None = None,
    ) -> None:
        self.programs = programs
        self.axes = axes
        self.devices = tuple(p.device for p in programs) if devices is None else devices
        self.link = link
        self.ranks = [n for n, d in enumerate(self.devices) if d.is_addressable]

    def launch(self, buffers: Sequence[Any], queue: Any) -> tuple[list[Any], Any]:
        members = [[parts[n] for parts in buffers] for n in range(len(self.programs))]
        with _launching:
            started = self._start_all(members)
        tokens = [token for _, token in started if token is not None]
        return list(zip(*[outs for outs, _ in started], strict=True)), tokens or None

    def _start_all(self, members: Sequence[Sequence[Array]]) -> list[Started]:
        if self.axes is None:
            return [_start(p, xs, p.device.queue) for p, xs in zip(self.programs, members, strict=True)]
        joined = () if self.link is None else (self.link,)
        group = self.devices[0].backend.collectives(self.devices, self.axes, *joined)
        group.what = self.programs[0].name
        jobs = list(zip(self.ranks, self.programs, members, strict=True))
        try:
            if all(isinstance(p.device.queue, HostQueue) for p in self.programs):
                return [_start(p, xs, _MemberQueue(p.device.queue, group, n)) for n, p, xs in jobs]
            with ThreadPoolExecutor(len(jobs)) as pool:  # collectives of these devices block whoever launches
                return list(pool.map(lambda job: _enter(group, *job), jobs))
        except BaseException as e:
            group.abort(e)  # those that were started must not wait for the others
            raise

    def report(self) -> Report:
        """That of the first; those of the others are alike."""
        return self.programs[0].executable.report()


def _enter(group: Group, rank: int, program: Program, args: Sequence[Array]) -> Started:
    with entered(group, rank):
        return _start(program, args, program.device.queue)


def _start(program: Program, args: Sequence[Array], queue: Any) -> Started:
    outs, token = program.executable.launch([x.alive() for x in args], queue)
    return [Array(a, b, program.device) for (a, _), b in zip(program.outputs, outs, strict=True)], token


class _MemberQueue:
    """The queue of a device on which a member of a group runs, always on the queue's own thread: it may block."""

    def __init__(self, queue: HostQueue, group: Group, rank: int) -> None:
        self.queue = queue
        self.group = group
        self.rank = rank

    def run(self, work: Callable[[], None], inputs: Sequence[Any], cost: int) -> Task | None:
        def as_member() -> None:
            with entered(self.group, self.rank):
                for b in inputs:  # an operand that failed concerns the other members as well
                    b.wait()
                work()

        return self.queue.run(as_member, (), max(cost, HELP_COST + 1))
