"""From applying primitives to running compiled programs: eager operations, jitted calls, and where they run."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polyax.control.callback import CALLBACKS
from polyax.control.calls.jit import pjit_p
from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.config import config
from polyax.ir.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var
from polyax.ir.primitive import Primitive, def_rule
from polyax.runtime.arrays import devices
from polyax.runtime.arrays.array import Array, is_concrete
from polyax.runtime.arrays.placing import Layout, from_host, on_devices
from polyax.runtime.contract.backend import CompileOptions, Device
from polyax.runtime.contract.hooks import CompileEvent
from polyax.runtime.contract.queue import serving
from polyax.runtime.plugins.compilations import notify_compiled
from polyax.runtime.running.programs import Program, make_entry
from polyax.trace.context import install_eval_trace
from polyax.trace.recording import hoist_consts
from polyax.trace.tracer import Trace, Tracer, leaked
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
    """The device that was asked for, else the one where the arguments are, else the default. What lies on several
    devices is put together on the first of them.

    Raises:
      ValueError: the arguments were put on different devices.
    """
    if asked is not None:
        return asked
    where = choose_layout(args)
    return where if isinstance(where, Device) else where.device_list[0]


def choose_layout(args: Sequence[Any]) -> Layout:
    """Where the arguments are, which may be on several devices; if there are no arrays, the default device."""
    found: Device | None = None
    for x in args:
        if type(x) is Array:
            device = x._device
            if device is None or (found is not None and device is not found):
                return _meeting_place(args)
            found = device
    return found if found is not None else devices.default_device_now()


def _meeting_place(args: Sequence[Any]) -> Layout:
    """Arrays that only happen to be on the default device follow those that were put elsewhere; what lies on several
    devices follows what was put on one."""
    default = devices.default_device_now()
    chosen = [x.device for x in args if is_concrete(x) and (x.committed or x.device is not default)]
    single = {d for d in chosen if isinstance(d, Device)}
    if len(single) > 1:
        places = "; ".join(f"{x.aval} on {x.device}" for x in args if is_concrete(x))
        raise ValueError(
            f"Received incompatible devices for one computation: {places}. Move them together with "
            "polyax.device_put(x, device)."
        )
    return single.pop() if single else chosen[0]


# --- programs -----------------------------------------------------------------------------------------------------


def compile_program(
    closed: ClosedJaxpr, device: Device, name: str, donated: tuple[bool, ...] = (), *, eager: bool = False
) -> Program:
    """The program for ``closed`` on ``device``; made once for each jaxpr, device and donation."""
    key = Program, device, donated, config.trace_key()
    return kept(closed, key, lambda: _compile(closed, device, name, donated, eager), wait=not serving())


def _compile(closed: ClosedJaxpr, device: Device, name: str, donated: tuple[bool, ...], eager: bool) -> Program:
    checked = closed if config.debug_nans or config.debug_infs else None
    if checked:  # the arguments may be needed again
        donated = ()
    event = build(closed, device, name, donated, eager=eager, stages=config.dump is not None)
    notify_compiled(event)
    inputs = [(v.aval, device) for v in (*closed.jaxpr.constvars, *closed.jaxpr.invars)]
    outputs = [(a, device) for a in closed.out_avals]
    return Program(name, event.executable, inputs, outputs, device, donated, closed.effects, checked)


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
    device = choose_layout(args)
    if not isinstance(device, Device):
        outs = _on_parts(primitive, args, avals, params)
        if outs is not None:
            return outs
        device = device.device_list[0]
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


def _on_parts(
    primitive: Primitive, args: Sequence[Any], avals: Sequence[ShapedArray], params: dict[str, Any]
) -> list[Any] | None:
    """The results of an elementwise primitive, computed where the parts of its operands lie."""
    layout = next((x.sharding for x in args if is_concrete(x) and x.shape and x._device is None), None)
    shapes = {a.shape for a in avals} - {()}
    if layout is None or not primitive.elementwise or len(shapes) > 1:
        return None
    (shape,) = shapes
    block = layout.shard_shape(shape)
    parts = [
        on_devices(x, a.update(shape=block), layout) if a.shape else [x] * len(layout.addressable_devices)
        for x, a in zip(args, avals, strict=True)
    ]
    results = [apply_primitive(primitive, xs, params) for xs in zip(*parts, strict=True)]
    return [Array.of_parts(ys[0].aval.update(shape=shape), ys, layout) for ys in zip(*results, strict=True)]


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
    return [from_host(x, device, a) for x, a in zip(outs, result_avals, strict=True)]


for _p in CALLBACKS:
    _p.impl = _call_back


def clear_caches() -> None:
    """Forgets every compiled program."""
    _eager.clear()
    forget()


install_eval_trace(EvalTrace())
