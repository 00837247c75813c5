"""Scopes: variables of one program, and what users say of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from polyax.export.bounds import Bounds, KnownFacts, single
from polyax.export.dims import DimExpr, Operation, Term, expression, operation, terms_of, variable
from polyax.export.parsing import Parser
from polyax.ir.source import user_source


@dataclass(frozen=True)
class Constraint:
    """``diff == 0`` if ``equal``, else ``diff >= 0``; ``text`` as the user wrote it."""

    text: str
    diff: DimExpr
    equal: bool


class SymbolicScope:
    """What dimension variables belong to: those of different scopes can't meet, even if they have the same names.

    Args:
      constraints_str: what is known of them: ``e1 >= e2``, ``e1 <= e2``, ``e1 == e2`` as strings. Variables are at
        least 1. Equalities replace their left side, a term with a coefficient, wherever it is met.

    Raises:
      ValueError: a constraint can't be read, or never holds.

    >>> from polyax.export import symbolic_shape
    >>> a, b = symbolic_shape("a, b", scope=SymbolicScope(["a >= b + 2"]))
    >>> a - 1 > b
    True
    """

    def __init__(self, constraints_str: Sequence[str] = ()) -> None:
        if isinstance(constraints_str, str):
            raise ValueError(
                f"The symbolic constraints should be a sequence of strings. Got {constraints_str!r}",
            )
        self.constraints: list[Constraint] = []
        self.rules: dict[Term, tuple[Any, int]] = {}
        """Terms that equalities replace: what ``k`` times the term is, and ``k``."""
        self.implied: list[DimExpr] = []
        """What is never negative because of the constraints: the bounds of their terms."""
        self._bounds: dict[DimExpr, Bounds] = {}
        self._source = user_source()
        for text in constraints_str:
            self._add(text)
        for c in self.constraints[:-1]:  # of which the later ones say more
            self._sharpen(c.diff)

    def _add(self, text: Any) -> None:
        if not isinstance(text, str):
            raise ValueError(f"SymbolicScope constraint must be a string: got {text!r}")
        sign = next((s for s in ("==", ">=", "<=") if s in text), None)
        if sign is None:
            raise ValueError("Constraint parsing error: must contain one of '==' or '>=' or '<='")
        left, right = ([*Parser(part, repr(part), self).shape()] for part in text.split(sign, 1))
        if len(left) != 1 or len(right) != 1:
            raise ValueError(f"Constraint parsing error: one dimension on each side, got {text!r}")
        a, b = (left[0], right[0]) if sign != "<=" else (right[0], left[0])
        self._hold(text, a, b, sign == "==")

    def _hold(self, text: str, a: Any, b: Any, equal: bool) -> None:
        diff = a - b
        if not isinstance(diff, DimExpr):
            if diff < 0 or (equal and diff):
                raise ValueError(f"Unsatisfiable explicit constraint: {text}")
            return
        lower, upper = self.bounds(diff)
        if upper < 0 or (equal and lower > 0):
            raise ValueError(f"Unsatisfiable constraint: {text}")
        if equal:
            self._replace(text, a, b)
        self.constraints.append(Constraint(text, diff, equal))
        self._sharpen(diff)

    def _sharpen(self, diff: DimExpr) -> None:
        """Keeps the bounds of the terms of a constraint, which are integers."""
        for t in diff.terms:
            if t:
                e = expression({t: 1}, self)
                self._within(e, KnownFacts(self).bounds(e))
        self._bounds.clear()

    def _within(self, e: Any, bounds: Bounds) -> None:
        for end, sign in zip(bounds, (1, -1), strict=True):
            if isinstance(e, DimExpr) and math.isfinite(end):
                self.implied.append((e - int(end)) * sign)

    def _replace(self, text: str, a: Any, b: Any) -> None:
        """From now on, the term on the left is what is on the right, and that has its bounds."""
        if len(terms_of(a)) != 1 or not isinstance(a, DimExpr):
            raise ValueError(
                f"Invalid equality constraint: {text}. The left-hand-side must be of the form `term * coefficient`."
            )
        ((t, k),) = a.terms.items()
        if t in self.rules:
            raise NotImplementedError(f"Found multiple equality constraints with the same left-hand-side: {a}")
        self._within(b, self.bounds(a))
        self._bounds.clear()
        if isinstance(b, DimExpr):  # which may be simpler for it
            b = b.evaluate({name: variable(name, self) for name in b.variables()})
        self.rules[t] = b, k
        self._bounds.clear()
        factor = single(t)
        if k == 1 and b == 0 and isinstance(factor, Operation) and factor.name == "mod":  # it is quotient * divisor
            whole = operation("floordiv", factor.left, factor.right, self) * factor.right
            if len(terms_of(whole)) == 1:
                self._hold(f"{whole} == {factor.left}", whole, factor.left, True)

    def bounds(self, e: Any) -> Bounds:
        """What ``e`` is at least and at most, as far as that is found."""
        if not isinstance(e, DimExpr):
            return e, e
        if e not in self._bounds:
            self._bounds[e] = KnownFacts(self).bounds(e)
        return self._bounds[e]

    def check_same(self, other: DimExpr, when: str, mine: str = " ", its: str = "unknown") -> None:
        """Raises ValueError unless ``other`` belongs to this scope."""
        if self is not other.scope:
            raise ValueError(
                f"Invalid mixing of symbolic scopes {when}.\nExpected {mine}scope {self}\n"
                f"and found for '{other}' ({its}) scope {other.scope}\nGive one scope to all: symbolic_shape(..., "
                "scope=SymbolicScope())."
            )

    def __repr__(self) -> str:
        known = "".join(f"\n  {c.text}" for c in self.constraints)
        return f"{id(self)} created at {self._source}{' with constraints:' if known else ''}{known}"
