"""``polyax.interpreters.partial_eval``: programs traced and cut, as in JAX as far as that exists here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polyax import late
from polyax.interpreters.partial_values import PartialVal as PartialVal
from polyax.interpreters.partial_values import trace_to_jaxpr_dynamic as trace_to_jaxpr_dynamic
from polyax.interpreters.partial_values import trace_to_jaxpr_nounits as trace_to_jaxpr_nounits
from polyax.interpreters.tables import RuleTable
from polyax.ir.jaxpr import Eqn, Jaxpr, eliminate_dead_code
from polyax.trace.recording import DynamicJaxprTracer as DynamicJaxprTracer
from polyax.trace.recording import DynamicJaxprTracer as JaxprTracer  # noqa: F401
from polyax.trace.recording import trace_to_jaxpr as trace_to_jaxpr
from polyax.transforms.linearize import partial_eval_jaxpr as partial_eval_jaxpr

Val = Any

dce_rules = RuleTable("dce", lambda _, rule: rule, lambda _, rule: rule)
"""``(used outputs, eqn) -> eqn | None``: smaller equations, for primitives with several results."""
custom_partial_eval_rules = RuleTable("partial_eval", lambda _, rule: rule, lambda _, rule: rule)
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


def dce_jaxpr_consts(
    jaxpr: Jaxpr, used_outputs: Sequence[bool], instantiate: bool = False
) -> tuple[Jaxpr, list[bool], list[bool]]:
    """``dce_jaxpr`` that drops constants as well: the smaller program, which constants it uses, and which inputs."""
    smaller, used = dce_jaxpr(jaxpr, used_outputs, instantiate)
    read = {v for e in smaller.eqns for v in e.invars} | set(smaller.outvars)
    kept = [v in read for v in jaxpr.constvars]
    return smaller.replace(constvars=[v for v, k in zip(jaxpr.constvars, kept, strict=True) if k]), kept, used


def dce_jaxpr_call_rule(used_outputs: Sequence[bool], eqn: Eqn) -> tuple[list[bool], Eqn | None]:
    """A call of a program, without what its used outputs don't need: which inputs it still takes, and what is left."""
    smaller = eqn.primitive.rule("dce")(list(used_outputs), eqn)
    left = set() if smaller is None else {id(v) for v in smaller.invars}
    return [id(v) in left for v in eqn.invars], smaller


dce_jaxpr_closed_call_rule = dce_jaxpr_call_rule


def __getattr__(name: str) -> Any:
    return late.load(__name__, {}, name)
