"""Linearisation: jvp and partial evaluation in one trace.

Primal values are computed by the trace below; whatever depends on a tangent is recorded as a linear program, whose
constants (the residuals) are the primal values that it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.jaxpr import ClosedJaxpr, Jaxpr, eliminate_dead_code, eval_jaxpr
from polyax.ir.primitive import Primitive
from polyax.trace.context import current_trace, set_trace
from polyax.trace.recording import DynamicJaxprTrace, DynamicJaxprTracer
from polyax.trace.symbolic import Zero
from polyax.trace.tracer import Trace
from polyax.transforms.jvp import PairTrace
from polyax.transforms.memo import memoize_by_jaxpr


class PartialTrace(Trace):
    """Computes what is known in ``known`` and records in ``unknown`` what depends on unknown inputs."""

    __slots__ = ("known", "unknown")

    def __init__(self, known: Trace, unknown: DynamicJaxprTrace) -> None:
        super().__init__()
        self.known = known
        self.unknown = unknown

    def is_unknown(self, x: Any) -> bool:
        return type(x) is DynamicJaxprTracer and x._trace is self.unknown

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> list[Any]:
        unknown = [self.is_unknown(x) for x in args]
        if not (any(unknown) or primitive.only_transposed):
            with set_trace(self.known):
                return self.known.process(primitive, args, params)
        if primitive.partial_eval is not None and not all(unknown):
            return primitive.partial_eval(self, unknown, args, params)
        return self.unknown.process(primitive, args, params)


class LinearizeTrace(PairTrace):
    """Like jvp, with tangents that are variables of a linear program."""

    __slots__ = ("partial", "tangents")

    def __init__(self, parent: Trace, tangents: DynamicJaxprTrace) -> None:
        super().__init__(parent)
        self.tangents = tangents
        self.partial = PartialTrace(parent, tangents)

    def rule_trace(self) -> Trace:
        return self.partial


@dataclass(frozen=True)
class Linearized:
    """The linear program of the nonzero input tangents to the nonzero output tangents, with its residuals."""

    jaxpr: ClosedJaxpr
    nonzero_in: tuple[bool, ...]
    nonzero_out: tuple[bool, ...]
    out_avals: tuple[ShapedArray, ...]

    @property
    def residuals(self) -> list[Any]:
        return self.jaxpr.consts


def linearize_flat(
    fun: Callable[..., Sequence[Any]], primals: Sequence[Any], nonzero: Sequence[bool] | None = None
) -> tuple[list[Any], Linearized]:
    """Runs ``fun`` and gives its outputs with its derivative at ``primals`` as a linear program."""
    parent = current_trace()
    tangents = DynamicJaxprTrace("linearized")
    trace = LinearizeTrace(parent, tangents)
    avals = [aval_of(p) for p in primals]
    nonzero = [True] * len(avals) if nonzero is None else nonzero
    args = [
        trace.join(p, tangents.new_arg(a.to_tangent_aval())) if nz else p
        for p, a, nz in zip(primals, avals, nonzero, strict=True)
    ]
    try:
        with set_trace(trace):
            outs = fun(*args)
        pairs = [trace.split(x) for x in outs]
        linear = tangents.to_jaxpr([t for _, t in pairs if type(t) is not Zero])
    finally:
        trace.invalidate()
        trace.partial.invalidate()
        tangents.invalidate()
    nonzero_out = tuple(type(t) is not Zero for _, t in pairs)
    out_avals = tuple(aval_of(p) for p, _ in pairs)
    return [p for p, _ in pairs], Linearized(prune(linear), tuple(nonzero), nonzero_out, out_avals)


def prune(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Without dead equations and the constants that only they needed."""
    jaxpr, _ = eliminate_dead_code(closed.jaxpr)
    used = {v for e in jaxpr.eqns for v in e.invars} | set(jaxpr.outvars)
    kept = [(v, c) for v, c in zip(jaxpr.constvars, closed.consts, strict=True) if v in used]
    smaller = Jaxpr([v for v, _ in kept], jaxpr.invars, jaxpr.outvars, jaxpr.eqns, None, jaxpr.debug_name)
    return ClosedJaxpr(smaller, [c for _, c in kept])


@dataclass(frozen=True)
class PartialJaxprs:
    """A program cut in two: ``known`` gives the known outputs and the residuals; ``unknown`` takes the residuals and
    the unknown inputs."""

    known: ClosedJaxpr
    unknown: ClosedJaxpr
    out_unknown: tuple[bool, ...]
    num_residuals: int


@memoize_by_jaxpr
def partial_eval_jaxpr(
    jaxpr: ClosedJaxpr, unknown_in: tuple[bool, ...], force: tuple[bool, ...] | None = None
) -> PartialJaxprs:
    """Cuts ``jaxpr``, which has no constants, by running it in a ``PartialTrace`` over two recording traces.

    Outputs for which ``force`` holds are made unknown even if they are known.
    """
    name = jaxpr.jaxpr.debug_name
    known, unknown = DynamicJaxprTrace(name), DynamicJaxprTrace(name)
    trace = PartialTrace(known, unknown)
    args = [(unknown if u else known).new_arg(a) for u, a in zip(unknown_in, jaxpr.in_avals, strict=True)]
    with set_trace(trace):
        outs = eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, args)
    out_unknown = tuple(trace.is_unknown(x) or f for x, f in zip(outs, force or [False] * len(outs), strict=True))
    later = prune(unknown.to_jaxpr([x for x, u in zip(outs, out_unknown, strict=True) if u]))
    residuals = later.consts
    first = known.to_jaxpr([x for x, u in zip(outs, out_unknown, strict=True) if not u] + residuals)
    for t in (trace, known, unknown):
        t.invalidate()
    body = later.jaxpr
    later_jaxpr = Jaxpr([], [*body.constvars, *body.invars], body.outvars, body.eqns, None, name)
    return PartialJaxprs(first, ClosedJaxpr(later_jaxpr, []), out_unknown, len(residuals))
