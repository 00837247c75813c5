"""One program with its own variables for each place where it runs: what calls dissolve into is put in their place,
and so are decompositions of what nobody can cut as it is. Loops, branches and regions keep programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polyax.control.calls.custom_jvp import custom_jvp_call_p
from polyax.control.calls.custom_vjp import custom_vjp_call_p
from polyax.control.calls.custom_vmap import custom_vmap_p
from polyax.control.calls.jit import pjit_p
from polyax.control.calls.linear_call import linear_call_p
from polyax.control.calls.rematopt import remat_opt_p
from polyax.control.decomposition import decomposition
from polyax.control.inspection import inspect_sharding_p
from polyax.control.spmd import manual, shard_map_p
from polyax.ir.jaxpr import Atom, ClosedJaxpr, Eqn, Jaxpr, Literal, Var, sub_jaxprs
from polyax.ir.primitive import Primitive
from polyax.meshes.axes import Axes

CALLS: dict[Primitive, str] = {
    pjit_p: "jaxpr",
    custom_jvp_call_p: "call_jaxpr",
    custom_vjp_call_p: "call_jaxpr",
    custom_vmap_p: "call_jaxpr",
    linear_call_p: "callee",
    remat_opt_p: "forward",
}
"""Primitives that stand for a call, and the parameter that holds what they call."""


def flat(program: ClosedJaxpr, axes: Axes) -> ClosedJaxpr:
    """``program``, without calls, in variables that no other program has. Regions along these axes stay."""
    return _Flat(axes).of(program)


class _Flat:
    def __init__(self, axes: Axes) -> None:
        self.axes = axes
        self.constvars: list[Var] = []
        self.consts: list[Any] = []
        self.eqns: list[Eqn] = []

    def of(self, program: ClosedJaxpr) -> ClosedJaxpr:
        invars = [Var(a) for a in program.in_avals]
        outs = self.put(program, invars)
        jaxpr = Jaxpr(self.constvars, invars, outs, self.eqns, None, program.jaxpr.debug_name)
        return ClosedJaxpr(jaxpr, self.consts)

    def put(self, program: ClosedJaxpr, args: Sequence[Atom]) -> list[Atom]:
        """Appends its equations, applied to ``args``."""
        jaxpr = program.jaxpr
        env: dict[Var, Atom] = dict(zip(jaxpr.invars, args, strict=True))
        for var, value in zip(jaxpr.constvars, program.consts, strict=True):
            env[var] = new = Var(var.aval)
            self.constvars.append(new)
            self.consts.append(value)

        def read(atom: Atom) -> Atom:
            return atom if isinstance(atom, Literal) else env[atom]

        for eqn in jaxpr.eqns:
            env.update(zip(eqn.outvars, self._eqn(eqn, [read(a) for a in eqn.invars]), strict=True))
        return [read(a) for a in jaxpr.outvars]

    def _eqn(self, eqn: Eqn, args: list[Atom]) -> Sequence[Atom]:
        p = eqn.primitive
        if p in CALLS:
            return self.put(eqn.params[CALLS[p]], args)
        if p.factors is None and p.decompose is not None and not self._stays(eqn):
            return self.put(decomposition(eqn), args)
        outs = [Var(v.aval) for v in eqn.outvars]
        params = {name: self._own(value) for name, value in eqn.params.items()} if sub_jaxprs(eqn) else eqn.params
        self.eqns.append(eqn.replace(invars=args, outvars=outs, params=params))
        return outs

    def _stays(self, eqn: Eqn) -> bool:
        """Whether the partitioner answers it, or it is a region along axes of this mesh; along others, as within
        ``pmap``, all of it runs anywhere."""
        if eqn.primitive is inspect_sharding_p:
            return True
        if eqn.primitive is not shard_map_p:
            return False
        return set(manual(eqn.params["mesh"], eqn.params["manual_axes"])) <= set(self.axes)

    def _own(self, value: Any) -> Any:
        """Programs in parameters, each for itself: two may be the same."""
        if type(value) is tuple:
            return tuple(map(self._own, value))
        return flat(value, self.axes) if isinstance(value, ClosedJaxpr) else value
