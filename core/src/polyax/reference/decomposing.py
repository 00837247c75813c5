"""Programs for the interpreter: equations without a NumPy rule become calls of what they are made of.

Done once, when a program is compiled: what a decomposition gives depends on the settings of the thread that asks.
"""

from __future__ import annotations

from polyax.control.calls.jit import pjit_p
from polyax.control.decomposition import decomposition
from polyax.control.inner.programs import rewritten
from polyax.ir.errors import NoLowering
from polyax.ir.jaxpr import ClosedJaxpr, Eqn
from polyax.reference.interpreter import called
from polyax.reference.table import RULES
from polyax.runtime.contract.backend import Backend
from polyax.transforms.memo import memoize_by_jaxpr


@memoize_by_jaxpr
def decomposed(closed: ClosedJaxpr) -> ClosedJaxpr:
    """``closed`` with such calls, in nested programs as well; itself if it needs none."""
    return rewritten(closed, _called, decomposed)


def without_declined(closed: ClosedJaxpr, backend: Backend) -> ClosedJaxpr:
    """``closed`` with calls of what they are made of in the place of equations that ``backend`` declines.

    Raises:
      NoLowering: one of them is made of nothing else.
    """

    def rule(eqn: Eqn) -> list[Eqn]:
        if called(eqn) is not None or (reason := backend.declines(eqn)) is None:
            return [eqn]
        simpler = None if eqn.primitive.decompose is None else decomposition(eqn)
        if simpler is None or [e.primitive for e in simpler.eqns] == [eqn.primitive]:
            raise NoLowering(
                f"{backend.name} can't run {eqn.primitive.name!r}: {reason}; it is made of nothing simpler"
            )
        return [_call(eqn, inner(simpler))]

    def inner(program: ClosedJaxpr) -> ClosedJaxpr:
        return rewritten(program, rule, inner)

    return inner(closed)


def _called(eqn: Eqn) -> list[Eqn]:
    if eqn.primitive.decompose is None or eqn.primitive in RULES:
        return [eqn]
    return [_call(eqn, decomposed(decomposition(eqn)))]


def _call(eqn: Eqn, program: ClosedJaxpr) -> Eqn:
    return eqn.replace(primitive=pjit_p, params={"jaxpr": program, "name": eqn.primitive.name})
