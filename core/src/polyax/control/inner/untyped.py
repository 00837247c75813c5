"""Programs whose types don't tell along which axes values vary: what is compiled."""

from __future__ import annotations

from typing import Any

from polyax.control.inner.programs import with_programs
from polyax.ir.aval import NO_SUMS
from polyax.ir.jaxpr import Atom, ClosedJaxpr, Eqn, Jaxpr, Literal, Var
from polyax.ops.collective import psum_invariant_p, psum_p
from polyax.ops.parts import all_gather_invariant_p, all_gather_p, reduce_scatter_p
from polyax.ops.sums import (
    all_gather_reduced_p,
    preduced_p,
    reduced_vary_cast_p,
    unreduced_psum_p,
    unreduced_reduce_scatter_p,
    vary_unreduced_cast_p,
)
from polyax.trace.varying import pvary_p
from polyax.transforms.memo import memoize_by_jaxpr

CASTS = frozenset((pvary_p, preduced_p, vary_unreduced_cast_p, reduced_vary_cast_p))
"""What changes nothing but types."""
PLAIN = {
    psum_invariant_p: psum_p,
    unreduced_psum_p: psum_p,
    unreduced_reduce_scatter_p: reduce_scatter_p,
    all_gather_reduced_p: all_gather_p,
    all_gather_invariant_p: all_gather_p,
}
"""Collectives of values of certain types, and what they are without those."""


def _told(v: Var) -> bool:
    return bool(v.aval.vma) or v.aval.sums != NO_SUMS


@memoize_by_jaxpr
def without_vma(program: ClosedJaxpr) -> ClosedJaxpr:
    """The same program, without ``pvary``, in which sums are sums of whatever values."""
    jaxpr, env = program.jaxpr, _Renamed()
    constvars, invars = map(env.new, jaxpr.constvars), map(env.new, jaxpr.invars)
    inputs = list(constvars), list(invars)
    eqns = [_untyped(e, env) for e in jaxpr.eqns if not env.passes(e)]
    outs = [env.read(a) for a in jaxpr.outvars]
    return ClosedJaxpr(Jaxpr(*inputs, outs, eqns, jaxpr.effects, jaxpr.debug_name), program.consts)


class _Renamed:
    """What stands for each variable."""

    def __init__(self) -> None:
        self.atoms: dict[Var, Atom] = {}

    def new(self, v: Var) -> Var:
        renamed = self.atoms[v] = Var(v.aval.update(vma=frozenset(), sums=NO_SUMS)) if _told(v) else v
        return renamed

    def read(self, atom: Atom) -> Atom:
        return atom if isinstance(atom, Literal) else self.atoms[atom]

    def passes(self, eqn: Eqn) -> bool:
        """Whether the equation gives its operand, which then stands for the result."""
        passes = eqn.primitive in CASTS
        if passes:
            self.atoms[eqn.outvars[0]] = self.read(eqn.invars[0])
        return passes


def _untyped(eqn: Eqn, env: _Renamed) -> Eqn:
    eqn = with_programs(eqn, without_vma)
    changes: dict[str, Any] = {}
    if eqn.primitive in PLAIN:
        changes = {"primitive": PLAIN[eqn.primitive], "params": eqn.params | {"axis_index_groups": None}}
    elif "check_vma" in eqn.params:
        changes = {"params": eqn.params | {"check_vma": False}}
    invars = [env.read(a) for a in eqn.invars]
    return eqn.replace(invars=invars, outvars=[env.new(v) for v in eqn.outvars], **changes)
