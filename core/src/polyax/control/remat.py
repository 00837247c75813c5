"""``checkpoint`` (rematerialisation): what the backward pass needs is computed again instead of being kept.

``checkpoint[jaxpr policy prevent_cse differentiated]`` is a call whose residuals are its inputs, and the values that
the policy allows to be saved.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from polyax.control.lists import Mask, kept, merged, nonzeros, partition
from polyax.control.policies import Policy
from polyax.control.programs import derived, hoisted, pruned, run, with_ends, without_inputs
from polyax.ir.aval import ShapedArray
from polyax.ir.effects import Effects
from polyax.ir.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var
from polyax.ir.primitive import Primitive, def_rule
from polyax.trace.context import set_trace
from polyax.trace.flat import check_callable, trace_tree
from polyax.trace.symbolic import Zero, is_undef
from polyax.trace.tree import tree_leaves, tree_unflatten
from polyax.transforms.jvp import jvp_jaxpr
from polyax.transforms.linearize import PartialTrace, partial_eval_jaxpr
from polyax.transforms.memo import memoize_by_jaxpr
from polyax.transforms.transpose import transpose_jaxpr
from polyax.transforms.vmap import Axis, batch_jaxpr

remat_p = Primitive("checkpoint", higher_order=True)


def checkpoint(
    fun: Callable[..., Any],
    *,
    prevent_cse: bool = True,
    policy: Policy | None = None,
    static_argnums: int | Sequence[int] = (),
) -> Callable[..., Any]:
    """``fun``, whose intermediate values are computed again in the backward pass instead of being kept: less memory
    for more work.

    Args:
      fun: a function of pytrees of arrays.
      prevent_cse: kept for compatibility: what is computed again is never shared with the forward pass.
      policy: which values may be saved all the same, see ``checkpoint_policies``; None: none of them.
      static_argnums: arguments that aren't arrays.

    >>> import polyax
    >>> print(polyax.grad(checkpoint(lambda x: polyax.numpy.sin(polyax.numpy.sin(x))))(1.0))
    0.36003947
    """
    check_callable(fun)
    static = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)

    @functools.wraps(fun)
    def rematerialized(*args: Any, **kwargs: Any) -> Any:
        fixed = {n % len(args) for n in static}
        dynamic = [x for n, x in enumerate(args) if n not in fixed]

        def call(arrays: Sequence[Any], named: dict[str, Any]) -> Any:
            given = iter(arrays)
            return fun(*(x if n in fixed else next(given) for n, x in enumerate(args)), **named)

        call.__name__ = getattr(fun, "__name__", "checkpoint")
        closed, out_tree = trace_tree(call, (dynamic, kwargs))
        program, consts = hoisted(closed)
        inputs = [*consts, *tree_leaves((dynamic, kwargs))]
        outs = remat_p.bind(*inputs, jaxpr=program, policy=policy, prevent_cse=prevent_cse, differentiated=False)
        return tree_unflatten(out_tree, outs)

    return rematerialized


def _bind(jaxpr: ClosedJaxpr, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    program, consts = hoisted(jaxpr)
    return remat_p.bind(*consts, *args, **{**params, "jaxpr": program, "differentiated": True})


@def_rule(remat_p, "impl")
def _impl(*args: Any, jaxpr: ClosedJaxpr, **_: Any) -> list[Any]:
    return run(jaxpr, args)


@def_rule(remat_p, "abstract_eval")
def _abstract_eval(*_: ShapedArray, jaxpr: ClosedJaxpr, **__: Any) -> tuple[list[ShapedArray], Effects]:
    return jaxpr.out_avals, jaxpr.effects


@def_rule(remat_p, "jvp")
def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, jaxpr: ClosedJaxpr, **params: Any) -> Any:
    nonzero = nonzeros(tangents)
    both, nonzero_out = jvp_jaxpr(jaxpr, nonzero)
    outs = _bind(both, [*primals, *kept(nonzero, tangents)], params)
    n = len(nonzero_out)
    zeros = [Zero(a.to_tangent_aval()) for a, nz in zip(jaxpr.out_avals, nonzero_out, strict=True) if not nz]
    return outs[:n], merged(nonzero_out, outs[n:], zeros)


@def_rule(remat_p, "partial_eval")
def _partial_eval(trace: PartialTrace, unknown: Sequence[bool], args: Sequence[Any], params: dict[str, Any]) -> Any:
    """What is known is computed; the rest gets the known inputs, and the values that the policy saves."""
    known, later, out_unknown = _split(params["jaxpr"], tuple(unknown), params["policy"])
    unknowns, knowns = partition(unknown, args)
    with set_trace(trace.known):
        outs = run(known, knowns)
    n = out_unknown.count(False)
    results: list[Any] = []
    if any(out_unknown):
        with set_trace(trace.unknown):
            results = _bind(later, [*knowns, *outs[n:], *unknowns], params)
    return merged(out_unknown, results, outs[:n])


@memoize_by_jaxpr
def _split(jaxpr: ClosedJaxpr, unknown: Mask, policy: Policy | None) -> tuple[ClosedJaxpr, ClosedJaxpr, Mask]:
    """The program of known results and saved values, and that of known inputs, saved values and unknown inputs."""
    cut = partial_eval_jaxpr(jaxpr, unknown)
    body = cut.known.jaxpr
    n = len(body.outs) - cut.num_residuals
    results, residuals = body.outs[:n], body.outs[n:]
    saved = _saved(body, policy) if policy is not None else []
    known = pruned(with_ends(cut.known, body.invars, [*results, *saved]), (True,) * (n + len(saved)))[0]
    eqns = [e for e in body.eqns if not all(v in saved for v in e.outs)]
    again = ClosedJaxpr(
        Jaxpr(body.constvars, [*body.invars, *saved], residuals, eqns, None, (), body.debug_name), cut.known.consts
    )
    again = pruned(again, (True,) * len(residuals))[0]

    def later(*args: Any) -> list[Any]:
        given = len(body.invars) + len(saved)
        return run(cut.unknown, [*run(again, args[:given]), *args[given:]])

    avals = [*again.in_avals, *cut.unknown.in_avals[len(residuals) :]]
    return known, derived(jaxpr, later, avals), cut.out_unknown


def _saved(jaxpr: Jaxpr, policy: Policy) -> list[Var]:
    """The values that equations compute which the policy allows to be saved."""
    return [
        v
        for e in jaxpr.eqns
        if len(e.outs) == 1 and policy(e.primitive, *(a.aval for a in e.inputs), **e.params)
        for v in e.outs
    ]


@def_rule(remat_p, "transpose")
def _transpose(cts: Sequence[Any], *args: Any, jaxpr: ClosedJaxpr, **params: Any) -> list[Any]:
    """The backward pass computes the residuals again, and runs the linear part backwards."""
    linear, nonzero = tuple(map(is_undef, args)), nonzeros(cts)
    backward, nonzero_out = _backward(jaxpr, linear, nonzero)
    unknowns, knowns = partition(linear, args)
    outs = _bind(backward, [*knowns, *kept(nonzero, cts)], params)
    zeros = [Zero(x.aval) for x, nz in zip(unknowns, nonzero_out, strict=True) if not nz]
    return merged(linear, merged(nonzero_out, outs, zeros), [None] * len(knowns))


@memoize_by_jaxpr
def _backward(jaxpr: ClosedJaxpr, linear: Mask, nonzero: Mask) -> tuple[ClosedJaxpr, Mask]:
    cut = partial_eval_jaxpr(jaxpr, linear)
    residuals = (False,) * cut.num_residuals
    nonzero = tuple(kept(cut.out_unknown, nonzero))
    body, nonzero_out = transpose_jaxpr(cut.unknown, (*residuals, *[True] * sum(linear)), nonzero)
    n = len(cut.known.out_avals) - cut.num_residuals
    num_known = linear.count(False)

    def fun(*args: Any) -> list[Any]:
        return run(body, [*run(cut.known, args[:num_known])[n:], *args[num_known:]])

    avals = [*cut.known.in_avals, *body.in_avals[cut.num_residuals :]]
    return derived(jaxpr, fun, avals), nonzero_out


@def_rule(remat_p, "batch")
def _batch(axis: Axis, args: Sequence[Any], dims: Sequence[int | None], *, jaxpr: ClosedJaxpr, **params: Any) -> Any:
    mapped, out_dims = batch_jaxpr(jaxpr, axis, tuple(dims))
    program, consts = hoisted(mapped)
    return remat_p.bind(*consts, *args, jaxpr=program, **params), out_dims


@def_rule(remat_p, "dce")
def _dce(used: Sequence[bool], eqn: Eqn) -> Eqn | None:
    if not any(used) and not eqn.effects:
        return None
    program, needed = pruned(eqn.params["jaxpr"], tuple(used))
    params = {**eqn.params, "jaxpr": without_inputs(program, needed)}
    return eqn.replace(inputs=kept(needed, eqn.inputs), outs=kept(used, eqn.outs), params=params)


@def_rule(remat_p, "sub_jaxprs")
def _sub_jaxprs(*, jaxpr: ClosedJaxpr, **_: Any) -> list[ClosedJaxpr]:
    return [jaxpr]
