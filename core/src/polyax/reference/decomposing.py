"""Programs for the interpreter: equations without a NumPy rule become calls of what they are made of.

Done once, when a program is compiled: what a decomposition gives depends on the settings of the thread that asks.
"""

from __future__ import annotations

from polyax.control.calls.jit import pjit_p
from polyax.control.inner.programs import rewritten
from polyax.ir.jaxpr import ClosedJaxpr, Eqn
from polyax.reference.table import RULES
from polyax.trace.decomposition import decomposition
from polyax.transforms.memo import memoize_by_jaxpr


@memoize_by_jaxpr
def decomposed(closed: ClosedJaxpr) -> ClosedJaxpr:
    """``closed`` with such calls, in nested programs as well; itself if it needs none."""
    return rewritten(closed, _called, decomposed)


def _called(eqn: Eqn) -> list[Eqn]:
    if eqn.primitive.decompose is None or eqn.primitive in RULES:
        return [eqn]
    params = {"jaxpr": decomposed(decomposition(eqn)), "name": eqn.primitive.name}
    return [eqn.replace(primitive=pjit_p, params=params)]
