"""What becomes of a result: along which dimensions its only reader folds it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from polyax.ir.jaxpr import Eqn, Jaxpr, Var

FOLDS = frozenset(("reduce_sum", "reduce_prod", "reduce_max", "reduce_min", "reduce_and", "reduce_or", "reduce_xor"))
CONVERTS = "convert_element_type"
Readers = Mapping[Var, Sequence[Eqn | None]]


def readers_of(jaxpr: Jaxpr) -> dict[Var, list[Eqn | None]]:
    """The equations that read each variable; None for the end of the program."""
    found: dict[Var, list[Eqn | None]] = {}
    for eqn in (*jaxpr.eqns, None):
        for atom in jaxpr.outvars if eqn is None else eqn.invars:
            if isinstance(atom, Var):
                found.setdefault(atom, []).append(eqn)
    return found


def folded_by(readers: Callable[[], Readers], var: Var) -> Sequence[int]:
    """The dimensions along which all of ``var`` is folded before anything else is done with it; none, if several
    equations read it."""
    known = readers()
    while len(eqns := known.get(var, ())) == 1 and (eqn := eqns[0]) is not None:
        if eqn.primitive.name in FOLDS:
            return eqn.params["axes"]
        if eqn.primitive.name != CONVERTS:
            break
        (var,) = eqn.outvars
    return ()
