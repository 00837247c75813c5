"""Programs whose types don't tell along which axes values vary: what is compiled."""

from __future__ import annotations

from typing import Any

from polyax.control.inner.programs import with_programs
from polyax.ir.jaxpr import Atom, ClosedJaxpr, Eqn, Jaxpr, Literal, Var
from polyax.ops.collective import psum_invariant_p, psum_p
from polyax.trace.varying import pvary_p
from polyax.transforms.memo import memoize_by_jaxpr


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
        renamed = self.atoms[v] = Var(v.aval.update(vma=frozenset())) if v.aval.vma else v
        return renamed

    def read(self, atom: Atom) -> Atom:
        return atom if isinstance(atom, Literal) else self.atoms[atom]

    def passes(self, eqn: Eqn) -> bool:
        """Whether the equation gives its operand, which then stands for the result."""
        if eqn.primitive is pvary_p:
            self.atoms[eqn.outvars[0]] = self.read(eqn.invars[0])
        return eqn.primitive is pvary_p


def _untyped(eqn: Eqn, env: _Renamed) -> Eqn:
    eqn = with_programs(eqn, without_vma)
    changes: dict[str, Any] = {}
    if eqn.primitive is psum_invariant_p:
        changes = {"primitive": psum_p, "params": eqn.params | {"axis_index_groups": None}}
    elif "check_vma" in eqn.params:
        changes = {"params": eqn.params | {"check_vma": False}}
    invars = [env.read(a) for a in eqn.invars]
    return eqn.replace(invars=invars, outvars=[env.new(v) for v in eqn.outvars], **changes)
