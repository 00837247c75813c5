"""What can be told of the size of an expression: bounds derived from what is known of its terms.

A fact is an expression that is never negative. The largest term of an expression is eliminated with each fact that has
it, until a constant is left. Terms of ``max`` and ``min`` are either of their operands, whichever is worse.
"""

from __future__ import annotations

import math
from typing import Any

from polyax.export.dims import DimExpr, Factor, Operation, Term, combined, expression, inconclusive, terms_of

Bounds = tuple[float, float]
INF = math.inf


class KnownFacts:
    """What is known of the terms of some expressions: the scope's constraints, and what operations imply."""

    def __init__(self, scope: Any) -> None:
        self.scope = scope
        self.facts: dict[Any, DimExpr] = {}
        """By all but their constants: of two that differ in them, the sharper one."""
        self.seen: set[Term] = set()
        for constraint in scope.constraints:
            self.about(constraint.diff)
            self.hold(constraint.diff)
            if constraint.equal:
                self.hold(-constraint.diff)
        for e in scope.implied:
            self.about(e)
            self.hold(e)

    def bounds(self, e: Any) -> Bounds:
        if not isinstance(e, DimExpr):
            return e, e
        self.about(e)
        return self._lower(e, ()), -self._lower(-e, ())

    def hold(self, e: Any) -> None:
        """Adds ``e >= 0``, as sharp as integers make it: ``2*a - 5 >= 0`` is ``a - 3 >= 0``."""
        if not isinstance(e, DimExpr):
            return
        by = math.gcd(*(k for t, k in e.terms.items() if t))
        if by > 1:
            e = expression({t: k // by for t, k in e.terms.items()}, self.scope)
        if not isinstance(e, DimExpr):
            return
        key = tuple([pair for pair in e.terms.items() if pair[0]])
        if key not in self.facts or _constant(e) < _constant(self.facts[key]):
            self.facts[key] = e

    def _lower(self, e: Any, used: tuple[Any, ...]) -> float:
        """The largest lower bound that is found; each fact is used once on the way."""
        if not isinstance(e, DimExpr):
            return e
        t, k = e.leading
        best = self._by_cases(e, t, k, used)
        for key, fact in [*self.facts.items()]:
            c = fact.terms.get(t, 0)
            if c * k <= 0 or key in used:
                continue
            rest = combined(e, abs(c), fact, -abs(k), self.scope)
            found = self._lower(rest, (*used, key))
            best = max(best, math.ceil(found / abs(c)) if math.isfinite(found) else found)
        return best

    def _by_cases(self, e: DimExpr, t: Term, k: int, used: tuple[Any, ...]) -> float:
        factor = single(t)
        if not isinstance(factor, Operation) or factor.name not in ("max", "min"):
            return -INF
        rest = combined(e, 1, expression({t: k}, self.scope), -1, self.scope)
        sides = [combined(rest, 1, side, k, self.scope) for side in factor[1:]]
        for side in sides:
            self.about(side)
        return min(self._lower(side, used) for side in sides)

    # --- what terms imply

    def about(self, e: Any) -> None:
        """Finds out what is known of the terms of ``e``."""
        for t in terms_of(e):
            if t and t not in self.seen:
                self.seen.add(t)
                self._about_term(t)

    def _about_term(self, t: Term) -> None:
        whole = expression({t: 1}, self.scope)
        factor = single(t)
        if factor is None:
            self._about_product(t, whole)
        elif isinstance(factor, str):
            self.hold(whole - 1)
        else:
            for operand in factor[1:]:
                self.about(operand)
            getattr(self, f"_about_{factor.name}")(whole, *factor[1:])

    def _about_product(self, t: Term, whole: Any) -> None:
        lowest, highest = 1.0, 1.0
        for f, n in t:
            lower, upper = self.bounds(expression({((f, 1),): 1}, self.scope))
            corners = [_times(a, b**n) for a in (lowest, highest) for b in (lower, upper)]
            lowest, highest = min(corners), max(corners)
        self._within(whole, lowest, highest)

    def _within(self, e: Any, lower: float, upper: float) -> None:
        if math.isfinite(lower):
            self.hold(e - int(lower))
        if math.isfinite(upper):
            self.hold(int(upper) - e)

    def _about_mod(self, whole: Any, a: Any, b: Any) -> None:
        lower, upper = self.bounds(b)
        if lower > 0:
            self.hold(whole)
            self.hold(b - 1 - whole)
        elif upper < 0:
            self.hold(-whole)
            self.hold(whole - b - 1)

    def _about_floordiv(self, whole: Any, a: Any, b: Any) -> None:
        ends = self.bounds(b)
        if ends[0] <= 0 <= ends[1]:
            raise inconclusive(f"Possible division by 0 in division by {b}")
        sign = 1 if ends[0] > 0 else -1
        self.hold((a - b * whole) * sign)
        self.hold((b * whole + b - a) * sign - 1)
        self.about(b * whole)
        corners = [_quotient(x, y) for x in self.bounds(a) for y in ends]
        self._within(whole, min(corners), max(corners))

    def _about_max(self, whole: Any, a: Any, b: Any) -> None:
        self.hold(whole - a)
        self.hold(whole - b)

    def _about_min(self, whole: Any, a: Any, b: Any) -> None:
        self.hold(a - whole)
        self.hold(b - whole)


def single(t: Term) -> Factor | None:
    """The factor that a term consists of, if it is one."""
    return t[0][0] if len(t) == 1 and t[0][1] == 1 else None


def _constant(e: DimExpr) -> int:
    return e.terms.get((), 0)


def _quotient(a: float, b: float) -> float:
    """What ``a // b`` comes close to."""
    if math.isfinite(a):
        return a // b if math.isfinite(b) else -1 if a and (a > 0) != (b > 0) else 0
    return INF if (a > 0) == (b > 0) else -INF


def _times(a: float, b: float) -> float:
    return 0 if not a or not b else a * b
