"""How loops, branches and calls do without references: their rules ``discharge``.

Arguments that are references come as they are in the current trace, or as cells.
"""

from __future__ import annotations

from typing import Any

from polyax.control.calls.closed import call_p, closed_call_p
from polyax.control.calls.custom_jvp import custom_jvp_call_p
from polyax.control.calls.custom_lin import custom_lin_p
from polyax.control.calls.custom_vjp import custom_vjp_call_p
from polyax.control.calls.jit import pjit_p
from polyax.control.calls.remat import remat_p
from polyax.control.flow.cond import Branches, bind_cond, cond_p
from polyax.control.flow.scan import ScanParts, scan_p
from polyax.control.flow.while_loop import while_p
from polyax.control.inner.lists import cut, either, kept, merged, partition
from polyax.control.inner.programs import derived, hoisted, run
from polyax.control.refs.discharge import add_rules, discharged, put_written, run_discharged, whole
from polyax.control.spmd import region, shard_map_p
from polyax.ir.jaxpr import ClosedJaxpr, walk_eqns
from polyax.ir.primitive import PRIMITIVES, Primitive, ambient, def_rule
from polyax.ir.refs import is_ref
from polyax.trace.recording import DynamicJaxprTrace
from polyax.transforms.jvp import PairTrace
from polyax.transforms.memo import memoize_by_jaxpr

OWN_RULES = custom_jvp_call_p, custom_vjp_call_p

for _p in (*OWN_RULES, custom_lin_p):
    _p.takes_refs = True


def _call(p: Primitive, param: str, **fixed: Any) -> None:
    """The rule of a primitive that calls a program."""

    @def_rule(p, "discharge")
    def discharge(*args: Any, **params: Any) -> list[Any]:
        _refuse_own_rules(p, params[param])
        made = discharged(params[param])
        program, consts = hoisted(made.program)
        outs = p.bind_all(*consts, *map(whole, args), **{**params, param: program, **fixed})
        outs, news = cut(outs, len(outs) - made.num_written)
        put_written(args, made.written, news)
        return outs


_call(closed_call_p, "call_jaxpr")
_call(call_p, "call_jaxpr")
_call(remat_p, "jaxpr")
_call(pjit_p, "jaxpr", donated=())
_pjit_of_values = pjit_p.rule("discharge")


@def_rule(pjit_p, "discharge")
def _pjit(*args: Any, **params: Any) -> list[Any]:
    """Functions with rules of their own may write to references backwards: they have to be met as they are."""
    if not isinstance(ambient.trace, DynamicJaxprTrace) and has_own_rules(params["jaxpr"]):
        return run(params["jaxpr"], args)
    return _pjit_of_values(*args, **params)


def has_own_rules(program: ClosedJaxpr) -> bool:
    """Whether functions with derivative rules of their own take references."""
    return any(e.primitive in OWN_RULES and any(map(is_ref, e.invars)) for e in walk_eqns(program.jaxpr))


def _refuse_own_rules(p: Primitive, *programs: ClosedJaxpr) -> None:
    """Raises if programs that are differentiated hold such functions: their rules would be lost."""
    if isinstance(ambient.trace, PairTrace) and any(map(has_own_rules, programs)):
        raise NotImplementedError(
            f"differentiating {p} whose program gives references to functions with derivative rules of their own "
            "(custom_jvp, custom_vjp) isn't supported: call them outside of it, or unroll it in Python."
        )


@def_rule(custom_jvp_call_p, "discharge")
@def_rule(custom_vjp_call_p, "discharge")
def _own(*args: Any, call_jaxpr: ClosedJaxpr, **_: Any) -> list[Any]:
    """What is left of them was differentiated before."""
    return run_discharged(call_jaxpr, args)


# --- scan -------------------------------------------------------------------------------------------------------------


@def_rule(scan_p, "discharge")
def _scan(*args: Any, **params: Any) -> list[Any]:
    """What the body writes to of its constants is carried; of what is scanned over, it is stacked anew."""
    loop = ScanParts.of(params)
    _refuse_own_rules(scan_p, loop.jaxpr)
    made = discharged(loop.jaxpr)
    of_consts, _, of_xs = map(tuple, loop.cut(made.written))
    consts, carry, xs = loop.cut(args)
    refs, rest = partition(of_consts, consts)
    body = _carrying(loop.jaxpr, of_consts)
    values = [*map(whole, refs), *carry]
    outs = loop.bind(body, [*map(whole, rest)], values, [*map(whole, xs)])
    news, outs = cut(outs, len(refs))
    outs, more = cut(outs, len(outs) - sum(of_xs))
    put_written([*refs, *kept(of_xs, xs)], (True,) * (len(refs) + sum(of_xs)), [*news, *more])
    return outs


@memoize_by_jaxpr
def _carrying(body: ClosedJaxpr, of_consts: tuple[bool, ...]) -> ClosedJaxpr:
    """The body without references; those of its constants that are written to are first carries."""
    made = discharged(body)
    n, w, num_outs = len(of_consts), sum(of_consts), len(body.out_avals)

    def fun(*args: Any) -> list[Any]:
        rest, refs, others = cut(args, n - w, w)
        outs = run(made.program, [*merged(of_consts, refs, rest), *others])
        own, news, of_xs = cut(outs, num_outs, w)
        return [*news, *own, *of_xs]

    avals = made.program.in_avals
    refs, rest = partition(of_consts, avals[:n])
    return derived(body, fun, [*rest, *refs, *avals[n:]])


# --- while ------------------------------------------------------------------------------------------------------------


@def_rule(while_p, "discharge")
def _while(*args: Any, **params: Any) -> list[Any]:
    """What the body writes to is carried, and read there by the condition."""
    _refuse_own_rules(while_p, params["body_jaxpr"])
    test, body = discharged(params["cond_jaxpr"]), discharged(params["body_jaxpr"])
    of_test, of_body, carry = cut(args, params["cond_nconsts"], params["body_nconsts"])
    if any(test.written):
        raise NotImplementedError("while_loop: cond_fun can't write to references; write to them in body_fun")
    written = body.written[: len(of_body)]
    refs, rest = partition(written, of_body)
    place = {id(_identity(r)): n for n, r in enumerate(refs)}
    shared = tuple([place.get(id(_identity(x))) if is_ref(x) else None for x in of_test])
    test_rest = [x for x, at in zip(of_test, shared, strict=True) if at is None]
    (cond, cond_consts) = hoisted(_testing(test.program, shared, tuple(r.aval for r in refs)))
    (step, step_consts) = hoisted(_carrying(params["body_jaxpr"], tuple(written)))
    outs = while_p.bind(
        *cond_consts,
        *map(whole, test_rest),
        *step_consts,
        *map(whole, [*rest, *refs]),
        *carry,
        cond_jaxpr=cond,
        cond_nconsts=len(cond_consts) + len(test_rest),
        body_jaxpr=step,
        body_nconsts=len(step_consts) + len(rest),
    )
    news, outs = cut(outs, len(refs))
    put_written(refs, (True,) * len(refs), news)
    return outs


def _identity(ref: Any) -> Any:
    """What is the same for all that stand for one reference."""
    return getattr(ref, "atom", ref)


@memoize_by_jaxpr
def _testing(test: ClosedJaxpr, shared: tuple[int | None, ...], refs: tuple[Any, ...]) -> ClosedJaxpr:
    """The condition, which takes the constants that are ``shared`` from the first carries."""
    num_rest, num_refs = sum(at is None for at in shared), len(refs)

    def fun(*args: Any) -> list[Any]:
        rest, carried, carry = cut(args, num_rest, num_refs)
        given = iter(rest)
        return run(test, [*(next(given) if at is None else carried[at] for at in shared), *carry])

    avals = test.in_avals
    own = [a for a, at in zip(avals, shared, strict=False) if at is None]
    return derived(test, fun, [*own, *(r.inner_aval for r in refs), *avals[len(shared) :]])


# --- cond -------------------------------------------------------------------------------------------------------------


@def_rule(cond_p, "discharge")
def _cond(index: Any, *args: Any, branches: Branches) -> list[Any]:
    """Each branch gives what any of them writes to."""
    _refuse_own_rules(cond_p, *branches)
    written = either(*(discharged(b).written for b in branches))
    programs = [discharged(b, written).program for b in branches]
    outs = bind_cond(programs, index, [*map(whole, args)])
    outs, news = cut(outs, len(outs) - sum(written))
    put_written(args, written, news)
    return outs


# --- shard_map --------------------------------------------------------------------------------------------------------


@def_rule(shard_map_p, "discharge")
def _shard_map(*args: Any, **params: Any) -> list[Any]:
    """Each device writes to its part of what a reference holds: what is the same along axes that it isn't cut along."""
    program, specs = params["jaxpr"], params["in_specs"]
    with region(params["mesh"], params["manual_axes"], params["check_vma"]):
        made = discharged(program)
    outs_of = (*params["out_specs"], *kept(made.written, specs))
    outs = shard_map_p.bind(*map(whole, args), **{**params, "jaxpr": made.program, "out_specs": outs_of})
    outs, news = cut(outs, len(outs) - made.num_written)
    put_written(args, made.written, news)
    return outs


add_rules(PRIMITIVES)
