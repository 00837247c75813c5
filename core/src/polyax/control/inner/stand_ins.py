"""Programs in which other values stand for those of certain types, as words do for random keys.

A rewrite says for which values, of which type their stand-ins are, and what becomes of equations.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from polyax.ir.aval import ShapedArray
from polyax.ir.jaxpr import Atom, ClosedJaxpr, Eqn, Jaxpr, Literal, Var


class StandIns(ABC):
    """What stands for the variables of one program, and its equations so far."""

    def __init__(self) -> None:
        self.env: dict[Var, Atom] = {}
        self.eqns: list[Eqn] = []

    @abstractmethod
    def concerns(self, atom: Atom) -> bool:
        """Whether another value is to stand for it."""

    @abstractmethod
    def type_of(self, aval: ShapedArray) -> ShapedArray:
        """That of what stands for a value of this type."""

    @abstractmethod
    def put(self, eqn: Eqn) -> bool:
        """Appends what stands for the equation; whether that is the equation itself."""

    def literal(self, atom: Literal) -> Literal:
        """What stands for one that is concerned."""
        return atom

    def const(self, value: Any) -> Any:
        """What stands for the value of a constant that is concerned."""
        return value

    def of(self, program: ClosedJaxpr) -> ClosedJaxpr:
        """The program on stand-ins; itself, if it concerns none of its values."""
        jaxpr = program.jaxpr
        constvars, invars = ([self.new(v) for v in vs] for vs in (jaxpr.constvars, jaxpr.invars))
        unchanged = [self.put(eqn) for eqn in jaxpr.eqns]
        if all(unchanged) and not self.env and not any(map(self.concerns, jaxpr.outvars)):
            return program
        outs = [self.read(a) for a in jaxpr.outvars]
        consts = [
            self.const(c) if self.concerns(v) else c for v, c in zip(jaxpr.constvars, program.consts, strict=True)
        ]
        return ClosedJaxpr(Jaxpr(constvars, invars, outs, self.eqns, jaxpr.effects, jaxpr.debug_name), consts)

    def new(self, v: Var) -> Var:
        """What stands for a variable from here on; itself, if it isn't concerned."""
        if not self.concerns(v):
            return v
        self.env[v] = new = Var(self.type_of(v.aval))
        return new

    def read(self, atom: Atom) -> Atom:
        if isinstance(atom, Literal):
            return self.literal(atom) if self.concerns(atom) else atom
        return self.env.get(atom, atom)

    def append(self, eqn: Eqn) -> Eqn:
        """An equation on what stands for its operands: itself, if these stand for themselves."""
        atoms = [self.read(a) for a in eqn.invars]
        same = all(a is b for a, b in zip(atoms, eqn.invars, strict=True))
        self.eqns.append(eqn if same else eqn.replace(invars=atoms))
        return self.eqns[-1]

    def put_program(self, eqn: Eqn, made: ClosedJaxpr, operands: Sequence[Atom]) -> None:
        """Appends the equations of a program of ``operands``, whose results are those of ``eqn``."""
        jaxpr = made.jaxpr
        self.env.update(zip(jaxpr.invars, operands, strict=True))
        self.env.update(zip(jaxpr.constvars, [Literal(c, v.aval) for c, v in zip(made.consts, jaxpr.constvars)]))
        for inner in made.eqns:
            self.append(inner)
        self.env.update(zip(eqn.outvars, map(self.read, jaxpr.outvars), strict=True))
