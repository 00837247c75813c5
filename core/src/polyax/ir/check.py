"""The type checker of jaxprs: every variable bound once before use, every equation typed by its own rule."""

from __future__ import annotations

from polyax.ir.aval import ShapedArray, same_type
from polyax.ir.effects import NO_EFFECTS
from polyax.ir.errors import JaxprTypeError
from polyax.ir.jaxpr import Atom, Eqn, Jaxpr, Literal, Var, sub_jaxprs


def check_jaxpr(jaxpr: Jaxpr) -> None:
    """Raises ``JaxprTypeError`` naming the equation and both types, unless ``jaxpr`` is well-typed."""
    pending = [jaxpr]
    while pending:
        inner = pending.pop()
        _check_one(inner)
        for eqn in inner.eqns:
            pending.extend(c.jaxpr for c in sub_jaxprs(eqn))


def infer(eqn: Eqn) -> list[ShapedArray]:
    """The output types that the primitive's own rule gives."""
    result = eqn.primitive.rule("abstract_eval")(*(v.aval for v in eqn.invars), **eqn.params)
    return result[0] if isinstance(result, tuple) else result


def _check_one(jaxpr: Jaxpr) -> None:
    bound: set[Var] = set()

    def bind(v: Var, where: object) -> None:
        if v in bound:
            raise JaxprTypeError(f"variable {v} is bound twice, the second time by {where}")
        bound.add(v)

    def read(atom: Atom, where: object) -> None:
        if not isinstance(atom, Literal) and atom not in bound:
            raise JaxprTypeError(f"variable {atom} is used before it is bound, in {where}")

    for v in (*jaxpr.constvars, *jaxpr.invars):
        bind(v, "the inputs")
    effects = NO_EFFECTS
    for eqn in jaxpr.eqns:
        for atom in eqn.invars:
            read(atom, eqn)
        _check_types(eqn)
        for v in eqn.outvars:
            bind(v, eqn)
        effects |= eqn.effects
    for atom in jaxpr.outvars:
        read(atom, "the outputs")
    if not effects <= jaxpr.effects:
        raise JaxprTypeError(f"effects {set(effects - jaxpr.effects)} of the equations are not declared by the jaxpr")


def _check_types(eqn: Eqn) -> None:
    inferred = infer(eqn)
    if len(inferred) != len(eqn.outvars):
        raise JaxprTypeError(f"{eqn}: {len(eqn.outvars)} outputs, the rule of {eqn.primitive} gives {len(inferred)}")
    for v, aval in zip(eqn.outvars, inferred, strict=True):
        if not same_type(v.aval, aval):
            raise JaxprTypeError(f"{eqn}: output is {v.aval}, the rule of {eqn.primitive} gives {aval}")
