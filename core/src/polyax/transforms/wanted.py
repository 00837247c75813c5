"""Words for arguments: where ``vjp``'s pullback is told to leave cotangents, what it gives, and what it keeps."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

from polyax.ir.jaxpr import Eqn, Jaxpr, Var
from polyax.ir.refs import touches_refs
from polyax.trace.register import register_pytree_node


class _Mark:
    """A word that stands for an argument."""

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class GradValue(_Mark):
    """The cotangent is wanted as a value: the default."""


class GradRef(_Mark):
    """The cotangent was added to the reference that was given for it."""


class DontWant(_Mark):
    """The cotangent isn't wanted."""


class DidntWant(_Mark):
    """There is none, as none was wanted."""


class NotNeeded(_Mark):
    """The backward pass needs no value of the argument."""


for _kind in (GradRef, DidntWant, NotNeeded):
    register_pytree_node(_kind, lambda _: ((), None), lambda *_, kind=_kind: kind())

ad = SimpleNamespace(DontWant=DontWant, DidntWant=DidntWant, GradRef=GradRef, GradValue=GradValue)


def reached_from(jaxpr: Jaxpr, wanted: Sequence[bool]) -> Jaxpr:
    """A linear program without the equations that depend on inputs, but on none that is wanted: nobody needs their
    cotangents. Where references are written to, all may be needed."""
    if all(wanted) or touches_refs(jaxpr.effects):
        return jaxpr
    linear = {*jaxpr.invars}
    reached = {v for v, w in zip(jaxpr.invars, wanted, strict=True) if w}
    eqns: list[Eqn] = []
    for eqn in jaxpr.eqns:
        depends = not linear.isdisjoint(eqn.invars)
        needed = not reached.isdisjoint(eqn.invars)
        linear.update(eqn.outvars if depends else ())
        reached.update(eqn.outvars if needed else ())
        if needed or not depends:
            eqns.append(eqn)
    return jaxpr.replace(eqns=eqns)


def is_overwritten(jaxpr: Jaxpr, ref: Var) -> bool:
    """Whether something is written in place of what a reference holds: then what its gradient is added to may not hold
    anything while the program runs backwards."""
    return any(e.primitive.name == "swap" and e.invars[0] is ref for e in jaxpr.eqns)
