"""Which values differentiation keeps for the backward pass, and where they come from, told to people."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.dtypes import is_inexact
from polyax.ir.jaxpr import Atom, Eqn, Jaxpr, Literal
from polyax.ops.naming import name_p
from polyax.trace.flat import Flat, arg_names, check_callable, name_of
from polyax.trace.recording import trace_to_jaxpr
from polyax.trace.tree import tree_flatten
from polyax.transforms.linearize import linearize_flat


def saved_residuals(f: Callable[..., Any], *args: Any, **kwargs: Any) -> list[tuple[ShapedArray, str]]:
    """The type of each value that the derivative of ``f`` at these arguments keeps, and where it comes from.

    >>> from polyax import numpy as jnp
    >>> saved_residuals(lambda x: x * x, jnp.zeros(3))
    [(ShapedArray(float32[3]), 'from the argument x')]
    """
    check_callable(f)
    leaves, tree = tree_flatten((args, kwargs))
    avals = [aval_of(x) for x in leaves]

    def residuals(*xs: Any) -> list[Any]:
        _, linearized = linearize_flat(Flat(f, tree), xs, [is_inexact(a.dtype) for a in avals])
        return linearized.residuals

    jaxpr = trace_to_jaxpr(residuals, avals, name=name_of(f)).jaxpr
    names = arg_names(f, args, kwargs)
    kept = {_outside(jaxpr, atom): atom for atom in jaxpr.outvars}
    order = [*jaxpr.constvars, *jaxpr.invars, *(v for e in jaxpr.eqns for v in e.outvars)]
    literals = [a for a in kept if isinstance(a, Literal)]
    return [(a.aval, _where_from(jaxpr, names, a)) for a in [*literals, *(v for v in order if v in kept)]]


def _outside(jaxpr: Jaxpr, atom: Atom) -> Atom:
    """What a jitted function returns as it was given stands for that; what it holds as a constant, for itself."""
    eqn = next((e for e in jaxpr.eqns if atom in e.outvars), None)
    if eqn is None or eqn.primitive.name != "jit":
        return atom
    inner = eqn.params["jaxpr"].jaxpr
    result = inner.outvars[eqn.outvars.index(atom)]
    if result in inner.invars:
        return _outside(jaxpr, eqn.invars[inner.invars.index(result)])
    return result if isinstance(result, Literal) else atom


def _where_from(jaxpr: Jaxpr, names: list[str], atom: Atom) -> str:
    if isinstance(atom, Literal) or atom in jaxpr.constvars:
        return "from a constant"
    if atom in jaxpr.invars:
        return f"from the argument {names[jaxpr.invars.index(atom)]}"
    eqn = next(e for e in jaxpr.eqns if atom in e.outvars)
    return f"{_what(eqn)} from {eqn.source or ''}"


def _what(eqn: Eqn) -> str:
    if eqn.primitive is name_p:
        return f"named {eqn.params['name']!r}"
    return (
        f"output of jitted function {eqn.params['name']!r}"
        if eqn.primitive.name == "jit"
        else f"output of {eqn.primitive}"
    )


def print_saved_residuals(f: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Prints ``saved_residuals``, a line for each value."""
    for aval, where in saved_residuals(f, *args, **kwargs):
        print(f"{aval.str_short(True)} {where}")
