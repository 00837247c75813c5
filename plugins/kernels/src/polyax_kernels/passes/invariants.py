"""Loops without what doesn't change in them: that is computed once, before the loop. For compilers alone: the jaxprs
that users see stay as they were written.

Shape operations stay inside, where they fuse into what uses them: moved out, they would need memory of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polyax.control.flow.scan import constant_vars, scan_p
from polyax.control.flow.while_loop import while_p
from polyax.control.inner.programs import rewritten, with_ends
from polyax.ir.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Literal, Var
from polyax.transforms.memo import memoize_by_jaxpr

_FREE = frozenset(
    ("broadcast_in_dim", "reshape", "squeeze", "transpose", "slice", "rev", "iota", "convert_element_type", "copy")
)


@memoize_by_jaxpr
def hoist_invariants(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The same program, in which each loop, at any depth, comes after what its body computes from constants alone."""
    return rewritten(closed, _hoisted, hoist_invariants)


def _hoisted(eqn: Eqn) -> list[Eqn]:
    if eqn.primitive is scan_p:
        return _loop(eqn, "jaxpr", 0, eqn.params["num_consts"], "num_consts")
    if eqn.primitive is while_p:
        return _loop(eqn, "body_jaxpr", eqn.params["cond_nconsts"], eqn.params["body_nconsts"], "body_nconsts")
    return [eqn]


def _loop(eqn: Eqn, name: str, skipped: int, count: int, counter: str) -> list[Eqn]:
    """The equations that the loop's body computes from its constants, which are ``count`` inputs after ``skipped``
    ones, and the loop, which takes their results as further constants."""
    body: ClosedJaxpr = eqn.params[name]
    before, frontier, rest = _split(body, count)
    if not before:
        return [eqn]
    consts = eqn.invars[skipped : skipped + count]
    env: dict[Var, Any] = dict(zip(body.jaxpr.invars, consts))
    outside = [_moved(e, env) for e in before]
    inputs = [*eqn.invars[: skipped + count], *(env[v] for v in frontier), *eqn.invars[skipped + count :]]
    params = {**eqn.params, name: rest, counter: count + len(frontier)}
    return [*outside, eqn.replace(invars=inputs, params=params)]


@memoize_by_jaxpr
def _split(body: ClosedJaxpr, count: int) -> tuple[list[Eqn], list[Var], ClosedJaxpr]:
    """The equations to move out, those of their results that the body needs, and the body without them."""
    jaxpr = body.jaxpr
    consts = jaxpr.invars[:count]
    fixed = constant_vars(jaxpr, consts)
    reading = _reading(jaxpr.eqns, consts)
    inside = {v for v in jaxpr.outvars if isinstance(v, Var)}
    outside: set[Var] = set()
    moved: list[Eqn] = []
    kept: list[Eqn] = []
    for eqn in reversed(jaxpr.eqns):
        movable = bool(eqn.outvars) and all(v in fixed for v in eqn.outvars)
        free = eqn.primitive.name in _FREE or reading.isdisjoint(eqn.outvars)
        if movable and (not free or not outside.isdisjoint(eqn.outvars)):
            moved.append(eqn)
            outside.update(v for v in eqn.invars if isinstance(v, Var))
        if not movable or (free and not inside.isdisjoint(eqn.outvars)):
            kept.append(eqn)
            inside.update(v for v in eqn.invars if isinstance(v, Var))
    moved, kept = moved[::-1], kept[::-1]
    own = {v for e in kept for v in e.outvars}
    frontier = [v for e in moved for v in e.outvars if v in inside and v not in own]
    smaller = Jaxpr(jaxpr.constvars, jaxpr.invars, jaxpr.outvars, kept, None, jaxpr.debug_name)
    inner = [*consts, *frontier, *jaxpr.invars[count:]]
    return moved, frontier, with_ends(ClosedJaxpr(smaller, body.consts), inner)


def _reading(eqns: Sequence[Eqn], consts: Sequence[Var]) -> set[Var]:
    """What is computed from some constant: the rest is written in the program, and costs nothing."""
    found = set(consts)
    for eqn in eqns:
        if any(v in found for v in eqn.invars if isinstance(v, Var)):
            found.update(eqn.outvars)
    return found


def _moved(eqn: Eqn, env: dict[Var, Any]) -> Eqn:
    """The equation with the outer program's variables."""
    inputs = [a if isinstance(a, Literal) else env[a] for a in eqn.invars]
    outs = [Var(v.aval) for v in eqn.outvars]
    env.update(zip(eqn.outvars, outs, strict=True))
    return eqn.replace(invars=inputs, outvars=outs)
