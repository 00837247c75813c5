"""Programs for engines: without calls, and made of what an engine has.

Must not know any engine: it says equation by equation what it has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from polyax.control.decomposition import decomposition
from polyax.ir.jaxpr import Atom, ClosedJaxpr, Eqn, Jaxpr, Literal, Var
from polyax.reference.interpreter import called
from polyax.runtime.contract.listing import flatten


def inline_calls(closed: ClosedJaxpr) -> ClosedJaxpr:
    """``closed`` with the equations of the programs that it only calls (``jit``, functions with rules of their own,
    ``checkpoint``) in the place of the calls. Programs of loops and branches stay as they are. Constants of inner
    programs become literals, whose ``val`` may be an array.

    >>> from polyax import jit, make_jaxpr
    >>> inline_calls(make_jaxpr(lambda x: jit(lambda y: y * 2)(x) + 1)(3.0))
    { lambda ; a:f32[]. let
        b:f32[] = mul a 2.0:f32[]
        c:f32[] = add b 1.0:f32[]
      in (c,) }
    """
    return _written_out(closed, called)


def decompose(closed: ClosedJaxpr, allowed: Callable[[Eqn], bool]) -> ClosedJaxpr:
    """``closed`` without calls, and with what equations are made of in the place of those that aren't ``allowed``, as
    far as they are made of others. What isn't, stays; so do programs of loops and branches.

    Raises:
      TypeError: the decomposition of a primitive gives results of other types than the primitive has.

    >>> from polyax import lax, make_jaxpr, numpy as jnp
    >>> program = make_jaxpr(lambda x: lax.reduce_window(x, 0.0, lax.add, (2,), (1,), "VALID"))(jnp.ones(3))
    >>> [e.primitive.name for e in decompose(program, lambda e: True).eqns]
    ['reduce_window_sum']
    >>> other = decompose(program, lambda e: e.primitive.name != "reduce_window_sum")
    >>> sorted({e.primitive.name for e in other.eqns})
    ['add', 'slice']
    """

    def opened(eqn: Eqn) -> ClosedJaxpr | None:
        if eqn.primitive.decompose is None:
            return called(eqn)
        if allowed(eqn):
            return None
        found = decomposition(eqn)
        return None if [e.primitive for e in found.eqns] == [eqn.primitive] else found  # it is made of nothing simpler

    return _written_out(closed, opened)


def _written_out(closed: ClosedJaxpr, opened: Callable[[Eqn], ClosedJaxpr | None]) -> ClosedJaxpr:
    listing = flatten(closed.jaxpr, opened)
    values: list[Atom] = [
        Literal(listing.literals[n], aval) if n in listing.literals else Var(aval)
        for n, aval in enumerate(listing.avals)
    ]
    eqns = [
        line.eqn.replace(invars=[values[n] for n in line.inputs], outvars=[values[n] for n in line.outs])
        for line in listing.lines
    ]
    inputs: list[Any] = [values[n] for n in listing.inputs]
    split, outs = len(closed.consts), [values[n] for n in listing.outputs]
    jaxpr = Jaxpr(inputs[:split], inputs[split:], outs, eqns, None, closed.jaxpr.debug_name)
    return ClosedJaxpr(jaxpr, closed.consts)
