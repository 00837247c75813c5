"""The reference backend: interprets a jaxpr equation by equation with NumPy, on virtual devices of the host.

Slow and plain, so that the others can be tested against it and fall back to it. Must not know how others compile.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.ir.aval import ShapedArray
from polyax.ir.config import config
from polyax.ir.errors import NoLowering
from polyax.ir.flat import flatten
from polyax.ir.jaxpr import Atom, ClosedJaxpr, Eqn, Jaxpr, Literal, Var, last_uses, sub_jaxprs, walk_eqns
from polyax.ir.primitive import Primitive
from polyax.runtime.backend import Backend, Buffer, CompileOptions, Device, Executable
from polyax.runtime.queue import INLINE_COST, HostBuffer, HostQueue
from polyax.runtime.reference.rules import RULES
from polyax.runtime.report import BufferReport, KernelReport, Report

Rule = Callable[..., list[np.ndarray]]
_UNSET = np.empty(0)


class ReferenceBackend(Backend):
    """NumPy on ``POLYAX_NUM_CPU_DEVICES`` virtual devices, with one queue each."""

    name = "reference"

    def __init__(self) -> None:
        self._devices = tuple(
            Device(self, i, kind="NumPy", queue=HostQueue(f"reference:{i}")) for i in range(config.num_cpu_devices)
        )

    def devices(self) -> Sequence[Device]:
        return self._devices

    def to_device(self, host: np.ndarray, device: Device) -> HostBuffer:
        return HostBuffer(host.copy())

    def to_host(self, buffer: Buffer, aval: ShapedArray) -> np.ndarray:
        assert isinstance(buffer, HostBuffer)
        buffer.wait()
        view = buffer.data.view()
        view.flags.writeable = False
        return view

    def compile(self, jaxpr: ClosedJaxpr, options: CompileOptions) -> ReferenceExecutable:
        return ReferenceExecutable(jaxpr, options)

    def synchronize(self, device: Device) -> None:
        device.queue.synchronize()


class ReferenceExecutable(Executable):
    """A jaxpr whose primitives all have a rule."""

    def __init__(self, closed: ClosedJaxpr, options: CompileOptions) -> None:
        began = time.perf_counter()
        self._jaxpr = closed.jaxpr
        for eqn in walk_eqns(closed.jaxpr):
            _rule_of(eqn)
        self._cost = _cost(closed.jaxpr)
        self._seconds = time.perf_counter() - began

    def launch(self, buffers: Sequence[Buffer], queue: Any, tokens: Any = None) -> tuple[list[Buffer], Any]:
        outs = [HostBuffer(_UNSET) for _ in self._jaxpr.outs]
        inputs: list[Any] = list(buffers)

        def work() -> None:
            values = evaluate(self._jaxpr, [b.data for b in inputs])
            for out, value in zip(outs, values, strict=True):
                out.data = np.asarray(value, order="C")
            inputs.clear()  # frees memory as soon as nobody needs it

        task = queue.run(work, list(buffers), self._cost)
        for out in outs:
            out.task = task
        return list(outs), tokens

    def report(self) -> Report:
        return _report(self._jaxpr, self._seconds)


def run_on_host(primitive: Primitive, arrays: Sequence[np.ndarray], params: dict[str, Any]) -> list[np.ndarray]:
    """The results of one primitive: what other backends fall back to.

    Raises:
      NoLowering: there is no NumPy rule for it.
    """
    avals = [ShapedArray(x.shape, x.dtype) for x in arrays]
    eqn = Eqn(primitive, [Var(a) for a in avals], [], params)
    return [np.asarray(x, order="C") for x in _rule_of(eqn)(*arrays, **params)]


def evaluate(jaxpr: Jaxpr, args: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The outputs of ``jaxpr`` for its constants and inputs. Values are dropped after their last use."""
    env: dict[Var, np.ndarray] = dict(zip((*jaxpr.constvars, *jaxpr.invars), args, strict=True))
    last = last_uses(jaxpr)

    def read(atom: Atom) -> np.ndarray:
        return np.asarray(atom.val, atom.aval.dtype) if isinstance(atom, Literal) else env[atom]

    for i, eqn in enumerate(jaxpr.eqns):
        results = _apply(eqn, [read(v) for v in eqn.inputs])
        for var, value in zip(eqn.outs, results, strict=True):
            env[var] = _checked(value, var.aval, eqn)
        for var in last.get(i, ()):
            env.pop(var, None)
    return [read(v) for v in jaxpr.outs]


def _apply(eqn: Eqn, args: Sequence[np.ndarray]) -> list[np.ndarray]:
    try:
        return _rule_of(eqn)(*args, **eqn.params)
    except Exception as e:
        if eqn.source is not None:  # the error may surface far from the line that asked for the computation
            e.add_note(f"while computing {eqn.primitive}, asked for at {eqn.source}")
        raise


def _checked(value: Any, aval: ShapedArray, eqn: Eqn) -> np.ndarray:
    """``value``, which must have the type that the program says; this backend is what the others are judged by."""
    value = np.asarray(value)
    if not dtypes.is_extended(aval.dtype) and (value.shape != aval.shape or value.dtype != aval.dtype):
        found = ShapedArray(value.shape, value.dtype)
        raise TypeError(f"the NumPy rule of {eqn.primitive} gave {found}, its type is {aval}; in {eqn}")
    return value


def _rule_of(eqn: Eqn) -> Rule:
    """The NumPy rule of an equation's primitive; a program in its parameters that takes its inputs is a call.

    Raises:
      NoLowering: there is none.
    """
    rule = RULES.get(eqn.primitive)
    if rule is not None:
        return rule
    inner = _called(eqn)
    if inner is not None:
        return lambda *args, **_: evaluate(inner.jaxpr, [*inner.consts, *args])
    raise NoLowering(f"the reference backend has no NumPy rule for {eqn.primitive.name!r}, needed by {eqn}")


def _called(eqn: Eqn) -> ClosedJaxpr | None:
    """The program that takes the equation's inputs, if running it is all that the equation does."""
    inner = [] if eqn.primitive in RULES else sub_jaxprs(eqn)
    return inner[0] if len(inner) == 1 and len(inner[0].jaxpr.invars) == len(eqn.inputs) else None


def _cost(jaxpr: Jaxpr) -> int:
    """About how many bytes are touched; a bound that is passed if programs nest, since loops may run for long."""
    total = 0
    for eqn in walk_eqns(jaxpr):
        total += sum(v.aval.nbytes for v in (*eqn.inputs, *eqn.outs))
        if eqn.primitive.name == "dot_general":
            total += _product_cost(eqn)
        elif eqn.primitive.higher_order and eqn.primitive.name != "pjit":
            return INLINE_COST + 1
    return total


def _product_cost(eqn: Eqn) -> int:
    contracted: Sequence[int] = eqn.params["dimension_numbers"][0][0]
    shape = eqn.inputs[0].aval.shape
    return eqn.outs[0].aval.size * math.prod(shape[d] for d in contracted)


def _report(jaxpr: Jaxpr, seconds: float) -> Report:
    """Each equation is a library call; nothing is fused."""
    program = flatten(jaxpr, _called)
    calls = [_call_report(n, line.eqn) for n, line in enumerate(program.lines)]
    inputs = [BufferReport("input", v.aval.nbytes, v.aval) for v in (*jaxpr.constvars, *jaxpr.invars)]
    results = [BufferReport("result", a.nbytes, a) for a in jaxpr.out_avals]
    return Report(
        "reference",
        calls,
        bytes_unfused=sum(c.bytes_moved for c in calls),
        compile_seconds=seconds,
        buffers=[*inputs, *results],
        phases={"check": seconds},
        program=program,
    )


def _call_report(number: int, eqn: Eqn) -> KernelReport:
    moved = sum(v.aval.nbytes for v in (*eqn.inputs, *eqn.outs))
    avals = tuple([v.aval for v in eqn.outs])
    name, flops = eqn.primitive.name, sum(a.size for a in avals)
    if name == "dot_general":
        flops = 2 * _product_cost(eqn)
    return KernelReport(name, (name,), moved, flops, kind="call", outputs=avals, equations=(number,))
