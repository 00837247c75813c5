"""Tracing functions some of whose arguments are known: what these decide is computed, the rest is recorded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polyax.extend.linear_util import WrappedFun
from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.jaxpr import Jaxpr
from polyax.trace.context import current_trace, set_trace
from polyax.trace.recording import DynamicJaxprTrace, trace_to_jaxpr
from polyax.transforms.linearize import PartialTrace, prune

__all__ = ["PartialVal", "trace_to_jaxpr_dynamic", "trace_to_jaxpr_nounits"]


class PartialVal(tuple[Any, Any]):
    """A value, or the type of one: ``PartialVal.known(x)`` is ``(None, x)``, ``PartialVal.unknown(aval)`` is
    ``(aval, None)``."""

    @classmethod
    def known(cls, const: Any) -> PartialVal:
        return cls((None, const))

    @classmethod
    def unknown(cls, aval: ShapedArray) -> PartialVal:
        return cls((aval, None))

    def is_known(self) -> bool:
        return self[0] is None

    def get_known(self) -> Any:
        """The value, or None."""
        return self[1] if self.is_known() else None

    def get_aval(self) -> ShapedArray:
        return aval_of(self[1]) if self.is_known() else self[0]


def trace_to_jaxpr_nounits(
    fun: WrappedFun, pvals: Sequence[PartialVal], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[PartialVal], list[Any]]:
    """The program of what depends on unknown arguments; what doesn't is computed now.

    Args:
      fun: a function with a list of results.
      instantiate: results that are to be of the program even if they are known.

    Returns:
      The program from unknown arguments to unknown results, what is known of all results, and its constants.

    >>> from polyax.core import ShapedArray
    >>> from polyax.extend.linear_util import wrap_init
    >>> f = wrap_init(lambda x, y: [x + 1.0, x * y])
    >>> given = [PartialVal.known(2.0), PartialVal.unknown(ShapedArray((), "float32"))]
    >>> jaxpr, results, _ = trace_to_jaxpr_nounits(f, given)
    >>> results[0].is_known(), results[1].is_known(), len(jaxpr.eqns)
    (True, False, 1)
    """
    unknown = DynamicJaxprTrace(fun.__name__)
    trace = PartialTrace(current_trace(), unknown)
    args = [p.get_known() if p.is_known() else unknown.new_arg(p.get_aval()) for p in pvals]
    try:
        with set_trace(trace):
            outs = list(fun.call_wrapped(*args))
        forced = [instantiate] * len(outs) if isinstance(instantiate, bool) else instantiate
        later = [trace.is_unknown(x) or f for x, f in zip(outs, forced, strict=True)]
        closed = prune(unknown.to_jaxpr([x for x, u in zip(outs, later, strict=True) if u]))
    finally:
        trace.invalidate()
        unknown.invalidate()
    results = [PartialVal.unknown(aval_of(x)) if u else PartialVal.known(x) for x, u in zip(outs, later, strict=True)]
    return closed.jaxpr, results, closed.consts


def trace_to_jaxpr_dynamic(
    fun: WrappedFun,
    in_avals: Sequence[ShapedArray],
    *,
    keep_inputs: Sequence[bool] | None = None,
    lower: bool = False,
    auto_dce: bool = False,
) -> tuple[Jaxpr, list[ShapedArray], list[Any]]:
    """The program of a function with a list of results, the types of these, and the program's constants.

    Args:
      keep_inputs: which arguments the program takes; the others mustn't be used.
      lower: kept for compatibility.
      auto_dce: leave out what nothing uses.

    Raises:
      ValueError: an argument that is left out is used.
    """
    closed = trace_to_jaxpr(fun.call_wrapped, in_avals, name=fun.__name__)
    if auto_dce:
        closed = prune(closed)
    jaxpr = closed.jaxpr
    if keep_inputs is not None:
        read = {v for e in jaxpr.eqns for v in e.invars} | set(jaxpr.outvars)
        for n, (v, keep) in enumerate(zip(jaxpr.invars, keep_inputs, strict=True)):
            if not keep and v in read:
                raise ValueError(f"trace_to_jaxpr_dynamic: {fun.__name__} uses its argument {n}, which isn't kept")
        jaxpr = jaxpr.replace(invars=[v for v, keep in zip(jaxpr.invars, keep_inputs, strict=True) if keep])
    return jaxpr, jaxpr.out_avals, closed.consts
