"""From a program to an executable, and to what is launched on a device; made once for devices that are alike."""

from __future__ import annotations

import time
from typing import Any

from polyax.control.coded import coded
from polyax.control.elaboration import elaborated
from polyax.control.inspection import looks_in
from polyax.control.key_uses import key_use, uses_keys
from polyax.control.platforms import settled
from polyax.control.weightless import weighted
from polyax.ir.config import config
from polyax.ir.jaxpr import ClosedJaxpr, walk_eqns
from polyax.meshes.sharding import SingleDeviceSharding
from polyax.runtime.contract import edge, questions
from polyax.runtime.contract.backend import CompileOptions, Device
from polyax.runtime.contract.hooks import CompileEvent
from polyax.runtime.contract.queue import serving
from polyax.runtime.debugging import progress
from polyax.runtime.plugins.compilations import notify_compiled
from polyax.runtime.running.donation import taken
from polyax.runtime.running.programs import Program, Refused
from polyax.trace.recording import hoist_consts
from polyax.transforms.memo import kept


def compile_program(
    closed: ClosedJaxpr, device: Device, name: str, donated: tuple[bool, ...] = (), *, mesh: Any = None
) -> Program:
    """The program for ``closed`` on ``device``, maybe one of ``mesh``: made once for each jaxpr, device and donation,
    and compiled once for all devices that run what is made for one of them."""
    key = Program, device, donated, mesh and mesh.size, config.trace_key()
    return kept(closed, key, lambda: _for_device(closed, device, name, donated, mesh), wait=not serving())


def _for_device(closed: ClosedJaxpr, device: Device, name: str, donated: tuple[bool, ...], mesh: Any) -> Program:
    key = "executable", questions.twin(device), donated, mesh and mesh.size, config.trace_key()
    made = kept(closed, key, lambda: compile_on(closed, device, name, donated, mesh=mesh), wait=not serving())
    for look in looks_in(closed) if mesh is None else ():
        look(SingleDeviceSharding(device))
    return made if made.device is device else made.on(device)


def compile_on(
    closed: ClosedJaxpr,
    device: Device,
    name: str,
    donated: tuple[bool, ...] = (),
    *,
    eager: bool = False,
    mesh: Any = None,
) -> Program:
    """A new program for ``device``, which plugins are told of."""
    checked = closed if config.debug_nans or config.debug_infs else None
    if checked:  # the arguments may be needed again
        donated = ()
    if mesh is None:  # of a mesh's programs it was decided for all devices
        donated = taken(closed, donated)
    with progress.compiling(f"{name} for {device}"):
        event = build(closed, device, name, donated, eager=eager, stages=config.dump is not None, mesh=mesh)
    notify_compiled(event)
    inputs = [(v.aval, device) for v in (*closed.jaxpr.constvars, *closed.jaxpr.invars)]
    outputs = [(a, device) for a in closed.out_avals]
    made = name, event.executable, inputs, outputs, device, donated, closed.effects, checked
    if config.get("debug_key_reuse") and uses_keys(closed):
        from polyax.runtime.running.watched import KeyWatch  # seldom asked for

        return KeyWatch(*made, watched=closed, use=key_use(closed), eager=eager)
    return Refused(*made) if config.get("no_execution") else Program(*made)


def names_of(device: Device) -> tuple[str, ...]:
    """What ``platform_dependent`` may call the platform of a device, the best name first."""
    return device.platform, "cpu" if device.backend.in_host_memory else "gpu"


def _check_types(program: ClosedJaxpr, device: Device, name: str) -> None:
    """What goes in and comes out has a dtype of the device's, and the device can count the elements of every array."""
    inputs = [v.aval for v in (*program.jaxpr.constvars, *program.jaxpr.invars)]
    for what, avals in (("an argument", inputs), ("a result", program.out_avals)):
        for aval in avals:
            if reason := questions.why_no_dtype(aval.dtype, device):
                raise TypeError(f"{name}: {what} of type {aval} can't live on {device}: {reason}")
            if reason := questions.too_large(aval, device):
                raise ValueError(f"{name}: {what} of type {aval} can't live on {device}: {reason}")
    narrow = device.backend.index_dtype.itemsize < 8  # 64 bits count every array
    for eqn in walk_eqns(program.jaxpr) if narrow else ():
        for v in eqn.outvars:
            if reason := questions.too_large(v.aval, device):
                source = f", asked for at {eqn.source}" if eqn.source else ""
                raise ValueError(
                    f"{name}: {eqn.primitive.name} of type {v.aval}{source} can't be had on {device}: {reason}"
                )


def build(
    closed: ClosedJaxpr,
    device: Device,
    name: str,
    donated: tuple[bool, ...],
    *,
    eager: bool = False,
    stages: bool,
    mesh: Any = None,
) -> CompileEvent:
    """A new executable, which is kept nowhere; its report tells how it came about if ``stages`` are asked for."""
    program = coded(weighted(settled(elaborated(closed), names_of(device))))
    _check_types(program, device, name)
    flags = (False,) * len(closed.consts) + (donated or (False,) * len(closed.jaxpr.invars))
    members = 1 if mesh is None else mesh.size
    debugged = config.debug_backend == device.platform
    options = CompileOptions(
        device, flags, effects=closed.effects, name=name, eager=eager, members=members, stages=stages or debugged
    )
    start = time.perf_counter()
    hoisted = hoist_consts(program)[0]
    executable = edge.compile_for(device, hoisted, options)
    if debugged:
        from polyax.runtime.debugging.beside import beside  # which nobody else pays for

        executable = beside(executable, hoisted, options)
    return CompileEvent(name, device, executable, time.perf_counter() - start, closed, mesh)
