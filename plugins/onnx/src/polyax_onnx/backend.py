"""The backend: a program is written out, cut into what ONNX Runtime takes and what it doesn't, and run part by part.

Loops and branches are turned by Python; what is in them is cut likewise.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from polyax.backend import (
    HELP_COST,
    LIBRARY,
    BufferReport,
    ClosedJaxpr,
    CompileOptions,
    Eqn,
    HostArrayBackend,
    HostArrayExecutable,
    KernelReport,
    Literal,
    ProgramPart,
    Report,
    Var,
    decompose,
    flatten,
    on_host,
    partition,
)
from polyax_onnx import engine
from polyax_onnx.flow import FLOW

HOST = LIBRARY | {"bitcast_convert_type"}
"""What NumPy runs without being asked; another look at the same bits costs nothing there."""


class OnnxBackend(HostArrayBackend):
    """Devices of the host, programmed in ONNX."""

    name = "onnx"

    def __init__(self) -> None:
        super().__init__("ONNX Runtime, CPUExecutionProvider")

    def compile(self, jaxpr: ClosedJaxpr, options: CompileOptions) -> OnnxExecutable:
        return OnnxExecutable(jaxpr, options)

    def why_no_dtype(self, dtype: Any) -> str | None:
        return engine.why_no_dtype(dtype)

    def declines(self, eqn: Eqn) -> str | None:
        """The engine is asked; some operators want constants for operands."""
        return engine.why_not(eqn)


class OnnxStep(NamedTuple):
    """A part of a program, made to run: by the engine, on the host, or as a loop or branch of such programs."""

    run: engine.Run
    program: ClosedJaxpr
    dropped: Sequence[Var]
    where: str


class OnnxProgram:
    """Steps, and the values between them."""

    def __init__(self, closed: ClosedJaxpr, name: str, declines: Callable[[Eqn], str | None]) -> None:
        self.name = name
        self.declines = declines
        began = time.perf_counter()
        self.whole = decompose(closed, lambda eqn: declines(eqn) is None or eqn.primitive.name in HOST)
        parts = partition(self.whole, declines)
        cut = time.perf_counter()
        self.steps = [step for n, part in enumerate(parts) for step in self._steps(part, f"{name}.{n}")]
        self.phases = {"cut into parts": cut - began, "make sessions": time.perf_counter() - cut}

    def _steps(self, part: ProgramPart, name: str) -> list[OnnxStep]:
        if part.taken:
            return [OnnxStep(engine.session(part.program.jaxpr, name), part.program, part.dropped, "engine")]
        eqns = part.program.eqns
        return [self._on_host(eqn, part, part.dropped if eqn is eqns[-1] else ()) for eqn in eqns]

    def _on_host(self, eqn: Eqn, part: ProgramPart, dropped: Sequence[Var]) -> OnnxStep:
        program = engine.closed(eqn)
        if eqn.primitive.name not in FLOW:
            return OnnxStep(on_host(program, "onnx", part.reasons, HOST), program, dropped, "host")
        inner = FLOW[eqn.primitive.name](eqn, lambda closed: OnnxProgram(closed, self.name, self.declines))
        return OnnxStep(_fed(eqn, inner), program, dropped, "flow")

    def __call__(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        jaxpr = self.whole.jaxpr
        env = dict(zip((*jaxpr.constvars, *jaxpr.invars), arrays, strict=True))
        for step in self.steps:
            results = step.run([env[v] for v in step.program.invars])
            for v in step.dropped:
                env.pop(v, None)
            outs: Any = step.program.outvars
            env.update(zip(outs, results, strict=True))
        return [np.asarray(a.val, a.aval.dtype) if isinstance(a, Literal) else env[a] for a in jaxpr.outvars]


def _fed(eqn: Eqn, run: Callable[..., Any]) -> engine.Run:
    """``run`` for the arrays of an equation's variables, each given once; literals are put between them."""
    numbers = {v: n for n, v in enumerate(dict.fromkeys(a for a in eqn.invars if isinstance(a, Var)))}
    literals = [np.asarray(a.val, a.aval.dtype) if isinstance(a, Literal) else None for a in eqn.invars]

    def fed(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        values = zip(eqn.invars, literals, strict=True)
        return run([arrays[numbers[a]] if isinstance(a, Var) else literal for a, literal in values])

    return fed


class OnnxExecutable(HostArrayExecutable):
    """A program for a device of the host, run by its queue."""

    def __init__(self, closed: ClosedJaxpr, options: CompileOptions) -> None:
        self._program = OnnxProgram(closed, options.name, options.device.backend.declines)
        self._stages = options.stages
        super().__init__(self._program, len(closed.jaxpr.outvars), _cost(closed), closed.effects)

    def report(self) -> Report:
        jaxpr, phases = self._program.whole.jaxpr, self._program.phases
        listing = flatten(jaxpr, lambda eqn: None)
        numbers = {id(line.eqn): n for n, line in enumerate(listing.lines)}
        ends: Any = [("input", v.aval) for v in (*jaxpr.constvars, *jaxpr.invars)]
        ends += [("result", a.aval) for a in jaxpr.outvars]
        buffers = [BufferReport(role, aval.nbytes, aval) for role, aval in ends]
        steps = [_told(step, numbers) for step in self._program.steps]
        unfused, seconds = sum(map(_moved, jaxpr.eqns)), sum(phases.values())
        return Report("onnx", steps, [], 0, unfused, seconds, buffers, phases, listing if self._stages else None)


def _cost(closed: ClosedJaxpr) -> int:
    """About how many bytes are touched; a bound that is passed where that isn't known."""
    heavy = {"dot_general", "conv_general_dilated", *FLOW}
    if any(e.primitive.name in heavy or e.primitive.higher_order for e in closed.eqns):
        return HELP_COST + 1
    return sum(map(_moved, closed.eqns))


def _moved(eqn: Eqn) -> int:
    return sum(v.aval.nbytes for v in (*eqn.invars, *eqn.outvars))


def _told(step: OnnxStep, numbers: Mapping[int, int]) -> KernelReport:
    ends = (*step.program.invars, *step.program.outvars)
    names = tuple(e.primitive.name for e in step.program.eqns)
    outs = tuple(v.aval for v in step.program.outvars)
    moved, flops = sum(v.aval.nbytes for v in ends), sum(map(_work, step.program.eqns))
    equations = tuple(sorted(numbers[id(e)] for e in step.program.eqns if id(e) in numbers))
    kinds: Any = {"engine": "kernel", "host": "call", "flow": "loop"}
    return KernelReport(step.where, names, moved, flops, "", kinds[step.where], outs, equations, (step.where,))


def _work(eqn: Eqn) -> int:
    """Scalar operations, as far as types tell: of a product, one more for each that is added up."""
    folded = eqn.params["dimension_numbers"][0][0] if eqn.primitive.name == "dot_general" else None
    each = 1 if folded is None else 2 * math.prod(eqn.invars[0].aval.shape[d] for d in folded)
    return each * sum(v.aval.size for v in eqn.outvars)
