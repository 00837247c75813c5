"""How checks go into the programs that equations hold: calls, branches, loops, regions of devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polyax.control.calls.closed import call_p, closed_call_p
from polyax.control.calls.jit import pjit_p
from polyax.control.calls.remat import remat_p
from polyax.control.flow.cond import bind_cond, cond_p
from polyax.control.flow.scan import ScanParts, scan_p
from polyax.control.flow.while_loop import WhileParts, bind_while, while_p
from polyax.control.inner.lists import cut
from polyax.control.inner.programs import derived, hoisted, reordered, run
from polyax.control.spmd import manual, region, shard_map_call, shard_map_p
from polyax.experimental.checkify.checking import check_p
from polyax.experimental.checkify.error import Codes, Error, init_error
from polyax.experimental.checkify.failures import Errors
from polyax.experimental.checkify.interpreter import checked, rule_of, run_checked
from polyax.ir.aval import aval_of
from polyax.ir.jaxpr import ClosedJaxpr, Eqn
from polyax.ops.basis import expand_dims
from polyax.trace.tree import tree_leaves, tree_unflatten
from polyax.transforms.memo import memoize_by_jaxpr

Outcome = tuple[Error, Sequence[Any]]


@rule_of(check_p)
def _check(error: Error, enabled: Errors, eqn: Eqn, args: Sequence[Any]) -> Outcome:
    """Kinds that aren't enabled are dropped."""
    new = tree_unflatten(eqn.params["err_tree"], args)
    for kind in [k for k in new._pred if k.error_type in enabled]:
        error = error._joined(kind, new._pred[kind], new._code[kind], new._payload[kind], new._metadata)
    return error, []


# --- calls


@rule_of(pjit_p, remat_p, closed_call_p, call_p)
def _call(error: Error, enabled: Errors, eqn: Eqn, args: Sequence[Any]) -> Outcome:
    name = "jaxpr" if "jaxpr" in eqn.params else "call_jaxpr"
    made = checked(eqn.params[name], enabled, error)
    program, consts = hoisted(made.program)
    leaves = [*consts, *tree_leaves(error)]
    params = {**eqn.params, name: program}
    if eqn.params.get("donated"):
        params["donated"] = (False,) * len(leaves) + tuple(eqn.params["donated"])
    return made.split(eqn.primitive.bind_all(*leaves, *args, **params))


# --- control flow


@rule_of(cond_p)
def _cond(error: Error, enabled: Errors, eqn: Eqn, args: Sequence[Any]) -> Outcome:
    branches = eqn.params["branches"]
    error = error._with_room(k for b in branches for k in _kinds(b, enabled, error))
    made = [checked(b, enabled, error) for b in branches]
    outs = bind_cond([m.program for m in made], args[0], [*tree_leaves(error), *args[1:]])
    splits = [m.split(outs) for m in made]
    return _telling_all(splits[0][0], *(e for e, _ in splits[1:])), splits[0][1]


def _kinds(program: ClosedJaxpr, enabled: Errors, error: Error) -> set[Any]:
    """The kinds of error that come out of a program."""
    made = checked(program, enabled, error)
    return set(made.split(made.program.out_avals)[0]._pred)


def _telling_all(error: Error, *others: Error) -> Error:
    """``error``, which knows the codes of the others as well."""
    codes = Codes(error._metadata)
    for other in others:
        codes |= other._metadata
    return Error(error._pred, error._code, Codes(codes), error._payload)


@rule_of(scan_p)
def _scan(error: Error, enabled: Errors, eqn: Eqn, args: Sequence[Any]) -> Outcome:
    """The error is carried."""
    loop = ScanParts.of(eqn.params)
    error = error._with_room(_kinds(loop.jaxpr, enabled, error))
    made = checked(loop.jaxpr, enabled, error)
    consts, init, xs = loop.cut(args)
    body = _consts_first(made.program, made.size, loop.num_consts)
    return made.split(loop.bind(body, consts, [*tree_leaves(error), *init], xs))


def _consts_first(program: ClosedJaxpr, size: int, num_consts: int) -> ClosedJaxpr:
    """With the leaves of the error after the constants, where carries begin."""
    leaves, consts, rest = cut(range(len(program.in_avals)), size, num_consts)
    return reordered(program, (*consts, *leaves, *rest))


@rule_of(while_p)
def _while(error: Error, enabled: Errors, eqn: Eqn, args: Sequence[Any]) -> Outcome:
    """The condition is checked before the loop, and in each turn after the body: so each time that it is computed."""
    loop = WhileParts(eqn.params)
    _refuse_mapped(loop)
    cond_consts, body_consts, init = loop.cut(args)
    error, _ = run_checked(loop.cond.jaxpr, loop.cond.consts, enabled, error, [*cond_consts, *init])
    turn = _turn(loop.body, loop.cond, loop.sizes)
    error = error._with_room(_kinds(turn, enabled, error))
    made = checked(turn, enabled, error)
    leaves, consts = tree_leaves(error), [*cond_consts, *body_consts]
    cond = _ignoring(loop.cond, tuple(map(aval_of, leaves)), loop.sizes[0])
    body = _consts_first(made.program, made.size, len(consts))
    return made.split(bind_while(cond, body, cond_consts, consts, [*leaves, *init]))


def _refuse_mapped(loop: WhileParts) -> None:
    if loop.mapped:
        raise ValueError(
            "Checkify does not support batched while-loops (checkify-of-vmap-of-while). \nHint: if possible, move the "
            "vmap to the outer level to get vmap-of-checkify-of-while."
        )


@memoize_by_jaxpr
def _turn(body: ClosedJaxpr, cond: ClosedJaxpr, sizes: tuple[int, int]) -> ClosedJaxpr:
    """The body, after which the condition of the next turn is computed; its result is not used."""

    def fun(*args: Any) -> list[Any]:
        of_cond, inputs = cut(args, sizes[0])
        outs = run(body, inputs)
        run(cond, [*of_cond, *outs])
        return outs

    return derived(body, fun, [*cond.in_avals[: sizes[0]], *body.in_avals])


@memoize_by_jaxpr
def _ignoring(cond: ClosedJaxpr, avals: tuple[Any, ...], num_consts: int) -> ClosedJaxpr:
    """The condition, which doesn't look at the error among the carries; its checks are in the turns."""

    def fun(*args: Any) -> list[Any]:
        consts, _, carry = cut(args, num_consts, len(avals))
        return run_checked(cond.jaxpr, cond.consts, frozenset(), init_error, [*consts, *carry])[1]

    consts, carry = cut(cond.in_avals, num_consts)
    return derived(cond, fun, [*consts, *avals, *carry])


# --- devices


@rule_of(shard_map_p)
def _shard_map(error: Error, enabled: Errors, eqn: Eqn, args: Sequence[Any]) -> Outcome:
    """Each program has an error of its own: what comes out are examples, one for each device."""
    params = eqn.params
    mesh, names = params["mesh"], params["manual_axes"]
    with region(mesh, names, params["check_vma"]):
        made = checked(params["jaxpr"], enabled, error)
        program = _stacking(made.program, made.size)
    leaves = tree_leaves(error)
    every = (tuple(name for name, _ in manual(mesh, names)),)
    ins, outs = shard_map_call.ends(params)
    ins, outs = [*[()] * len(leaves), *ins], [*[every] * made.size, *outs]
    return made.split(shard_map_call.bind(program, [*leaves, *args], params, ins, outs))


@memoize_by_jaxpr
def _stacking(program: ClosedJaxpr, size: int) -> ClosedJaxpr:
    """With one more dimension in the leaves of the error."""

    def fun(*args: Any) -> list[Any]:
        leaves, outs = cut(run(program, args), size)
        return [*(expand_dims(x, (0,)) for x in leaves), *outs]

    return derived(program, fun, program.in_avals)
