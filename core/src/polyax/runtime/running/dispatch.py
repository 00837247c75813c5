"""From applying primitives to running compiled programs: eager operations, jitted calls, and where they run."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polyax.control.callback import CALLBACKS
from polyax.control.calls.jit import pjit_p
from polyax.ir import dtypes
from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.config import config
from polyax.ir.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var
from polyax.ir.primitive import Primitive, def_rule
from polyax.runtime.arrays import devices
from polyax.runtime.arrays.array import Array
from polyax.runtime.contract import effects
from polyax.runtime.contract.backend import Buffer, CompileOptions, Device, Executable
from polyax.runtime.contract.hooks import CompileEvent
from polyax.runtime.contract.queue import serving
from polyax.runtime.plugins.compilations import notify_compiled
from polyax.runtime.running import nonfinite
from polyax.trace.context import install_eval_trace
from polyax.trace.recording import hoist_consts
from polyax.trace.tracer import Trace, Tracer, leaked
from polyax.trace.tree import LEAF, PyTreeDef, tree_unflatten
from polyax.transforms.memo import forget, kept, once

__all__ = ["choose_device", "compile_program", "device_of", "leaked", "make_entry"]


class EvalTrace(Trace):
    """The bottom of every stack of transformations: applying a primitive runs it."""

    __slots__ = ()

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> list[Any]:
        for x in args:
            if isinstance(x, Tracer):
                raise leaked(x)
        if primitive.impl is not None:
            return primitive.impl(*args, **params)
        return apply_primitive(primitive, args, params)


# --- devices ------------------------------------------------------------------------------------------------------


def device_of(device: Any, backend: str | None) -> Device | None:
    """The device that ``jit(device=, backend=)`` asks for; None: to be chosen by the arguments."""
    if device is not None:
        return device
    return devices.devices(backend)[0] if backend is not None else None


def choose_device(asked: Device | None, args: Sequence[Any]) -> Device:
    """The device that was asked for, else the one where the arguments are, else the default.

    Raises:
      ValueError: the arguments were put on different devices.
    """
    if asked is not None:
        return asked
    found: Device | None = None
    for x in args:
        if type(x) is Array:
            if found is None:
                found = x._device
            elif x._device is not found:
                return _committed_device(args)
    return found if found is not None else _first_of_several(args)


def _first_of_several(args: Sequence[Any]) -> Device:
    """Arrays on several devices are gathered on the first of theirs."""
    for x in args:
        if isinstance(x, Array) and not isinstance(x, Tracer):
            return x.addressable_shards[0].device
    return devices.default_device_now()


def _committed_device(args: Sequence[Any]) -> Device:
    """Arrays that only happen to be on the default device follow those that were put elsewhere."""
    default = devices.default_device_now()
    found = {x.device for x in args if type(x) is Array and (x.committed or x.device is not default)}
    if len(found) != 1:
        raise _incompatible(args)
    return found.pop()


def _incompatible(args: Sequence[Any]) -> ValueError:
    places = "; ".join(f"{x.aval} on {x._device}" for x in args if type(x) is Array)
    return ValueError(
        f"Received incompatible devices for one computation: {places}. Move them together with "
        "polyax.device_put(x, device)."
    )


def as_buffer(x: Any, aval: ShapedArray, device: Device) -> Buffer:
    """The buffer of a value on ``device``; moved or converted if need be."""
    if type(x) is Array:
        if x._device is device:
            return x.alive()
        return devices.device_put(x, device).buffer
    if isinstance(x, Array):  # on several devices
        return device.backend.to_device(x.host_value(), device)
    return device.backend.to_device(np.ascontiguousarray(np.asarray(x, aval.dtype)).reshape(aval.shape), device)


# --- programs -----------------------------------------------------------------------------------------------------


class Program:
    """An executable for one device, with what is needed to make arrays of its results."""

    __slots__ = ("checked", "device", "donated", "effects", "executable", "in_avals", "launch", "name", "out_avals")

    def __init__(
        self, executable: Executable, closed: ClosedJaxpr, device: Device, name: str, donated: tuple[bool, ...]
    ) -> None:
        self.executable = executable
        self.launch = executable.launch
        self.in_avals = [v.aval for v in (*closed.jaxpr.constvars, *closed.jaxpr.invars)]
        self.out_avals = closed.out_avals
        self.device = device
        self.name = name
        self.donated = donated
        self.effects = closed.effects
        self.checked = closed if config.debug_nans or config.debug_infs else None

    def run(self, args: Sequence[Any]) -> list[Any]:
        """Constants, then inputs."""
        device = self.device
        buffers = [as_buffer(x, a, device) for x, a in zip(args, self.in_avals, strict=True)]
        return self.run_buffers(buffers, args)

    def run_buffers(self, buffers: Sequence[Buffer], args: Sequence[Any]) -> list[Any]:
        device = self.device
        outs, token = self.launch(buffers, device.queue)
        if token is not None:
            effects.started(self.name, [token])
        arrays = [_make_array(a, b, device) for a, b in zip(self.out_avals, outs)]
        if self.checked is not None:
            nonfinite.check(arrays, self.checked, args, self.name)
        if self.donated:
            _delete_donated(args[len(args) - len(self.donated) :], self.donated, self.device)
        return arrays


def _make_array(aval: ShapedArray, buffer: Buffer, device: Device) -> Any:
    if aval.dtype == dtypes.float0:
        return np.zeros(aval.shape, dtypes.float0)
    return Array(aval, buffer, device)


def _delete_donated(args: Sequence[Any], donated: Sequence[bool], device: Device) -> None:
    for x, d in zip(args, donated, strict=True):
        if d and type(x) is Array and x._device is device:
            x.delete()


def make_entry(
    program: Program, consts: Sequence[Any], out_tree: PyTreeDef, moved: Callable[[Sequence[Any]], Any], fixed: bool
) -> Callable[[Sequence[Any]], Any]:
    """The function that a jitted call ends in: leaves of the arguments to results. The common case does little more
    than collect buffers and launch; arguments on other devices go through ``moved``."""
    device, in_avals = program.device, program.in_avals[len(consts) :]
    const_buffers = [as_buffer(c, a, device) for c, a in zip(consts, program.in_avals)]
    queue, launch, out_avals = device.queue, program.launch, program.out_avals
    special = (
        bool(program.donated or program.effects)
        or program.checked is not None
        or any(a.dtype == dtypes.float0 for a in out_avals)
    )
    single = out_avals[0] if out_tree == LEAF else None

    def entry(leaves: Sequence[Any]) -> Any:
        buffers: Any = _buffers_on(device, leaves)
        if buffers is None:
            if not fixed and any(type(x) is Array and x._device is not device for x in leaves):
                return moved(leaves)
            buffers = [as_buffer(x, a, device) for x, a in zip(leaves, in_avals, strict=True)]
        if const_buffers:
            buffers = const_buffers + buffers
        if special:
            return tree_unflatten(out_tree, program.run_buffers(buffers, [*consts, *leaves]))
        outs, _ = launch(buffers, queue)
        if single is not None:
            return Array(single, outs[0], device)
        return tree_unflatten(out_tree, [Array(a, b, device) for a, b in zip(out_avals, outs)])

    return entry


def _buffers_on(device: Device, leaves: Sequence[Any]) -> list[Buffer] | None:
    """The buffers of ``leaves`` if all are arrays on ``device``, deleted ones not."""
    try:
        buffers = [x.buffer for x in leaves if x._device is device]
    except AttributeError:  # a NumPy array or a scalar
        return None
    return buffers if len(buffers) == len(leaves) and None not in buffers else None


def compile_program(
    closed: ClosedJaxpr, device: Device, name: str, donated: tuple[bool, ...] = (), *, eager: bool = False
) -> Program:
    """The program for ``closed`` on ``device``; made once for each jaxpr, device and donation."""
    key = Program, device, donated, config.trace_key()
    return kept(closed, key, lambda: _compile(closed, device, name, donated, eager), wait=not serving())


def _compile(closed: ClosedJaxpr, device: Device, name: str, donated: tuple[bool, ...], eager: bool) -> Program:
    if config.debug_nans or config.debug_infs:  # the arguments may be needed again
        donated = ()
    event = build(closed, device, name, donated, eager=eager, stages=config.dump is not None)
    notify_compiled(event)
    return Program(event.executable, closed, device, name, donated)


def build(
    closed: ClosedJaxpr, device: Device, name: str, donated: tuple[bool, ...], *, eager: bool = False, stages: bool
) -> CompileEvent:
    """A new executable, which is kept nowhere; its report tells how it came about if ``stages`` are asked for."""
    for v in (*closed.jaxpr.constvars, *closed.jaxpr.invars):
        if reason := device.backend.why_no_dtype(v.aval.dtype):
            raise TypeError(f"{name}: an argument of type {v.aval} can't live on {device}: {reason}")
    flags = (False,) * len(closed.consts) + (donated or (False,) * len(closed.jaxpr.invars))
    options = CompileOptions(device, flags, effects=closed.effects, name=name, eager=eager, stages=stages)
    start = time.perf_counter()
    executable = device.backend.compile(hoist_consts(closed)[0], options)
    return CompileEvent(name, device, executable, time.perf_counter() - start, closed)


# --- applying primitives ------------------------------------------------------------------------------------------

EAGER_PROGRAMS = 4096
"""How many programs of single primitives are kept."""

_eager: dict[Any, Program] = {}


def apply_primitive(primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """Runs one primitive as a program of its own."""
    avals = tuple([x.aval if type(x) is Array else aval_of(x) for x in args])
    device = choose_device(None, args)
    key = primitive, avals, tuple(params.items()), device, config.trace_key()
    inner = None if primitive.sub_jaxprs is None else primitive.sub_jaxprs(**params)
    table = inner[0].memo if inner else _eager  # programs of programs go when these go
    try:
        program = table.get(key)
    except TypeError:  # an unhashable parameter: compiled each time, as nothing tells it from another
        return _compile_primitive(primitive, avals, params, device).run(args)
    if program is None:
        sorted_key = (*key[:2], tuple(sorted(params.items())), *key[3:])  # the order of parameters means nothing
        make = functools.partial(_compile_primitive, primitive, avals, params, device)
        program = table[key] = _kept_primitive(inner, sorted_key, make)
    return program.run(args)


def _kept_primitive(inner: Sequence[ClosedJaxpr] | None, key: Any, make: Callable[[], Program]) -> Program:
    if inner:
        return kept(inner[0], key, make, wait=not serving())
    if len(_eager) >= EAGER_PROGRAMS:
        _forget_oldest()
    return once(_eager, key, make, wait=not serving())


def _forget_oldest() -> None:
    """Makes room: calls whose parameters differ each time must not fill the memory."""
    for key in list(_eager)[: EAGER_PROGRAMS // 2]:
        _eager.pop(key, None)


def _compile_primitive(
    primitive: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any], device: Device
) -> Program:
    result = primitive.rule("abstract_eval")(*avals, **params)
    out_avals, effects = result if isinstance(result, tuple) else (result, frozenset())
    invars, outs = [Var(a) for a in avals], [Var(a) for a in out_avals]
    eqn = Eqn(primitive, invars, outs, params, effects)
    closed = ClosedJaxpr(Jaxpr([], invars, outs, [eqn], effects), [])
    return _compile(closed, device, primitive.name, (), eager=True)


@def_rule(pjit_p, "impl")
def _run_pjit(
    *args: Any, jaxpr: ClosedJaxpr, name: str, donated: tuple[bool, ...], device: Device | None, **_: Any
) -> list[Any]:
    where = choose_device(device, args)
    return compile_program(jaxpr, where, name, donated).run(args)


def _call_back(*args: Any, callback: Any, result_avals: Sequence[ShapedArray], **_: Any) -> list[Array]:
    """Outside of programs, users' functions are called at once."""
    device = choose_device(None, args)
    outs = callback([np.array(x) for x in args], result_avals)
    return [devices.from_host(x, device, a) for x, a in zip(outs, result_avals, strict=True)]


for _p in CALLBACKS:
    _p.impl = _call_back


def clear_caches() -> None:
    """Forgets every compiled program."""
    _eager.clear()
    forget()


install_eval_trace(EvalTrace())
