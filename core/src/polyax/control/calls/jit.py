"""``pjit``: a call of a program that is compiled as one. All its rules map the inner program and call the result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polyax.ir.effects import Effects
from polyax.ir.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var, eliminate_dead_code
from polyax.ir.primitive import Primitive, def_rule
from polyax.trace.context import set_trace
from polyax.trace.recording import hoist_consts
from polyax.trace.symbolic import Zero, is_undef
from polyax.transforms.jvp import jvp_jaxpr
from polyax.transforms.linearize import PartialTrace, partial_eval_jaxpr
from polyax.transforms.memo import memoize_by_jaxpr
from polyax.transforms.transpose import transpose_jaxpr
from polyax.transforms.vmap import AxisData, batch_jaxpr

pjit_p = Primitive("pjit", higher_order=True)
"""``pjit[name jaxpr donated inline keep_unused device]``; the constants of the program come first in its arguments."""


def call(closed: ClosedJaxpr, args: Sequence[Any], **params: Any) -> list[Any]:
    """Binds ``pjit`` with the program's constants hoisted into its arguments."""
    jaxpr, consts = _hoisted(closed)
    donated = params.get("donated") or ()
    params["donated"] = (False,) * len(consts) + tuple(donated) if any(donated) else ()
    return pjit_p.bind(*consts, *args, jaxpr=jaxpr, **params)


@memoize_by_jaxpr
def _hoisted(closed: ClosedJaxpr) -> tuple[ClosedJaxpr, list[Any]]:
    return hoist_consts(closed)


def _inner(params: dict[str, Any]) -> dict[str, Any]:
    """The parameters that derived programs keep; donated buffers are needed by derivatives, so they are kept."""
    return {k: v for k, v in params.items() if k not in ("jaxpr", "donated")} | {"donated": ()}


@def_rule(pjit_p, "abstract_eval")
def _abstract_eval(*_: Any, jaxpr: ClosedJaxpr, **__: Any) -> tuple[list[Any], Effects]:
    return jaxpr.out_avals, jaxpr.effects


@def_rule(pjit_p, "jvp")
def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, jaxpr: ClosedJaxpr, **params: Any) -> Any:
    nonzero = tuple(type(t) is not Zero for t in tangents)
    both, nonzero_out = jvp_jaxpr(jaxpr, nonzero)
    outs = call(both, [*primals, *(t for t in tangents if type(t) is not Zero)], **_inner(params))
    n = len(jaxpr.jaxpr.outvars)
    given = iter(outs[n:])
    return outs[:n], [
        next(given) if nz else Zero(a.to_tangent_aval()) for nz, a in zip(nonzero_out, jaxpr.out_avals, strict=True)
    ]


@def_rule(pjit_p, "partial_eval")
def _partial_eval(trace: PartialTrace, unknown: Sequence[bool], args: Sequence[Any], params: dict[str, Any]) -> Any:
    cut = partial_eval_jaxpr(params["jaxpr"], tuple(unknown))
    rest = _inner(params)
    with set_trace(trace.known):
        first = call(cut.known, [x for x, u in zip(args, unknown, strict=True) if not u], **rest)
    num_known = len(first) - cut.num_residuals
    residuals = first[num_known:]
    later: list[Any] = []
    if any(cut.out_unknown):
        inputs = [*residuals, *(x for x, u in zip(args, unknown, strict=True) if u)]
        with set_trace(trace.unknown):
            later = call(cut.unknown, inputs, **rest)
    known, computed = iter(first[:num_known]), iter(later)
    return [next(computed) if u else next(known) for u in cut.out_unknown]


@def_rule(pjit_p, "transpose")
def _transpose(cts: Sequence[Any], *args: Any, jaxpr: ClosedJaxpr, **params: Any) -> list[Any]:
    linear = tuple(map(is_undef, args))
    nonzero = tuple(type(ct) is not Zero for ct in cts)
    backward, nonzero_out = transpose_jaxpr(jaxpr, linear, nonzero)
    given = [x for x, lin in zip(args, linear, strict=True) if not lin]
    outs = iter(call(backward, [*given, *(ct for ct in cts if type(ct) is not Zero)], **_inner(params)))
    wanted = iter(nonzero_out)
    return [
        (next(outs) if next(wanted) else Zero(x.aval)) if lin else None for x, lin in zip(args, linear, strict=True)
    ]


@def_rule(pjit_p, "batch")
def _batch(
    axis: AxisData, args: Sequence[Any], dims: Sequence[int | None], *, jaxpr: ClosedJaxpr, **params: Any
) -> Any:
    mapped, out_dims = batch_jaxpr(jaxpr, axis, tuple(dims))
    return call(mapped, args, **_inner(params)), out_dims


@def_rule(pjit_p, "dce")
def _dce(used: Sequence[bool], eqn: Eqn) -> Eqn | None:
    if not any(used) and not eqn.effects:
        return None
    jaxpr, used_in = _pruned(eqn.params["jaxpr"], tuple(used))
    inputs = [x for x, u in zip(eqn.invars, used_in, strict=True) if u]
    outs = [v for v, u in zip(eqn.outvars, used, strict=True) if u]
    donated = eqn.params["donated"]
    donated = tuple(d for d, u in zip(donated, used_in, strict=True) if u) if donated else ()
    return eqn.replace(invars=inputs, outvars=outs, params={**eqn.params, "jaxpr": jaxpr, "donated": donated})


@memoize_by_jaxpr
def _pruned(closed: ClosedJaxpr, used: tuple[bool, ...]) -> tuple[ClosedJaxpr, list[bool]]:
    jaxpr, used_in = eliminate_dead_code(closed.jaxpr, used)
    invars: list[Var] = [v for v, u in zip(jaxpr.invars, used_in, strict=True) if u]
    return ClosedJaxpr(Jaxpr([], invars, jaxpr.outvars, jaxpr.eqns, None, jaxpr.debug_name), []), used_in


@def_rule(pjit_p, "sub_jaxprs")
def _sub_jaxprs(*, jaxpr: ClosedJaxpr, **_: Any) -> list[ClosedJaxpr]:
    return [jaxpr]


@def_rule(pjit_p, "pretty")
def _pretty(*, name: str, jaxpr: ClosedJaxpr, **_: Any) -> dict[str, Any]:
    return {"name": name, "jaxpr": jaxpr}
