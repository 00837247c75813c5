"""Reductions that don't wait for each other, made in one exchange.

To begin an exchange costs more than to send a few bytes: the gradients of all weights go together. A reduction, and
what depends on it, is put off until another reduction or an effect needs it; nothing else changes its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polyax.ir.jaxpr import ClosedJaxpr, Eqn, Var
from polyax.ops.collective import pmax_p, pmin_p, psum_p
from polyax.transforms.memo import memoize_by_jaxpr

REDUCTIONS = frozenset({psum_p, pmax_p, pmin_p})
"""Which take any number of operands."""


@memoize_by_jaxpr
def together(program: ClosedJaxpr) -> ClosedJaxpr:
    """``program`` with fewer exchanges, each of more reductions; programs that its equations hold stay as they are."""
    if sum(e.primitive in REDUCTIONS for e in program.eqns) < 2:
        return program
    buckets = _Buckets()
    for eqn in program.eqns:
        buckets.add(eqn)
    return program.replace(jaxpr=program.jaxpr.replace(eqns=buckets.all()))


Key = Any
"""What reductions have in common that can be made together: the primitive and its parameters."""


class _Buckets:
    """Equations in their new order, and those that are put off: reductions by their keys, and what depends on them."""

    def __init__(self) -> None:
        self.eqns: list[Eqn] = []
        self.open: dict[Key, list[Eqn]] = {}
        self.later: list[Eqn] = []
        self.waits: dict[Var, frozenset[Key]] = {}
        """Of values that are put off, for which reductions."""

    def add(self, eqn: Eqn) -> None:
        reduces = eqn.primitive in REDUCTIONS
        if reduces or eqn.effects:
            for key in self._waits_for(eqn):
                self._close(key)
        if waits := self._waits_for(eqn):
            self.later.append(eqn)
        elif reduces:
            key = eqn.primitive, tuple(eqn.params.items())
            self.open.setdefault(key, []).append(eqn)
            waits = frozenset({key})
        else:
            self.eqns.append(eqn)
        if waits:
            self.waits.update(dict.fromkeys(eqn.outvars, waits))

    def all(self) -> list[Eqn]:
        for key in [*self.open]:
            self._close(key)
        return self.eqns

    def _waits_for(self, eqn: Eqn) -> frozenset[Key]:
        return frozenset[Key]().union(*[self.waits.get(v, ()) for v in eqn.invars if type(v) is Var])

    def _close(self, key: Key) -> None:
        """Makes the reductions, and then what waited for no others."""
        made = [_one(self.open.pop(key))]
        still: list[Eqn] = []
        for v in made[0].outvars:
            del self.waits[v]
        for eqn in self.later:
            waits = self._waits_for(eqn)
            (still if waits else made).append(eqn)
            for v in eqn.outvars:
                self.waits[v] = waits
        self.eqns += made
        self.later = still


def _one(some: Sequence[Eqn]) -> Eqn:
    invars = [v for eqn in some for v in eqn.invars]
    return some[-1].replace(invars=invars, outvars=[v for eqn in some for v in eqn.outvars])
