"""Simplification of integer and bool expressions: sums in normal form, ``//`` and ``%`` by constants resolved.

Exact: every rewrite gives the same value on all points where the index arithmetic doesn't overflow. Floats are
touched by identities that hold for all of them alone (``x * 1``). Memoised, iterative, linear in distinct nodes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from polyax_kernels.ir import scalars
from polyax_kernels.ir.expr import BOOL, INT, Expr, Fold, const, make, op, rewrite
from polyax_kernels.ir.intervals import Intervals
from polyax_kernels.ir.kernel import Kernel, Stage, Store, map_store, with_stages, with_stores

Terms = dict[Expr, int]
"""A sum: coefficients of expressions; ``None`` would be the constant, which is kept beside it."""
MAX_TERMS = 32
"""Longer sums aren't index arithmetic: they are left as they stand."""


class Simplifier:
    """``simplifier(x)`` is the simplified ``x``; use one for all expressions of a kernel.

    >>> from polyax_kernels.ir.expr import Axis, consing, index
    >>> with consing():
    ...     i, j = index(Axis(8, "i")), index(Axis(4, "j"))
    ...     Simplifier()((i * 4 + j) // 4), Simplifier()((i * 4 + j) % 4)
    (i, j)
    """

    def __init__(self) -> None:
        self.interval = Intervals()
        self._memo: dict[Expr, Expr] = {}
        self._sums: dict[Expr, tuple[Terms, int]] = {}

    def __call__(self, x: Expr) -> Expr:
        return rewrite(x, self._rule, self._memo)

    def _rule(self, x: Expr) -> Expr | None:
        x = self._simplified(x)
        if x.dtype.kind in "biu":
            least, greatest = self.interval(x)
            if least == greatest and x.kind not in ("load", "fold"):
                return const(least, x.dtype)
        return x

    def _simplified(self, x: Expr) -> Expr:
        if x.kind == "load" and x.attr.masked:
            return self._masked_load(x)
        if x.kind == "cast":
            return self._cast(x)
        if x.kind == "fold":
            return self._fold(x)
        if x.kind != "op":
            return x
        if x.dtype.kind in "biu" and all(a.kind == "const" and a.dtype.kind in "biu" for a in x.args):
            return const(scalars.evaluate(x.attr, *(a.dtype.type(a.attr) for a in x.args)).item(), x.dtype)
        if x.dtype == INT and x.attr in ("add", "sub", "mul", "neg"):
            return self._linear(x)
        rule = _RULES.get(x.attr)
        simpler = None if rule is None else rule(self, x)
        return x if simpler is None else simpler

    def _masked_load(self, x: Expr) -> Expr:
        indices, (mask, other) = x.args[:-2], x.args[-2:]
        if mask.kind != "const":
            return x
        return make("load", x.dtype, indices, type(x.attr)(x.attr.slot)) if mask.attr else other

    def _fold(self, x: Expr) -> Expr:
        """Over nothing it is its start; axes of one point are no loops (their index is 0 in the body already)."""
        fold, half = x.attr, len(x.args) // 2
        if any(axis.extent == 0 for axis in fold.axes):
            return x.args[fold.which]
        axes = tuple(axis for axis in fold.axes if axis.extent != 1)
        if axes == fold.axes or (not axes and half > 1):
            return x
        if not axes:
            return op(fold.combine, *x.args)
        return make("fold", x.dtype, x.args, Fold(fold.combine, axes, fold.which))

    def _cast(self, x: Expr) -> Expr:
        """A cast back of an integer that fitted is the integer."""
        inner = x.args[0]
        if inner.kind == "const" and inner.dtype.kind in "biu" and x.dtype.kind in "biu":
            return const(scalars.cast(inner.dtype.type(inner.attr), x.dtype).item(), x.dtype)
        integers = x.dtype.kind in "iu" and inner.dtype.kind in "biu"  # what goes through a float is rounded
        if inner.kind == "cast" and inner.args[0].dtype == x.dtype and integers:
            return inner.args[0] if self.interval(inner) == self.interval(inner.args[0]) else x
        return x

    # --- sums ---

    def sum(self, x: Expr) -> tuple[Terms, int]:
        """``x`` as a sum of multiples of other expressions, and a constant."""
        if x.kind == "const":
            return {}, x.attr
        return self._sums.get(x) or ({x: 1}, 0)

    def _linear(self, x: Expr) -> Expr:
        sums = [self.sum(a) for a in x.args]
        if x.attr == "mul":
            factor = next((n for n, a in enumerate(x.args) if a.kind == "const"), None)
            if factor is None:
                return x
            return self.affine(x.args[1 - factor], x.args[factor].attr)
        sign = 1 if x.attr == "add" else -1
        first = ({}, 0) if x.attr == "neg" else sums[0]
        terms, constant = dict(first[0]), first[1] + sign * sums[-1][1]
        for atom, n in sums[-1][0].items():
            terms[atom] = terms.get(atom, 0) + sign * n
        return self.build(terms, constant) if len(terms) <= MAX_TERMS else x

    def affine(self, x: Expr, factor: int, shift: int = 0) -> Expr:
        terms, constant = self.sum(x)
        return self.build({a: n * factor for a, n in terms.items()}, constant * factor + shift)

    def build(self, terms: Terms, constant: int) -> Expr:
        """The expression of a sum; it is remembered, so that sums of sums stay flat."""
        terms, constant = self._rejoined(terms, constant)
        total: Expr | None = None
        for atom, n in terms.items():
            term = atom if n == 1 else atom * n
            total = term if total is None else total + term
        if total is None:
            return const(constant)
        total = total + constant if constant else total
        self._sums[total] = terms, constant
        return total

    def _rejoined(self, terms: Terms, constant: int) -> tuple[Terms, int]:
        """``x // c * c + x % c`` is ``x``; terms that cancel are dropped."""
        for low, n in list(terms.items()):
            if low.kind == "op" and low.attr == "mod" and low.args[1].kind == "const":
                x, c = low.args
                high = make("op", INT, (x, c), "floordiv")
                if n and terms.get(high) == n * c.attr:
                    terms = {a: k for a, k in terms.items() if a is not low and a is not high}
                    parts, shift = self.sum(x)
                    constant += n * shift
                    for atom, k in parts.items():
                        terms[atom] = terms.get(atom, 0) + n * k
        return {a: n for a, n in terms.items() if n}, constant

    def divided(self, x: Expr, c: int) -> tuple[Expr, Expr]:
        """``x`` as ``c * quotient + rest``, with the multiples of ``c`` taken out of the rest."""
        terms, constant = self.sum(x)
        quotient = self.build({a: n // c for a, n in terms.items() if n % c == 0}, constant // c)
        return quotient, self.build({a: n for a, n in terms.items() if n % c}, constant % c)

    def split(self, x: Expr, c: int) -> tuple[int, Expr, Expr] | None:
        """``x`` as ``g * high + low`` with a common divisor g of c and 0 <= low < g, if there is one."""
        terms, constant = self.sum(x)
        for g in sorted({math.gcd(n, c) for n in terms.values()} - {1}, reverse=True):
            low = self.build({a: n for a, n in terms.items() if n % g}, constant % g)
            least, greatest = self.interval(low)
            if least >= 0 and greatest < g:
                return g, self.build({a: n // g for a, n in terms.items() if n % g == 0}, constant // g), low
        return None

    def floordiv(self, x: Expr, c: int) -> Expr:
        quotient, rest = self.divided(x, c)
        least, greatest = self.interval(rest)
        if least // c == greatest // c:
            return self.affine(quotient, 1, least // c)
        return self.plus(quotient, self._floordiv_rest(rest, c))

    def _floordiv_rest(self, x: Expr, c: int) -> Expr:
        parts = self.split(x, c)
        if parts is not None:
            g, high, _ = parts
            return self.floordiv(high, c // g)
        if (inner := _divisor(x, "floordiv")) > 0:
            return self.floordiv(x.args[0], c * inner)
        if _is_mod_of_multiple(x, c):
            return self.mod(self.floordiv(x.args[0], c), x.args[1].attr // c)
        return op("floordiv", x, const(c))

    def mod(self, x: Expr, c: int) -> Expr:
        _, rest = self.divided(x, c)
        least, greatest = self.interval(rest)
        if least // c == greatest // c:
            return self.affine(rest, 1, -(least // c) * c)
        parts = self.split(rest, c)
        if parts is not None:
            g, high, low = parts
            return self.plus(self.affine(self.mod(high, c // g), g), low)
        return self.mod(rest.args[0], c) if _is_mod_of_multiple(rest, c) else op("mod", rest, const(c))

    def plus(self, x: Expr, y: Expr) -> Expr:
        return self._linear(x + y)


def _is(x: Expr, value: int) -> bool:
    return x.kind == "const" and x.attr == value


def _divisor(x: Expr, by: str) -> int:
    """The constant that ``x`` is divided by; 0 if there is none, or it is 0: so are sizes of axes without elements."""
    return x.args[1].attr if x.kind == "op" and x.attr == by and x.args[1].kind == "const" else 0


def _is_mod_of_multiple(x: Expr, c: int) -> bool:
    divisor = _divisor(x, "mod")
    return divisor > 0 and divisor % c == 0


def _by_constant(method: Callable[[Simplifier, Expr, int], Expr]) -> Callable[[Simplifier, Expr], Expr | None]:
    def rule(self: Simplifier, x: Expr) -> Expr | None:
        divisor = x.args[1]
        return (
            method(self, x.args[0], divisor.attr)
            if x.dtype == INT and divisor.kind == "const" and divisor.attr > 0
            else None
        )

    return rule


def _select(self: Simplifier, x: Expr) -> Expr | None:
    condition, yes, no = x.args
    if condition.kind == "const":
        return yes if condition.attr else no
    return yes if yes is no else None


def _and(self: Simplifier, x: Expr) -> Expr | None:
    a, b = x.args
    if x.dtype == BOOL and (_is(a, 1) or _is(b, 1)):
        return b if _is(a, 1) else a
    return a if a is b else None


def _or(self: Simplifier, x: Expr) -> Expr | None:
    a, b = x.args
    if _is(a, 0) or _is(b, 0):
        return b if _is(a, 0) else a
    return a if a is b else None


def _extremum(self: Simplifier, x: Expr) -> Expr | None:
    """The one of two integers whose interval lies above the other's, or below."""
    if x.dtype.kind not in "biu":
        return None
    a, b = x.args
    upper = (
        a if self.interval(a)[0] >= self.interval(b)[1] else b if self.interval(b)[0] >= self.interval(a)[1] else None
    )
    if upper is None or x.attr == "max":
        return upper
    return b if upper is a else a


def _clamp(self: Simplifier, x: Expr) -> Expr | None:
    low, y, high = x.args
    if x.dtype.kind in "biu" and self.interval(low)[1] <= self.interval(y)[0]:
        return y if self.interval(y)[1] <= self.interval(high)[0] else None
    return None


def _times_one(self: Simplifier, x: Expr) -> Expr | None:
    return x.args[0] if _is(x.args[1], 1) else x.args[1] if x.attr == "mul" and _is(x.args[0], 1) else None


_RULES: dict[str, Callable[[Simplifier, Expr], Expr | None]] = {
    "floordiv": _by_constant(Simplifier.floordiv),
    "mod": _by_constant(Simplifier.mod),
    "select": _select,
    "and": _and,
    "or": _or,
    "max": _extremum,
    "min": _extremum,
    "clamp": _clamp,
    "mul": _times_one,
    "div": _times_one,
}


def simplify(kernel: Kernel) -> Kernel:
    """``kernel`` with simplified expressions; stores that never happen are dropped."""
    simplifier = Simplifier()
    stages = [with_stores(s, tuple(_stores(s, simplifier))) for s in kernel.stages]
    return with_stages(kernel, tuple([stage for stage in stages if stage.stores]))


def _stores(stage: Stage, simplifier: Simplifier) -> list[Store]:
    stores = [map_store(store, simplifier) for store in stage.stores]
    always = [replace(s, mask=None) if s.mask is not None and _is(s.mask, 1) else s for s in stores]
    return [s for s in always if s.mask is None or not _is(s.mask, 0)]
