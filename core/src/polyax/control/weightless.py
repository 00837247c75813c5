"""Values of ``float0`` where a program is compiled: no device knows them, and since they tell nothing, False does."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyax.control.inner.programs import with_programs
from polyax.ir import dtypes
from polyax.ir.aval import ShapedArray
from polyax.ir.jaxpr import Atom, ClosedJaxpr, Eqn, Jaxpr, Literal, Var, sub_jaxprs
from polyax.ops.basis import full
from polyax.trace.recording import trace_to_jaxpr
from polyax.transforms.memo import memoize_by_jaxpr


@memoize_by_jaxpr
def weighted(program: ClosedJaxpr) -> ClosedJaxpr:
    """``program`` on booleans where it has values of ``float0``; itself, if it has none."""
    return _StandIns().of(program)


def _weightless(atom: Atom) -> bool:
    return atom.aval.dtype == dtypes.float0


class _StandIns:
    """What stands for variables of ``float0``, and the equations so far."""

    def __init__(self) -> None:
        self.env: dict[Var, Atom] = {}
        self.eqns: list[Eqn] = []

    def of(self, program: ClosedJaxpr) -> ClosedJaxpr:
        jaxpr = program.jaxpr
        constvars, invars = ([self._new(v) for v in vs] for vs in (jaxpr.constvars, jaxpr.invars))
        unchanged = [self._put(eqn) for eqn in jaxpr.eqns]
        if all(unchanged) and not self.env and not any(map(_weightless, jaxpr.outvars)):
            return program
        outs = [self._read(a) for a in jaxpr.outvars]
        consts = [
            np.zeros(v.aval.shape, bool) if _weightless(v) else c for v, c in zip(jaxpr.constvars, program.consts)
        ]
        return ClosedJaxpr(Jaxpr(constvars, invars, outs, self.eqns, jaxpr.effects, jaxpr.debug_name), consts)

    def _new(self, v: Var) -> Var:
        if not _weightless(v):
            return v
        self.env[v] = new = Var(_weighted_aval(v.aval))
        return new

    def _read(self, atom: Atom) -> Atom:
        if isinstance(atom, Literal):
            return Literal(np.False_, _weighted_aval(atom.aval)) if _weightless(atom) else atom
        return self.env.get(atom, atom)

    def _put(self, eqn: Eqn) -> bool:
        """Appends what stands for the equation; whether that is the equation itself."""
        if eqn.outvars and all(map(_weightless, eqn.outvars)) and not sub_jaxprs(eqn) and not eqn.effects:
            for v in eqn.outvars:
                self._append_zeros(v)
            return False
        inner = with_programs(eqn, weighted)
        if any(map(_weightless, (*eqn.invars, *eqn.outvars))):
            invars, outvars = [self._read(a) for a in eqn.invars], [self._new(v) for v in eqn.outvars]
            inner = inner.replace(invars=invars, outvars=outvars)
        self.eqns.append(inner)
        return inner is eqn

    def _append_zeros(self, v: Var) -> None:
        made = trace_to_jaxpr(lambda: [full(v.aval.shape, False, np.bool_)], [])
        self.eqns += made.jaxpr.eqns
        (self.env[v],) = made.jaxpr.outvars


def _weighted_aval(aval: ShapedArray) -> Any:
    return aval.update(dtype=np.dtype(bool))
