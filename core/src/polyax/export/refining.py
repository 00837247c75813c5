"""Programs with symbolic dimensions for given values of the variables, and on the devices of a mesh."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from polyax.export.dims import DimExpr, evaluated
from polyax.ir.aval import ShapedArray
from polyax.ir.check import check_jaxpr
from polyax.ir.jaxpr import Atom, ClosedJaxpr, Eqn, Jaxpr, Literal, Var
from polyax.meshes.axes import MeshAxes
from polyax.meshes.sharding import NamedSharding


class Refined:
    """The programs that ``of`` has made, each once. Values in parameters that ``leaf`` knows are replaced."""

    def __init__(self, leaf: Callable[[Any], Any]) -> None:
        self.leaf = leaf
        self.made: dict[int, ClosedJaxpr] = {}

    def of(self, closed: ClosedJaxpr) -> ClosedJaxpr:
        if id(closed) not in self.made:
            self.made[id(closed)] = self._program(closed)
        return self.made[id(closed)]

    def _program(self, closed: ClosedJaxpr) -> ClosedJaxpr:
        jaxpr = closed.jaxpr
        env: dict[Var, Var] = {}

        def new(v: Var) -> Var:
            env[v] = Var(self.aval(v.aval))
            return env[v]

        def read(a: Atom) -> Atom:
            return Literal(a.val, self.aval(a.aval)) if isinstance(a, Literal) else env[a]

        constvars, invars = ([new(v) for v in vs] for vs in (jaxpr.constvars, jaxpr.invars))
        eqns: list[Eqn] = []
        for eqn in jaxpr.eqns:
            ins = [read(a) for a in eqn.invars]
            params = {name: self.value(x) for name, x in eqn.params.items()}
            outs = [new(v) for v in eqn.outvars]
            eqns.append(Eqn(eqn.primitive, ins, outs, params, eqn.effects, eqn.source))
        outvars = [read(a) for a in jaxpr.outvars]
        return ClosedJaxpr(Jaxpr(constvars, invars, outvars, eqns, jaxpr.effects, jaxpr.debug_name), closed.consts)

    def aval(self, aval: ShapedArray) -> ShapedArray:
        return aval.with_shape(tuple([self.leaf(d) for d in aval.shape]), sharding=aval.told)

    def value(self, x: Any) -> Any:
        """A parameter."""
        if isinstance(x, ClosedJaxpr):
            return self.of(x)
        if isinstance(x, ShapedArray):
            return self.aval(x)
        if isinstance(x, tuple):
            values = [self.value(v) for v in x]
            return type(x)(*values) if hasattr(x, "_fields") else self.leaf(x) if not values else _like(x, values)
        if isinstance(x, Mapping):
            return {k: self.value(v) for k, v in x.items()}
        return self.leaf(x)


def _like(x: tuple[Any, ...], values: list[Any]) -> Any:
    """A tuple of these values; ``x`` itself, which may be of a class of its own, if they are the same."""
    return x if all(a is b for a, b in zip(x, values, strict=True)) else tuple(values)


def with_sizes(closed: ClosedJaxpr, env: Mapping[str, Any]) -> ClosedJaxpr:
    """The program for these values of dimension variables."""
    refined = Refined(lambda x: evaluated(x, env) if isinstance(x, DimExpr) else x).of(closed)
    try:
        check_jaxpr(refined.jaxpr)
    except (TypeError, ValueError) as e:
        sizes = ", ".join(f"{name} = {size}" for name, size in env.items())
        raise ValueError(f"the exported program can't be run for {sizes}: {e}") from e
    return refined


def on_mesh(closed: ClosedJaxpr, mesh: MeshAxes) -> ClosedJaxpr:
    """The program with meshes that have the axes of ``mesh`` replaced by it."""

    def leaf(x: Any) -> Any:
        if isinstance(x, NamedSharding) and x.mesh.axes == mesh.axes:
            return NamedSharding(mesh, x.spec)  # type: ignore[arg-type]
        return mesh if isinstance(x, MeshAxes) and x.axes == mesh.axes else x

    return Refined(leaf).of(closed)
