"""The reference backend: interprets a jaxpr equation by equation with NumPy, on virtual devices of the host.

Slow and plain, so that the others can be tested against it and fall back to it. Must not know how others compile.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from polyax.ir import blame
from polyax.ir.jaxpr import ClosedJaxpr, Eqn, Jaxpr, walk_eqns
from polyax.reference import rules as rules  # fills the table that the interpreter looks into
from polyax.reference.decomposing import decomposed, without_declined
from polyax.reference.interpreter import called, evaluate, rule_of
from polyax.runtime.contract.backend import CompileOptions
from polyax.runtime.contract.host_arrays import HostArrayBackend, HostArrayExecutable
from polyax.runtime.contract.listing import flatten
from polyax.runtime.contract.queue import HELP_COST
from polyax.runtime.contract.report import BufferReport, KernelReport, Report


class ReferenceBackend(HostArrayBackend):
    """NumPy on virtual devices of the host."""

    name = "reference"

    def __init__(self) -> None:
        super().__init__("NumPy")

    def compile(self, jaxpr: ClosedJaxpr, options: CompileOptions) -> ReferenceExecutable:
        return ReferenceExecutable(without_declined(jaxpr, self) if self.declines_any() else jaxpr, options)


class ReferenceExecutable(HostArrayExecutable):
    """A jaxpr whose primitives all have a rule."""

    def __init__(self, closed: ClosedJaxpr, options: CompileOptions) -> None:
        began = time.perf_counter()
        self._jaxpr = decomposed(closed).jaxpr
        self._name = options.name
        for eqn in walk_eqns(self._jaxpr):
            rule_of(eqn)
        super().__init__(self._evaluate, len(self._jaxpr.outvars), _cost(self._jaxpr), closed.effects)
        self._seconds = time.perf_counter() - began

    def _evaluate(self, arrays: Sequence[np.ndarray]) -> Sequence[Any]:
        try:
            return evaluate(self._jaxpr, arrays)
        except Exception as e:
            blame.about(e, program=self._name)
            raise

    def report(self) -> Report:
        return _report(self._jaxpr, self._seconds)


def _cost(jaxpr: Jaxpr) -> int:
    """About how many bytes are touched; a bound that is passed if programs nest, since loops may run for long."""
    total = 0
    for eqn in walk_eqns(jaxpr):
        total += sum(v.aval.nbytes for v in (*eqn.invars, *eqn.outvars))
        if eqn.primitive.name == "dot_general":
            total += _product_cost(eqn)
        elif eqn.primitive.higher_order and eqn.primitive.name != "jit":
            return HELP_COST + 1
    return total


def _product_cost(eqn: Eqn) -> int:
    contracted: Sequence[int] = eqn.params["dimension_numbers"][0][0]
    shape = eqn.invars[0].aval.shape
    return eqn.outvars[0].aval.size * math.prod(shape[d] for d in contracted)


def _report(jaxpr: Jaxpr, seconds: float) -> Report:
    """Each equation is a library call; nothing is fused."""
    program = flatten(jaxpr, called)
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
    moved = sum(v.aval.nbytes for v in (*eqn.invars, *eqn.outvars))
    avals = tuple([v.aval for v in eqn.outvars])
    name, flops = eqn.primitive.name, sum(a.size for a in avals)
    if name == "dot_general":
        flops = 2 * _product_cost(eqn)
    return KernelReport(name, (name,), moved, flops, kind="call", outputs=avals, equations=(number,))
