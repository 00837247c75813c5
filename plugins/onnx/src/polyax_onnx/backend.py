"""The backend: a program is written out, cut into what ONNX Runtime takes and what it doesn't, and run part by part.

Loops and branches are turned by Python; what is in them is cut likewise.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from polyax.backend import (
    HELP_COST,
    LIBRARY,
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


class OnnxStep(NamedTuple):
    """A part of a program, made to run: by the engine, on the host, or as a loop or branch of such programs."""

    run: engine.Run
    program: ClosedJaxpr
    dropped: Sequence[Var]
    where: str


class OnnxProgram:
    """Steps, and the values between them."""

    def __init__(self, closed: ClosedJaxpr, name: str) -> None:
        self.name = name
        self.whole = decompose(closed, lambda eqn: engine.why_not(eqn) is None or eqn.primitive.name in HOST)
        parts = partition(self.whole, engine.why_not)
        self.steps = [step for n, part in enumerate(parts) for step in self._steps(part, f"{name}.{n}")]

    def _steps(self, part: ProgramPart, name: str) -> list[OnnxStep]:
        if part.taken:
            return [OnnxStep(engine.session(part.program.jaxpr, name), part.program, part.dropped, "engine")]
        eqns = part.program.eqns
        last = len(eqns) - 1
        return [self._on_host(eqn, part, part.dropped if n == last else ()) for n, eqn in enumerate(eqns)]

    def _on_host(self, eqn: Eqn, part: ProgramPart, dropped: Sequence[Var]) -> OnnxStep:
        program = engine.closed(eqn)
        if eqn.primitive.name not in FLOW:
            return OnnxStep(on_host(program, "onnx", part.reasons, HOST), program, dropped, "host")
        inner = FLOW[eqn.primitive.name](eqn, lambda closed: OnnxProgram(closed, self.name))
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
        began = time.perf_counter()
        self._program = OnnxProgram(closed, options.name)
        super().__init__(self._program, len(closed.jaxpr.outvars), _cost(closed), closed.effects)
        self._seconds = time.perf_counter() - began

    def report(self) -> Report:
        steps = [_told(step) for step in self._program.steps]
        return Report("onnx", steps, compile_seconds=self._seconds)


def _cost(closed: ClosedJaxpr) -> int:
    """About how many bytes are touched; a bound that is passed where that isn't known."""
    heavy = {"dot_general", "conv_general_dilated", *FLOW}
    if any(e.primitive.name in heavy or e.primitive.higher_order for e in closed.eqns):
        return HELP_COST + 1
    return sum(v.aval.nbytes for e in closed.eqns for v in (*e.invars, *e.outvars))


def _told(step: OnnxStep) -> KernelReport:
    ends = (*step.program.invars, *step.program.outvars)
    names = tuple(e.primitive.name for e in step.program.eqns)
    outs = tuple(v.aval for v in step.program.outvars)
    moved, flops = sum(v.aval.nbytes for v in ends), sum(v.aval.size for e in step.program.eqns for v in e.outvars)
    kinds: Any = {"engine": "kernel", "host": "call", "flow": "loop"}
    return KernelReport(step.where, names, moved, flops, kind=kinds[step.where], outputs=outs, rules=(step.where,))
