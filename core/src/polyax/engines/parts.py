"""Programs in parts: those that an engine takes, and those that stay on the host.

Must not know any engine: it says equation by equation what it takes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from polyax.ir.blame import expected_reason
from polyax.ir.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var

Claims = Callable[[Eqn], str | None]
"""None for an equation that an engine takes, else the reason why it doesn't."""


@dataclass(frozen=True)
class ProgramPart:
    """A part of a program: all of it is taken by the engine, or nothing."""

    program: ClosedJaxpr
    """It has no constants, and takes and gives variables of the whole program."""
    taken: bool
    dropped: Sequence[Var]
    """What no later part reads, nor the result."""
    reasons: Mapping[str, str]
    """Primitives that the engine doesn't take, and why."""


def partition(closed: ClosedJaxpr, claims: Claims) -> list[ProgramPart]:
    """``closed`` in parts that run one after the other, as few as its values allow: of any two that follow each other
    one is taken and one isn't. Equations with effects stay in order.

    Args:
      claims: None for an equation that is taken, else the reason why it isn't.

    Raises:
      PluginError: ``claims`` gives something else.

    >>> from polyax import make_jaxpr, numpy as jnp
    >>> program = make_jaxpr(lambda x, y: jnp.sin(x) * 2 + jnp.cos(y))(1.0, 2.0)
    >>> parts = partition(program, lambda e: "it has no sine" if e.primitive.name == "sin" else None)
    >>> [(part.taken, [e.primitive.name for e in part.program.eqns]) for part in parts]
    [(True, ['cos']), (False, ['sin']), (True, ['mul', 'add'])]
    """
    stages, reasons = _stages(closed.jaxpr, claims)
    wanted = {v for v in closed.jaxpr.outvars if isinstance(v, Var)}
    parts: list[ProgramPart] = []
    for n, eqns in reversed(list(enumerate(stages))):
        if eqns:
            program = _part(eqns, wanted, closed.jaxpr.debug_name)
            dropped = [v for v in program.invars if v not in wanted]
            wanted.update(program.invars)
            found = {e.primitive.name: r for e in eqns if (r := reasons.get(id(e)))}
            parts.append(ProgramPart(program, n % 2 == 0, dropped, found))
    return parts[::-1]


def _part(eqns: Sequence[Eqn], wanted: Collection[Var], name: str) -> ClosedJaxpr:
    """The program of ``eqns`` that gives of their results what is wanted."""
    made = list(dict.fromkeys(v for e in eqns for v in e.outvars))
    own = set(made)
    ins, outs = [v for v in _read(eqns) if v not in own], [v for v in made if v in wanted]
    return ClosedJaxpr(Jaxpr([], ins, outs, eqns, None, name), [])


def _read(eqns: Iterable[Eqn]) -> list[Var]:
    return list(dict.fromkeys(v for e in eqns for v in e.invars if isinstance(v, Var)))


def _stages(jaxpr: Jaxpr, claims: Claims) -> tuple[list[list[Eqn]], dict[int, str]]:
    """Equations by stages, the even ones taken: each in the first that comes after what it reads."""
    stages: list[list[Eqn]] = [[]]
    where: dict[Var, int] = {}
    reasons: dict[int, str] = {}
    after = 0  # the last effect
    for eqn in jaxpr.eqns:
        reason = expected_reason(claims(eqn), eqn, "claims gave")
        if reason is not None:
            reasons[id(eqn)] = reason
        first = max([where.get(v, 0) for v in _read([eqn])], default=0)
        first = max(first, after) if eqn.effects else first
        stage = first + (first % 2 != (reason is not None))
        stages.extend([] for _ in range(stage + 1 - len(stages)))
        stages[stage].append(eqn)
        where.update(dict.fromkeys(eqn.outvars, stage))
        after = stage if eqn.effects else after
    return stages, reasons
