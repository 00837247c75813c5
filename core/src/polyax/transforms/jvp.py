"""Forward mode: every value travels with its tangent."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from polyax.ir.aval import aval_of
from polyax.ir.jaxpr import ClosedJaxpr, eval_jaxpr
from polyax.ir.primitive import Primitive, ambient
from polyax.ir.refs import holds_refs, met
from polyax.ops.zeros import instantiate
from polyax.trace.context import current_trace, set_trace
from polyax.trace.recording import trace_to_jaxpr
from polyax.trace.symbolic import Zero
from polyax.trace.tracer import Trace, Tracer, check_alive
from polyax.trace.varying import aligned
from polyax.transforms.memo import memoize_by_jaxpr


class JVPTracer(Tracer):
    """A primal value and its tangent, which is not zero."""

    __slots__ = ("primal", "tangent")

    def __init__(self, trace: Trace, primal: Any, tangent: Any, aval: Any) -> None:
        self._trace = trace
        self.aval = aval
        self.primal = primal
        self.tangent = tangent

    def origin(self) -> str:
        return self.primal.origin() if isinstance(self.primal, Tracer) else ""

    def known(self) -> Any:
        return self.primal.known() if isinstance(self.primal, Tracer) else self.primal

    def __bool__(self) -> bool:
        return bool(self.primal)

    def __index__(self) -> int:
        return operator.index(self.primal)


class PairTrace(Trace):
    """What jvp and linearize share: arguments are split into primals and tangents, rules run one level down."""

    __slots__ = ("parent",)

    def __init__(self, parent: Trace) -> None:
        super().__init__()
        self.parent = parent

    @property
    def main(self) -> PairTrace:
        """What is equal for the traces of one transformation, for interpreters that compare them."""
        return self

    tag = main

    def rule_trace(self) -> Trace:
        """The trace that jvp rules run in."""
        return self.parent

    def split(self, x: Any) -> tuple[Any, Any]:
        if isinstance(x, JVPTracer) and x._trace is self:
            return x.primal, x.tangent
        if isinstance(x, Tracer):
            check_alive(x)
        return x, Zero.of(x)

    def join(self, primal: Any, tangent: Any) -> Any:
        """Values with a zero tangent need no tracer."""
        if type(tangent) is Zero:
            return primal
        return JVPTracer(self, primal, tangent, aval_of(primal))

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> list[Any]:
        if ambient.varying:  # tangents have to vary as their primals do
            args = aligned(self.process, primitive, args, params)
        pairs = [self.split(x) for x in args]
        primals = [p for p, _ in pairs]
        tangents = [t for _, t in pairs]
        if met.any and holds_refs(primitive, params):
            with set_trace(self):
                return primitive.rule("discharge")(*args, **params)
        if all(type(t) is Zero for t in tangents) and not primitive.makes_refs:
            with set_trace(self.parent):
                return self.parent.process(primitive, tuple(primals), params)
        with set_trace(self.rule_trace()):
            outs, out_tangents = primitive.rule("jvp")(primals, tangents, **params)
        return [self.join(p, t) for p, t in zip(outs, out_tangents, strict=True)]


class JVPTrace(PairTrace):
    __slots__ = ()


def jvp_flat(
    fun: Callable[..., Sequence[Any]], primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """Outputs of ``fun`` and their tangents; both lists may hold ``Zero`` among the tangents."""
    trace = JVPTrace(current_trace())
    args = [trace.join(p, t) for p, t in zip(primals, tangents, strict=True)]
    try:
        with set_trace(trace):
            outs = fun(*args)
        pairs = [trace.split(x) for x in outs]
    finally:
        trace.invalidate()
    return [p for p, _ in pairs], [t for _, t in pairs]


@memoize_by_jaxpr
def jvp_jaxpr(
    jaxpr: ClosedJaxpr, nonzero: tuple[bool, ...], force: tuple[bool, ...] | None = None
) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    """The program of primals and nonzero tangents, and which output tangents are nonzero.

    Inputs: all primals, then the tangents for which ``nonzero`` holds; outputs likewise. Output tangents for which
    ``force`` holds are computed even if they are zero: branches must agree, and loops need carries that keep theirs.
    """
    avals = jaxpr.in_avals
    nonzero_out: list[bool] = []

    def fun(*args: Any) -> list[Any]:
        primals, given = args[: len(avals)], iter(args[len(avals) :])
        tangents = [next(given) if nz else Zero(a.to_tangent_aval()) for nz, a in zip(nonzero, avals, strict=True)]
        outs, out_tangents = jvp_flat(lambda *xs: eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, xs), primals, tangents)
        if force is not None:
            out_tangents = [instantiate(t) if f else t for t, f in zip(out_tangents, force, strict=True)]
        nonzero_out.extend(type(t) is not Zero for t in out_tangents)
        return outs + [t for t in out_tangents if type(t) is not Zero]

    tangent_avals = [a.to_tangent_aval() for a, nz in zip(avals, nonzero, strict=True) if nz]
    out = trace_to_jaxpr(fun, [*avals, *tangent_avals], name=jaxpr.jaxpr.debug_name)
    return out, tuple(nonzero_out)
