"""Which axes of a mesh each factor of an operation gets, and so how its operands and results are cut.

A dimension of several factors is cut along its outer ones first: an inner factor only where the outer ones are cut up
to single elements, or blocks would have holes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from polyax.ir.aval import ShapedArray
from polyax.ir.jaxpr import Eqn
from polyax.ir.lazy import lazy
from polyax.meshes.factors import Dim, Dims, Factors, factors
from polyax.meshes.spec import Cuts, uncut
from polyax.ops.collective import pmax_p, pmin_p, psum_p
from polyax.ops.permuting import ppermute_p

Names = tuple[Any, ...]
Sizes = Mapping[Any, int]
Shares = Mapping[int, Names]
"""For each factor the axes that cut it, outermost first."""


def blocks_along(names: Names, sizes: Sizes) -> int:
    """Into how many blocks axes cut."""
    return math.prod([sizes[a] for a in names])


PLACEWISE = frozenset({psum_p, pmax_p, pmin_p, ppermute_p})
"""Collectives of what is at one place in the blocks: along axes that aren't theirs, blocks may be cut further."""


def _placewise(*avals: ShapedArray, **_: Any) -> Factors:
    dims = [range(a.ndim) for a in avals]
    return factors(dims, dims)


class Rule:
    """What the rule ``factors`` says of an equation, and what follows."""

    def __init__(self, found: Factors, ins: Sequence[ShapedArray], outs: Sequence[ShapedArray]) -> None:
        self.found = found
        self.dims: tuple[Dims, ...] = (*found.ins, *found.outs)
        self.avals = (*ins, *outs)
        self.num_ins = len(ins)
        self._shared: dict[Any, Shares] = {}

    @staticmethod
    def of(eqn: Eqn) -> Rule | None:
        rule = eqn.primitive.factors or (_placewise if eqn.primitive in PLACEWISE else None)
        if rule is None:
            return None
        ins, outs = tuple([a.aval for a in eqn.invars]), tuple([v.aval for v in eqn.outvars])
        try:
            return _rule(rule, ins, outs, tuple(eqn.params.items()))
        except TypeError:  # a parameter without a hash
            return _rule.__wrapped__(rule, ins, outs, tuple(eqn.params.items()))

    @lazy
    def sizes(self) -> dict[int, int]:
        found = dict(self.found.sizes)
        for dims, aval in zip(self.dims, self.avals, strict=True):
            for dim, n in zip(dims, aval.shape, strict=True):
                if len(dim) == 1:
                    found[dim[0]] = max(n, found.get(dim[0], 0))
        return found

    @lazy
    def whole(self) -> frozenset[int]:
        """Factors that nobody cuts: those of which the rule says so, and those that a result lacks for no reason."""
        outs = [{f for dim in dims for f in dim} for dims in self.found.outs]
        lost = {f for f in self.sizes if not all(f in out for out in outs)}
        return self.found.whole | (lost - set(self.found.reduced))

    @lazy
    def compound(self) -> list[Dim]:
        return [dim for dims in self.dims for dim in dims if len(dim) > 1]

    @lazy
    def by_size(self) -> list[int]:
        """Operands and results, the largest first."""
        return sorted(range(len(self.avals)), key=lambda n: -self.avals[n].nbytes)

    def share(self, given: Sequence[tuple[int, Cuts]], sizes: Sizes, carried: bool = False) -> Shares:
        """Axes for factors, from cuts of some operands and results by number; where these differ the first counts.

        ``carried``: also for those along which values are no more than cut alike.
        """
        key = tuple(given), tuple(sizes.items()), carried
        if key not in self._shared:
            self._shared[key] = self._share(given, sizes, self.whole - self.found.carried if carried else self.whole)
        return self._shared[key]

    def _share(self, given: Iterable[tuple[int, Cuts]], sizes: Sizes, whole: frozenset[int]) -> Shares:
        shares: dict[int, Names] = {}
        taken: set[Any] = set()
        for n, cuts in given:
            for dim, extent, names in zip(self.dims[n], self.avals[n].shape, cuts, strict=True):
                for f, own in self._apart(dim, extent, names, sizes) if names else ():
                    have = shares.get(f, ())
                    if f not in whole and own[: len(have)] == have:
                        more = self._fitting(f, have, own[len(have) :], taken, sizes)
                        taken.update(more)
                        shares[f] = have + more
        return self._settled({f: names for f, names in shares.items() if names}, sizes)

    def _apart(self, dim: Dim, extent: int, names: Names, sizes: Sizes) -> list[tuple[int, Names]]:
        """The axes of a dimension, for each of its factors."""
        if len(dim) == 1:
            return [(dim[0], names)] if self.sizes[dim[0]] == extent else []
        found: list[tuple[int, Names]] = []
        for f in dim:
            left, own = self.sizes[f], 0
            while own < len(names) and left > 1 and left % sizes[names[own]] == 0:
                left //= sizes[names[own]]
                own += 1
            found.append((f, names[:own]))
            names = names[own:]
            if left > 1:
                break
        return found

    def _fitting(self, f: int, have: Names, more: Names, taken: set[Any], sizes: Sizes) -> Names:
        """As many of the axes as are free and divide the factor."""
        left = self.sizes[f] // blocks_along(have, sizes)
        for n, a in enumerate(more):
            if a in taken or not left or left % sizes[a]:
                return more[:n]
            left //= sizes[a]
        return more

    def _settled(self, shares: dict[int, Names], sizes: Sizes) -> Shares:
        """Without those of inner factors beside outer ones that aren't cut up."""
        changed = bool(self.compound)
        while changed:
            changed = False
            for dim in self.compound:
                split = False
                for f in dim:
                    if split and shares.pop(f, None):
                        changed = True
                    split = split or blocks_along(shares.get(f, ()), sizes) < self.sizes[f]
        return shares

    def cuts(self, n: int, shares: Shares) -> Cuts:
        """How operand or result number ``n`` is cut then."""
        if not shares:
            return uncut(self.avals[n].ndim)
        pairs = zip(self.dims[n], self.avals[n].shape, strict=True)
        return tuple([self._joined(dim, extent, shares) for dim, extent in pairs])

    def _joined(self, dim: Dim, extent: int, shares: Shares) -> Names:
        if len(dim) == 1:
            return shares.get(dim[0], ()) if self.sizes[dim[0]] == extent else ()
        return tuple([a for f in dim for a in shares.get(f, ())])

    def points(self, shares: Shares, sizes: Sizes) -> float:
        """How many steps each device computes, about: the product of the factors' sizes."""
        total = math.prod(self.sizes.values()) if self.sizes else 1
        return total / math.prod([blocks_along(names, sizes) for names in shares.values()])


@lru_cache(2048)  # in a program the same equations recur
def _rule(
    rule: Any, ins: tuple[ShapedArray, ...], outs: tuple[ShapedArray, ...], params: tuple[tuple[str, Any], ...]
) -> Rule | None:
    found = rule(*ins, **dict(params))
    return None if found is None else Rule(found, ins, outs)
