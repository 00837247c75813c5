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
    for place, eqn in enumerate(program.eqns):
        buckets.add(place, eqn)
    return program.replace(jaxpr=program.jaxpr.replace(eqns=buckets.all()))


class _Bucket:
    """Reductions that can be made together, and equations that wait for them."""

    def __init__(self) -> None:
        self.reductions: list[Eqn] = []
        self.waiting: list[tuple[int, Eqn]] = []
        """With their places in the program. What waits for several buckets is in the one that was opened first."""
        self.made = False


class _Buckets:
    """Equations in their new order, and those that are put off."""

    def __init__(self) -> None:
        self.eqns: list[Eqn] = []
        self.open: dict[Any, _Bucket] = {}
        """By what the reductions have in common: the primitive and its parameters."""
        self.waits: dict[Var, Sequence[_Bucket]] = {}
        """For what values that are put off wait, or waited; in the order in which these were opened."""

    def add(self, place: int, eqn: Eqn) -> None:
        reduces = eqn.primitive in REDUCTIONS
        if reduces or eqn.effects:
            while waits := self._waits_for(eqn):
                self._make(waits[0])
        if reduces:
            bucket = self.open.setdefault((eqn.primitive, tuple(eqn.params.items())), _Bucket())
            bucket.reductions.append(eqn)
            self.waits.update(dict.fromkeys(eqn.outvars, (bucket,)))
        else:
            self._put(place, eqn)

    def all(self) -> list[Eqn]:
        while self.open:
            self._make(next(iter(self.open.values())))
        return self.eqns

    def _waits_for(self, eqn: Eqn) -> Sequence[_Bucket]:
        found = {b for v in eqn.invars if type(v) is Var for b in self.waits.get(v, ()) if not b.made}
        return [b for b in self.open.values() if b in found] if found else ()

    def _put(self, place: int, eqn: Eqn) -> None:
        waits = self._waits_for(eqn)
        if waits:
            waits[0].waiting.append((place, eqn))
            self.waits.update(dict.fromkeys(eqn.outvars, waits))
        else:
            self.eqns.append(eqn)

    def _make(self, bucket: _Bucket) -> None:
        """Makes its reductions, and then what waits for no others."""
        bucket.made = True
        self.open = {key: b for key, b in self.open.items() if b is not bucket}
        self.eqns.append(_one(bucket.reductions))
        for place, eqn in sorted(bucket.waiting, key=lambda found: found[0]):
            self._put(place, eqn)


def _one(some: Sequence[Eqn]) -> Eqn:
    invars = [v for eqn in some for v in eqn.invars]
    return some[-1].replace(invars=invars, outvars=[v for eqn in some for v in eqn.outvars])
