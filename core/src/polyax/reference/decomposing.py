"""Programs for the interpreter: equations without a NumPy rule become calls of what they are made of.

Done once, when a program is compiled: what a decomposition gives depends on the settings of the thread that asks.
"""

from __future__ import annotations

from typing import Any

from polyax.control.calls.jit import pjit_p
from polyax.ir.jaxpr import ClosedJaxpr, Eqn, Jaxpr, walk_eqns
from polyax.reference.table import RULES
from polyax.trace.decomposition import decomposition
from polyax.transforms.memo import memoize_by_jaxpr


@memoize_by_jaxpr
def decomposed(closed: ClosedJaxpr) -> ClosedJaxpr:
    """``closed`` with such calls, in nested programs as well; itself if it needs none."""
    jaxpr = closed.jaxpr
    if not any(map(_lacks_rule, walk_eqns(jaxpr))):
        return closed
    eqns = [_replaced(e) for e in jaxpr.eqns]
    changed = Jaxpr(jaxpr.constvars, jaxpr.invars, jaxpr.outvars, eqns, jaxpr.effects, jaxpr.debug_name)
    return ClosedJaxpr(changed, closed.consts)


def _lacks_rule(eqn: Eqn) -> bool:
    return eqn.primitive.decompose is not None and eqn.primitive not in RULES


def _replaced(eqn: Eqn) -> Eqn:
    if _lacks_rule(eqn):
        params = {"jaxpr": decomposed(decomposition(eqn)), "name": eqn.primitive.name}
        return eqn.replace(primitive=pjit_p, params=params)
    return eqn.replace(params={name: _inside(value) for name, value in eqn.params.items()})


def _inside(value: Any) -> Any:
    if isinstance(value, ClosedJaxpr):
        return decomposed(value)
    return tuple(map(_inside, value)) if type(value) is tuple else value
