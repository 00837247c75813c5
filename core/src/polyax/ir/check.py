"""The type checker of jaxprs: every variable bound once before use, every equation typed by its own rule."""

from __future__ import annotations

from collections.abc import Sequence

from polyax.ir.aval import ShapedArray, same_type
from polyax.ir.effects import NO_EFFECTS
from polyax.ir.errors import JaxprTypeError
from polyax.ir.jaxpr import Atom, Eqn, Jaxpr, Literal, Var, sub_jaxprs
from polyax.ir.pretty import around


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


class _Fault(Exception):
    """What is wrong, with a place in the text for the name of a variable if it is about one."""


def _check_one(jaxpr: Jaxpr) -> None:
    bound: set[Var] = set()
    effects, eqn = NO_EFFECTS, None
    try:
        _bind(bound, (*jaxpr.constvars, *jaxpr.invars))
        for eqn in jaxpr.eqns:
            _read(bound, eqn.invars)
            _check_params(eqn)
            _check_types(eqn)
            _bind(bound, eqn.outvars)
            effects |= eqn.effects
        eqn = None
        _read(bound, jaxpr.outvars)
    except _Fault as fault:
        raise JaxprTypeError(_told(fault, jaxpr, eqn)) from None
    if not effects <= jaxpr.effects:
        raise JaxprTypeError(f"effects {set(effects - jaxpr.effects)} of the equations are not declared by the jaxpr")


def _bind(bound: set[Var], variables: Sequence[Var]) -> None:
    for v in variables:
        if v in bound:
            raise _Fault("Variable '{}' already bound", v)
        bound.add(v)


def _read(bound: set[Var], atoms: Sequence[Atom]) -> None:
    for atom in atoms:
        if not isinstance(atom, Literal) and atom not in bound:
            raise _Fault("Variable '{}' not defined", atom)


def _check_params(eqn: Eqn) -> None:
    if eqn.primitive.typecheck is None:
        return
    try:
        eqn.primitive.typecheck(*(v.aval for v in eqn.invars), **eqn.params)
    except JaxprTypeError as wrong:
        raise _Fault(str(wrong), None) from None


def _check_types(eqn: Eqn) -> None:
    inferred = infer(eqn)
    if len(inferred) != len(eqn.outvars):
        raise JaxprTypeError(f"{eqn}: {len(eqn.outvars)} outputs, the rule of {eqn.primitive} gives {len(inferred)}")
    for v, aval in zip(eqn.outvars, inferred, strict=True):
        if not same_type(v.aval, aval):
            types = f"as {aval.str_short(True)} for let-binder of type {v.aval.str_short(True)}"
            raise _Fault(f"Value for variable '{{}}' inconsistently typed {types}", v)


def _told(fault: _Fault, jaxpr: Jaxpr, eqn: Eqn | None) -> str:
    """The fault, the equation with its line, and what stands around that, with one name for each variable."""
    text, v = fault.args
    name, equation, program = around(jaxpr, v, eqn)
    place = f"\n\nin equation:\n\n{equation}\n\nfrom source: {eqn.source}" if eqn else ""
    said = text.replace("{}", name, 1) if v else text
    return f"{said}{place}\n\nwhile checking jaxpr:\n\n{program}"
