"""``while[cond_jaxpr cond_nconsts body_jaxpr body_nconsts] *cond_consts *body_consts *carry``. All its rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polyax.control.inner.lists import Mask, cut, fixpoint, kept, merged, nonzeros, with_zeros
from polyax.control.inner.programs import derived, hoisted, pruned, reordered, run, with_unused_inputs, without_inputs
from polyax.control.inner.typechecks import expect_count, expect_program, expect_types
from polyax.ir.aval import ShapedArray
from polyax.ir.effects import Effects, io_effect
from polyax.ir.jaxpr import ClosedJaxpr, Eqn
from polyax.ir.primitive import Primitive, def_rule
from polyax.ops.basis import broadcast_in_dim, select_n
from polyax.ops.reduce import reduce_or
from polyax.ops.zeros import instantiate
from polyax.trace.context import set_trace
from polyax.trace.recording import trace_to_jaxpr
from polyax.transforms.jvp import jvp_jaxpr
from polyax.transforms.linearize import PartialTrace, partial_eval_jaxpr
from polyax.transforms.memo import memoize_by_jaxpr
from polyax.transforms.vmap import AxisData, batch_jaxpr, match_axis

while_p = Primitive("while", higher_order=True)
"""Replaces the carry by ``body(body_consts, carry)`` for as long as ``cond(cond_consts, carry)``, a bool, holds."""


@def_rule(while_p, "abstract_eval")
def _abstract_eval(
    *_: ShapedArray, cond_jaxpr: ClosedJaxpr, body_jaxpr: ClosedJaxpr, **__: int
) -> tuple[list[ShapedArray], Effects]:
    return body_jaxpr.out_avals, cond_jaxpr.effects | body_jaxpr.effects


@def_rule(while_p, "typecheck")
def _typecheck(*avals: ShapedArray, cond_jaxpr: Any, cond_nconsts: Any, body_jaxpr: Any, body_nconsts: Any) -> None:
    expect_count("while", "cond_nconsts", cond_nconsts)
    expect_count("while", "body_nconsts", body_nconsts)
    expect_program("while", "cond_jaxpr", cond_jaxpr)
    expect_program("while", "body_jaxpr", body_jaxpr)
    cond_consts, body_consts, init = cut(avals, cond_nconsts, body_nconsts)
    expect_types(cond_jaxpr.in_avals, [*cond_consts, *init], "while cond_jaxpr takes types", "called with")
    expect_types(body_jaxpr.in_avals, [*body_consts, *init], "while body_jaxpr takes types", "called with")
    expect_types(init, body_jaxpr.out_avals, "while carry input and output types mismatch:", "vs")


_ANY_OF = "any of "
"""What the names of conditions begin with that hold as long as one example's does."""


class WhileParts:
    """The parameters of a loop, and lists of its arguments taken apart."""

    def __init__(self, params: dict[str, Any]) -> None:
        self.cond: ClosedJaxpr = params["cond_jaxpr"]
        self.body: ClosedJaxpr = params["body_jaxpr"]
        self.sizes: tuple[int, int] = params["cond_nconsts"], params["body_nconsts"]

    @property
    def mapped(self) -> bool:
        """Whether it runs as long as any of several examples needs."""
        return self.cond.jaxpr.debug_name.startswith(_ANY_OF)

    def cut(self, xs: Sequence[Any]) -> list[list[Any]]:
        """Of the condition, of the body, carried."""
        return cut(xs, *self.sizes)


def bind_while(cond: ClosedJaxpr, body: ClosedJaxpr, cond_consts: Any, body_consts: Any, carry: Any) -> list[Any]:
    (cond, of_cond), (body, of_body) = hoisted(cond), hoisted(body)
    cond_consts, body_consts = [*of_cond, *cond_consts], [*of_body, *body_consts]
    return while_p.bind(
        *cond_consts,
        *body_consts,
        *carry,
        cond_jaxpr=cond,
        cond_nconsts=len(cond_consts),
        body_jaxpr=body,
        body_nconsts=len(body_consts),
    )


@def_rule(while_p, "jvp")
def _jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
    """Tangents are carried along; the condition doesn't look at them."""
    loop = WhileParts(params)
    cond_consts, body_consts, init = loop.cut(primals)
    _, const_dots, init_dots = loop.cut(tangents)
    fixed = nonzeros(const_dots)
    carried = fixpoint(lambda c: jvp_jaxpr(loop.body, fixed + c, c)[1], nonzeros(init_dots))
    avals = [v.to_tangent_aval() for v in loop.body.out_avals]
    dots = list(map(instantiate, kept(carried, init_dots)))
    body = _jvp_body(loop.body, fixed, carried)
    cond = with_unused_inputs(loop.cond, tuple(kept(carried, avals)))
    outs = bind_while(cond, body, cond_consts, [*body_consts, *kept(fixed, const_dots)], [*init, *dots])
    return outs[: len(init)], with_zeros(carried, outs[len(init) :], avals)


@memoize_by_jaxpr
def _jvp_body(body: ClosedJaxpr, fixed: Mask, carried: Mask) -> ClosedJaxpr:
    """Constants and their tangents come first, then the carry and its tangents."""
    both = jvp_jaxpr(body, fixed + carried, carried)[0]
    consts, carry = len(fixed), len(carried)
    order = list(range(len(both.in_avals)))
    primal_consts, init, const_dots, dots = cut(order, consts, carry, sum(fixed))
    return reordered(both, (*primal_consts, *const_dots, *init, *dots))


@def_rule(while_p, "partial_eval")
def _partial_eval(trace: PartialTrace, unknown: Sequence[bool], args: Sequence[Any], params: dict[str, Any]) -> Any:
    """The known part of the carry is computed by a loop of its own; the rest by a loop that computes all again, since
    the number of iterations, and so of residuals, isn't known before."""
    loop = WhileParts(params)
    of_cond, of_body, of_carry = loop.cut(tuple(unknown))

    def grow(carry: Mask) -> Mask:
        return partial_eval_jaxpr(loop.body, (*of_body, *carry), carry).out_unknown

    carried = fixpoint(grow, of_carry)
    if any(of_cond) or any(partial_eval_jaxpr(loop.cond, (*of_cond, *carried)).out_unknown) or all(carried):
        return trace.unknown.process(while_p, tuple(args), params)
    cond_consts, body_consts, init = loop.cut(args)
    known = tuple(not c for c in carried)
    parts = partial_eval_jaxpr(loop.body, (*of_body, *carried), carried)
    body, needed = pruned(parts.known, (*[True] * sum(known), *[False] * parts.num_residuals))
    known_consts = kept([not u for u in of_body], body_consts)
    consts, _ = cut(needed, len(known_consts))
    body = without_inputs(body, (*consts, *[True] * sum(known)))
    cond = without_inputs(loop.cond, (*[True] * len(cond_consts), *known))
    with set_trace(trace.known):
        first = bind_while(cond, body, cond_consts, kept(consts, known_consts), kept(known, init))
    later = trace.unknown.process(while_p, tuple(args), params)
    return merged(carried, kept(carried, later), first)


@def_rule(while_p, "transpose")
def _transpose(cts: Sequence[Any], *args: Any, **params: Any) -> list[Any]:
    raise ValueError(
        "Reverse-mode differentiation does not work for lax.while_loop or lax.fori_loop with dynamic start/stop "
        "values. Try using lax.scan, or using fori_loop with static start/stop."
    )


@def_rule(while_p, "batch")
def _batch(axis: AxisData, args: Sequence[Any], dims: Sequence[int | None], **params: Any) -> Any:
    """Carries are mapped at dimension 0. With a mapped condition the loop runs as long as it holds for any example;
    those for which it doesn't keep their values."""
    loop = WhileParts(params)
    cond_dims, body_dims, carry_dims = loop.cut(dims)

    def at(carry: Mask) -> tuple[int | None, ...]:
        return tuple(0 if c else None for c in carry)

    def of_cond(carry: Mask) -> bool:
        return batch_jaxpr(loop.cond, axis, (*cond_dims, *at(carry)))[1][0] is not None

    def grow(carry: Mask) -> Mask:
        if of_cond(carry):
            return (True,) * len(carry)
        out_dims = batch_jaxpr(loop.body, axis, (*body_dims, *at(carry)), carry)[1]
        return tuple(d is not None for d in out_dims)

    carried = fixpoint(grow, tuple(d is not None for d in carry_dims))
    cond_consts, body_consts, init = loop.cut(args)
    init = [match_axis(axis, d, 0, x) if c else x for c, d, x in zip(carried, carry_dims, init, strict=True)]
    inner_dims = (*body_dims, *at(carried))
    body = batch_jaxpr(loop.body, axis, inner_dims, carried)[0]
    cond, (pred_dim,) = batch_jaxpr(loop.cond, axis, (*cond_dims, *at(carried)))
    if pred_dim is not None:
        if io_effect in (*loop.cond.effects, *loop.body.effects):
            raise NotImplementedError(
                "Unordered IO effects not supported in while_loop with batched predicate: its body also runs for "
                "examples that are done."
            )
        cond, body = _any(cond), _where(cond, body, len(cond_consts), len(body_consts), axis.size)
        body_consts = [*cond_consts, *body_consts]
    return bind_while(cond, body, cond_consts, body_consts, init), list(at(carried))


@memoize_by_jaxpr
def _any(cond: ClosedJaxpr) -> ClosedJaxpr:
    name = cond.jaxpr.debug_name.removeprefix(_ANY_OF)
    return trace_to_jaxpr(lambda *args: [reduce_or(run(cond, args)[0], (0,))], cond.in_avals, name=_ANY_OF + name)


@memoize_by_jaxpr
def _where(cond: ClosedJaxpr, body: ClosedJaxpr, cond_consts: int, body_consts: int, size: int) -> ClosedJaxpr:
    """The body that changes the carries, mapped at dimension 0, only where the condition holds."""

    def fun(*args: Any) -> list[Any]:
        of_cond, of_body, carry = cut(args, cond_consts, body_consts)
        (pred,) = run(cond, [*of_cond, *carry])
        outs = run(body, [*of_body, *carry])
        return [select_n(broadcast_in_dim(pred, x.shape, (0,)), old, x) for old, x in zip(carry, outs, strict=True)]

    return derived(body, fun, [*cond.in_avals[:cond_consts], *body.in_avals])


@def_rule(while_p, "dce")
def _dce(used: Sequence[bool], eqn: Eqn) -> Eqn | None:
    """A carry stays if it is used, or read by the condition, or by what stays."""
    if not any(used) and not eqn.effects:
        return None
    loop = WhileParts(eqn.params)
    cond_consts, body_consts, init = loop.cut(eqn.invars)
    read_by_cond = pruned(loop.cond, (True,))[1][len(cond_consts) :]

    def grow(carry: Mask) -> Mask:
        return pruned(loop.body, carry)[1][len(body_consts) :]

    live = fixpoint(grow, [u or r for u, r in zip(used, read_by_cond, strict=True)])
    body, needed = pruned(loop.body, live)
    consts = needed[: len(body_consts)]
    body = without_inputs(body, (*consts, *live))
    cond = without_inputs(loop.cond, (*[True] * len(cond_consts), *live))
    params = {**eqn.params, "cond_jaxpr": cond, "body_jaxpr": body, "body_nconsts": sum(consts)}
    inputs = [*cond_consts, *kept(consts, body_consts), *kept(live, init)]
    return eqn.replace(invars=inputs, outvars=kept(live, eqn.outvars), params=params)


@def_rule(while_p, "sub_jaxprs")
def _sub_jaxprs(*, cond_jaxpr: ClosedJaxpr, body_jaxpr: ClosedJaxpr, **_: int) -> list[ClosedJaxpr]:
    return [cond_jaxpr, body_jaxpr]
