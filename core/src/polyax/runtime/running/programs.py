"""``Program``: what every call ends in. Arguments are placed, an executable is launched, its results become arrays.

Must not know how programs come about.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.ir.aval import ShapedArray
from polyax.ir.config import config
from polyax.ir.effects import NO_EFFECTS, Effects
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.ir.primitive import ambient, note
from polyax.runtime.arrays import guards, origins
from polyax.runtime.arrays.array import Array, is_concrete
from polyax.runtime.arrays.placing import Layout, on_device, on_devices
from polyax.runtime.contract import edge, effects
from polyax.runtime.contract.backend import Buffer, Device, Executable, Seat
from polyax.runtime.contract.calls import NativeCall
from polyax.runtime.debugging import watching
from polyax.runtime.plugins.default_device import default_device_now
from polyax.runtime.running import donation, nonfinite
from polyax.trace.tracer import Tracer, leaked
from polyax.trace.tree import LEAF, PyTreeDef, tree_unflatten, unflattener

Places = Sequence[tuple[ShapedArray, Layout]]
"""Types of values, and where they lie."""


@dataclass(slots=True)
class Program:
    """An executable, with where its constants and inputs have to be, each of the type that a device sees, and what its
    results are. If ``device`` is None, there are several: what is a buffer elsewhere is the list of a value's parts."""

    name: str
    executable: Executable
    inputs: Places
    outputs: Places
    device: Any = None
    donated: Sequence[bool] = ()
    effects: Effects = NO_EFFECTS
    checked: ClosedJaxpr | None = None
    """Where NaNs are looked for, if they are."""
    large: bool = field(init=False)
    """Whether results know where they were made."""
    launch: edge.Launch = field(init=False)
    """That of the executable, checked."""
    quick: NativeCall | None = field(default=None, init=False)
    """What runs it on arguments as they come, once somebody has asked for that."""

    def __post_init__(self) -> None:
        avals = [a for a, _ in self.outputs]
        self.large = origins.has_large(avals)
        one = isinstance(self.device, Device)
        self.launch = edge.launcher(self.executable, self.device, self.name, avals) if one else self.executable.launch
        if one and config.launch_timeout:
            self.launch = watching.watched(self.launch, self.executable, self.device, self.name)

    def on(self, device: Device) -> Program:
        """The same program for another device that launches its executable."""
        if device is self.device:
            return self
        inputs, outputs = ([(a, device) for a, _ in places] for places in (self.inputs, self.outputs))
        return replace(self, inputs=inputs, outputs=outputs, device=device)

    def run(self, args: Sequence[Any]) -> list[Any]:
        """Constants, then inputs."""
        buffers = [placed(x, a, where) for x, (a, where) in zip(args, self.inputs, strict=True)]
        return self.run_placed(buffers, args, None if self.device is None else seat_of(self.device, args))

    def run_placed(self, buffers: Sequence[Any], args: Sequence[Any], seat: Seat | None) -> list[Any]:
        """``seat``: that of results on one device."""
        device = self.device
        if self.donated:
            donation.refuse_reuse(args[-len(self.donated) :], self.donated)
        outs, token = self.launch(buffers, device and device.queue)
        if token is not None:
            tokens = token if device is None else [(edge.token(token, device, self.name), device)]
            effects.started(self.name, tokens)
        arrays = [_array(a, b, seat or where) for (a, where), b in zip(self.outputs, outs)]
        if self.large:
            origins.note(arrays)
        if self.checked is not None:
            nonfinite.check(arrays, self.checked, args, self.name)
        if self.donated:
            count = len(self.donated)
            donation.delete(args[-count:], self.donated, buffers[-count:], device)
        return arrays

    @property
    def special(self) -> bool:
        """Whether there is more to a run than a launch."""
        return bool(self.donated or self.effects) or self.checked is not None


class Refused(Program):
    """A program that was asked for where none may run (``no_execution``)."""

    @property
    def special(self) -> bool:
        return True

    def run_placed(self, buffers: Sequence[Any], args: Sequence[Any], seat: Seat | None) -> list[Any]:
        raise RuntimeError(f"JAX tried to execute function {self.name}, but the no_execution config option is set")


def seat_of(device: Device, args: Sequence[Any]) -> Seat:
    """That of what is made of ``args`` on ``device``."""
    for x in args:
        if type(x) is Array and ((seat := x._seat) is None or seat.committed):
            return device.chosen
    return device.free


def _array(aval: ShapedArray, made: Any, where: Any) -> Any:
    if not isinstance(where, Seat):
        return Array.of_parts(aval, made, where)
    return np.zeros(aval.shape, dtypes.float0) if aval.dtype == dtypes.float0 else Array(aval, made, where)


def placed(x: Any, aval: ShapedArray, where: Layout) -> Any:
    """What an executable gets for ``x``: its buffer on a device, or its parts on several; ``aval`` is their type."""
    if type(x) is Array and x._device is where:
        return x.alive()
    if not isinstance(where, Device):
        return on_devices(x, aval, where)
    if is_concrete(x):
        return on_device(x, where).alive()
    if isinstance(x, Tracer):  # of a function that is done: who runs it has no trace that would say so
        raise leaked(x)
    if guards.on:
        guards.passes("host_to_device", aval, where)
    if aval.dtype == dtypes.float0:
        x, aval = np.zeros(aval.shape, bool), aval.update(dtype=np.dtype(bool))  # as compiled programs have it
    host = np.ascontiguousarray(np.asarray(x, aval.dtype)).reshape(aval.shape)
    return edge.to_device(host.view(aval.stored.dtype), where)


@dataclass(frozen=True, slots=True)
class Constant:
    """A program's own, where it was noted what the program was given."""

    buffer: Buffer


Entry = Callable[[Sequence[Any]], Any]
"""What a jitted call ends in: leaves of the arguments to results."""
Moved = Callable[[Sequence[Any]], Any]
"""What is done where arguments lie otherwise than an entry has it."""


def buffers_of_consts(program: Program, consts: Sequence[Any]) -> list[Buffer]:
    """Those of a program on one device."""
    with guards.embedded():
        return [placed(c, a, program.device) for c, (a, _) in zip(consts, program.inputs)]


def make_entry(
    program: Program,
    consts: Sequence[Any],
    const_buffers: list[Buffer],
    out_tree: PyTreeDef,
    moved: Moved | None,
    pinned: bool,
) -> Entry:
    """The entry of a program on one device. The common case does little more than collect buffers and launch; calls
    with arguments on other devices go through ``moved``, if there is one. ``pinned``: results are committed."""
    device, inputs = program.device, program.inputs[len(consts) :]
    free, chosen = device.free, device.chosen
    usual = chosen if pinned else free
    queue, launch, out_avals = device.queue, program.launch, [a for a, _ in program.outputs]
    special = program.special or any(a.dtype == dtypes.float0 for a in out_avals)
    single, together = out_avals[0] if out_tree == LEAF else None, unflattener(out_tree)
    constants = [Constant(b) for b in const_buffers]

    def entry(leaves: Sequence[Any]) -> Any:
        seat: Any = getattr(leaves[0], "_seat", None) if leaves else free
        buffers: Any = _buffers_at(seat, leaves) if seat is chosen or seat is free else None
        if buffers is None:
            if moved is not None and _belong_elsewhere(device, leaves):
                return moved(leaves)
            buffers = [placed(x, a, device) for x, (a, _) in zip(leaves, inputs, strict=True)]
            seat = chosen if pinned else seat_of(device, leaves)
        elif seat is free:
            if moved is not None and default_device_now() is not device:
                return moved(leaves)
            seat = usual
        if const_buffers:
            buffers = const_buffers + buffers
        if special:
            return tree_unflatten(out_tree, program.run_placed(buffers, [*consts, *leaves], seat))
        outs, _ = launch(buffers, queue)
        noted = ambient.applied is not None
        if single is not None and not noted:
            return Array(single, outs[0], seat)
        arrays = [Array(a, b, seat) for a, b in zip(out_avals, outs)]
        if noted:
            note(program, (*constants, *leaves), arrays)
        return together(arrays)

    return origins.noting(entry) if program.large and not special else entry


def _belong_elsewhere(device: Device, leaves: Sequence[Any]) -> bool:
    """Whether a call with these isn't one for ``device``: without committed arrays it is one for the default device."""
    committed = {x._device for x in leaves if type(x) is Array and x.committed}
    return committed != {device} if committed else default_device_now() is not device


def _buffers_at(seat: Seat, leaves: Sequence[Any]) -> list[Buffer] | None:
    """The buffers of ``leaves`` if all are arrays there, deleted ones not."""
    buffers = []
    try:
        for x in leaves:
            if x._seat is not seat or x.buffer is None:
                return None
            buffers.append(x.buffer)
    except AttributeError:  # a NumPy array or a scalar
        return None
    return buffers


def make_mesh_entry(program: Program, consts: Sequence[Any], out_tree: PyTreeDef, moved: Moved | None) -> Entry:
    """The same for a program on several devices: arrays that lie as they should are launched with as they are."""
    inputs = program.inputs[len(consts) :]
    with guards.embedded():
        const_parts = [placed(c, a, where) for c, (a, where) in zip(consts, program.inputs)]
    layouts = [where for _, where in inputs]
    single = out_tree == LEAF

    def entry(leaves: Sequence[Any]) -> Any:
        parts: Any = _parts_as(layouts, leaves)
        if parts is None:
            if moved is not None:
                return moved(leaves)
            parts = [placed(x, a, where) for x, (a, where) in zip(leaves, inputs, strict=True)]
        try:
            outs = program.run_placed(const_parts + parts if const_parts else parts, [*consts, *leaves], None)
        except RuntimeError:
            for x in leaves:
                if is_concrete(x):
                    x.alive()  # says more than that a part of it was deleted
            raise
        return outs[0] if single else tree_unflatten(out_tree, outs)

    return entry


def _parts_as(layouts: Sequence[Any], leaves: Sequence[Any]) -> list[Any] | None:
    """The parts of ``leaves`` if all are arrays that lie as ``layouts`` say."""
    try:
        parts = [x._parts for x, s in zip(leaves, layouts) if x._sharding is s]
    except AttributeError:  # a NumPy array, a scalar, or an array on one device
        return None
    return parts if len(parts) == len(leaves) and all(parts) else None
