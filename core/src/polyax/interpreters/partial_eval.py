"""``polyax.interpreters.partial_eval``: programs traced and cut, as in JAX as far as that exists here."""

from __future__ import annotations

from collections.abc import Sequence

from polyax.interpreters.tables import RuleTable
from polyax.ir.jaxpr import Jaxpr, eliminate_dead_code
from polyax.trace.recording import DynamicJaxprTracer as DynamicJaxprTracer
from polyax.trace.recording import trace_to_jaxpr as trace_to_jaxpr
from polyax.transforms.linearize import partial_eval_jaxpr as partial_eval_jaxpr

dce_rules = RuleTable("dce", lambda _, rule: rule)
"""``(used outputs, eqn) -> eqn | None``: smaller equations, for primitives with several results."""
custom_partial_eval_rules = RuleTable("partial_eval", lambda _, rule: rule)
"""``(trace, unknown, args, params) -> outs``."""


def dce_jaxpr(jaxpr: Jaxpr, used_outputs: Sequence[bool], instantiate: bool = False) -> tuple[Jaxpr, list[bool]]:
    """``jaxpr`` without what its used outputs don't need, and which of its inputs are used; the others are dropped,
    unless ``instantiate``.

    >>> import polyax
    >>> closed = polyax.make_jaxpr(lambda x, y: (x + 1.0, y * 2.0))(1.0, 1.0)
    >>> dce_jaxpr(closed.jaxpr, [True, False])[1]
    [True, False]
    """
    smaller, used = eliminate_dead_code(jaxpr, used_outputs)
    if instantiate:
        return smaller, [True] * len(used)
    return smaller.replace(invars=[v for v, u in zip(smaller.invars, used, strict=True) if u]), used
