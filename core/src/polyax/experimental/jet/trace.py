"""The transformation: values travel with the series of their derivatives along a curve."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from polyax.control.inner.programs import run
from polyax.experimental.jet.terms import (
    Rule,
    Series,
    by_nested_jvp,
    zero_series,
    zero_term,
    zeros_like,
)
from polyax.ir import dtypes
from polyax.ir.aval import aval_of
from polyax.ir.primitive import Primitive
from polyax.trace.context import current_trace, set_trace
from polyax.trace.tracer import Trace, Tracer, check_alive

jet_rules: dict[Primitive, Rule] = {}
"""The rules of primitives; see ``rules``."""
PROGRAMS = {"jit": "jaxpr", "remat2": "jaxpr", "closed_call": "call_jaxpr", "call": "call_jaxpr"}
"""Primitives that call a program, which is run in place."""
CUSTOM = frozenset({"custom_jvp_call", "custom_vjp_call", "custom_vmap_call"})
"""Functions with rules of their own, which know nothing of higher orders: they are run in place as well."""


class JetTracer(Tracer):
    """A value and the series of its derivatives, which aren't all zero."""

    __slots__ = ("primal", "terms")

    def __init__(self, trace: JetTrace, primal: Any, terms: Series) -> None:
        self._trace = trace
        self.aval = aval_of(primal)
        self.primal = primal
        self.terms = terms


class JetTrace(Trace):
    """Applies rules for series, one level down."""

    __slots__ = ("order", "parent", "tag")

    def __init__(self, tag: Any, parent_trace: Trace, order: int) -> None:
        super().__init__("jet")
        self.tag = tag
        self.parent = parent_trace
        self.order = order

    def split(self, x: Any) -> tuple[Any, Any]:
        if isinstance(x, JetTracer) and x._trace is self:
            return x.primal, x.terms
        if isinstance(x, Tracer):
            check_alive(x)
        return x, zero_series

    def join(self, primal: Any, terms: Any) -> Any:
        varies = terms is not zero_series and dtypes.is_inexact(aval_of(primal).dtype)
        return JetTracer(self, primal, terms) if varies else primal

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> list[Any]:
        primals, series = zip(*map(self.split, args), strict=True) if args else ((), ())
        if all(s is zero_series for s in series):
            with set_trace(self.parent):
                return self.parent.process(primitive, tuple(primals), params)
        if primitive.name in PROGRAMS:
            with set_trace(self):
                return run(params[PROGRAMS[primitive.name]], args)
        if primitive.name in CUSTOM and primitive.impl is not None:
            with set_trace(self):
                return primitive.impl(*args, **params)
        with set_trace(self.parent):
            filled = [self._filled(p, s) for p, s in zip(primals, series, strict=True)]
            outs, higher = self._applied(primitive, primals, filled, params)
        return [self.join(p, s) for p, s in zip(outs, higher, strict=True)]

    def _filled(self, primal: Any, series: Any) -> Series:
        if series is zero_series:
            return [zeros_like(primal) for _ in range(self.order)]
        return [zeros_like(primal) if t is zero_term else t for t in series]

    def _applied(self, primitive: Primitive, primals: Sequence[Any], series: list[Series], params: Any) -> Any:
        """Results and their series, as lists."""
        rule = jet_rules.get(primitive)
        if rule is None or not all(dtypes.is_inexact(aval_of(p).dtype) for p in primals):
            return by_nested_jvp(lambda *xs: primitive.bind_all(*xs, **params), primals, series)
        outs, higher = rule(primals, series, **params)
        return (outs, higher) if isinstance(outs, list) else ([outs], [higher])


def jet_flat(
    fun: Callable[..., Sequence[Any]], primals: Sequence[Any], series: Sequence[Any]
) -> tuple[list[Any], list[Series]]:
    """Results of ``fun`` and their series, of derivatives."""
    order = next((len(s) for s in series if s is not zero_series), 0)
    trace = JetTrace(object(), current_trace(), order)
    args = [trace.join(p, s) for p, s in zip(primals, series, strict=True)]
    try:
        with set_trace(trace):
            outs = list(fun(*args))
    finally:
        trace.invalidate()
    pairs = [trace.split(x) for x in outs]
    return [p for p, _ in pairs], [trace._filled(p, s) for p, s in pairs]
