"""Values of ``float0`` where a program is compiled: no device knows them, and since they tell nothing, False does."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyax.control.inner.programs import with_programs
from polyax.control.inner.stand_ins import StandIns
from polyax.ir import dtypes
from polyax.ir.aval import ShapedArray
from polyax.ir.jaxpr import Atom, ClosedJaxpr, Eqn, Literal, sub_jaxprs
from polyax.ops.basis import full
from polyax.trace.recording import trace_to_jaxpr
from polyax.transforms.memo import memoize_by_jaxpr


@memoize_by_jaxpr
def weighted(program: ClosedJaxpr) -> ClosedJaxpr:
    """``program`` on booleans where it has values of ``float0``; itself, if it has none."""
    return _Weighted().of(program)


def _weightless(atom: Atom) -> bool:
    return atom.aval.dtype == dtypes.float0


class _Weighted(StandIns):
    """Booleans stand for values of ``float0``."""

    def concerns(self, atom: Atom) -> bool:
        return _weightless(atom)

    def type_of(self, aval: ShapedArray) -> ShapedArray:
        return aval.update(dtype=np.dtype(bool))

    def literal(self, atom: Literal) -> Literal:
        return Literal(np.False_, self.type_of(atom.aval))

    def const(self, value: Any) -> np.ndarray:
        return np.zeros(np.shape(value), bool)

    def put(self, eqn: Eqn) -> bool:
        if eqn.outvars and all(map(_weightless, eqn.outvars)) and not sub_jaxprs(eqn) and not eqn.effects:
            zeros = trace_to_jaxpr(lambda: [full(v.aval.shape, False, np.bool_) for v in eqn.outvars], [])
            self.put_program(eqn, zeros, [])
            return False
        inner = with_programs(eqn, weighted)
        if any(map(_weightless, eqn.outvars)):
            inner = inner.replace(outvars=[self.new(v) for v in eqn.outvars])
        return self.append(inner) is eqn
