"""Symbolic dimensions: polynomials of dimension variables with integer coefficients, in a normal form.

An expression is a sum of terms with coefficients, a term a product of factors with exponents, a factor a variable or
one of ``floordiv mod max min`` of two expressions. All are sorted, the largest first, so that equal ones look the same.
What is known of the variables is their scope's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from operator import index
from typing import Any, NamedTuple

from polyax.export.sizes import dim_as_value
from polyax.ir.dims import SymbolicDim, max_dim, min_dim
from polyax.ir.errors import InconclusiveDimensionOperation
from polyax.trace.tracer import Tracer

HELP = """
This error arises for comparison operations with shapes that
are non-constant, and the result of the operation cannot be represented as
a boolean value for all values of the symbolic dimensions involved.
"""


class Operation(NamedTuple):
    """``mod(a, 2)`` and the like, as a factor."""

    name: str
    left: Any
    right: Any

    def __str__(self) -> str:
        left, right = (f"- {-x}" if isinstance(x, int) and x < 0 else x for x in (self.left, self.right))
        return f"{self.name}({left}, {right})"


Factor = str | Operation
Term = tuple[tuple[Factor, int], ...]
"""Factors and exponents; the empty one is 1."""
Coefficients = dict[Term, int]


def inconclusive(text: str) -> InconclusiveDimensionOperation:
    return InconclusiveDimensionOperation(text + HELP)


class UnexpectedDimVar(Exception):
    """A dimension variable has no value."""


# --- the order of factors, terms and expressions --------------------------------------------------------------------


@functools.lru_cache(4096)
def factor_key(f: Factor) -> tuple[Any, ...]:
    if isinstance(f, str):
        return 1, f, ()
    keys = tuple(map(_key, f[1:]))
    return 1 + sum(k[0] for k in keys), f.name, keys


@functools.lru_cache(4096)
def term_key(t: Term) -> tuple[Any, ...]:
    keys = [(factor_key(f), n) for f, n in t]
    return sum(1 + n * key[0] for key, n in keys), tuple(keys)


def _key(e: Any) -> tuple[Any, ...]:
    keys = [(term_key(t), k) for t, k in (e.terms if isinstance(e, DimExpr) else {(): e}).items()]
    return sum(1 + abs(k) * key[0] for key, k in keys), tuple(keys)


def term_text(t: Term) -> str:
    ordered = sorted(t, key=lambda pair: factor_key(pair[0]))
    return "*".join(f"{f}^{n}" if n != 1 else str(f) for f, n in ordered)


def multiplied(a: Term, b: Term, sign: int = 1) -> Term:
    """The product of two terms, or their quotient if ``sign`` is -1, which is a term if no exponent is negative."""
    powers = dict(a)
    for f, n in b:
        powers[f] = powers.get(f, 0) + sign * n
    return tuple(sorted(((f, n) for f, n in powers.items() if n), key=lambda p: factor_key(p[0]), reverse=True))


def divided(a: Term, b: Term) -> Term | None:
    """``a / b``, if it is a term."""
    found = multiplied(a, b, -1)
    return found if all(n > 0 for _, n in found) else None


def terms_of(e: Any) -> Coefficients:
    """Of an expression or an integer."""
    return e.terms if isinstance(e, DimExpr) else {(): int(e)} if e else {}


def combined(a: Any, ka: int, b: Any, kb: int, scope: Any) -> Any:
    """``ka * a + kb * b``"""
    total = {t: k * ka for t, k in terms_of(a).items()}
    for t, k in terms_of(b).items():
        total[t] = total.get(t, 0) + k * kb
    return expression(total, scope)


def expression(coefficients: Coefficients, scope: Any) -> Any:
    """The expression with these terms, after what the scope says of them; an integer if it is constant."""
    found = {t: k for t, k in coefficients.items() if k}
    if scope.rules:
        found = _rewritten(found, scope)
    if not found:
        return 0
    if len(found) == 1 and () in found:
        return found[()]
    return DimExpr({t: found[t] for t in sorted(found, key=term_key, reverse=True)}, scope)


def _rewritten(coefficients: Coefficients, scope: Any) -> Coefficients:
    """Equalities ``k*t == e`` of the scope applied once, to the first term that has one."""
    for t, k in coefficients.items():
        for part in (t, *(((f, n),) for f, n in t)):
            after, of = scope.rules.get(part, (None, 1))
            if after is None or k % of:
                continue
            rest = multiplied(t, part, -1)
            total = {other: c for other, c in coefficients.items() if other != t}
            for new, c in terms_of(after).items():
                whole = multiplied(new, rest)
                total[whole] = total.get(whole, 0) + c * (k // of)
            return {term: c for term, c in total.items() if c}
    return coefficients


def variable(name: str, scope: Any) -> Any:
    """A dimension variable."""
    return expression({((name, 1),): 1}, scope)


def operation(name: str, a: Any, b: Any, scope: Any) -> Any:
    """One of ``floordiv mod max min`` of two expressions, computed if they are integers."""
    if not isinstance(a, DimExpr) and not isinstance(b, DimExpr):
        return _COMPUTED[name](a, b)
    return expression({((Operation(name, a, b), 1),): 1}, scope)


def _convertible(x: Any) -> bool:
    if isinstance(x, Tracer):
        return False
    if isinstance(x, DimExpr):
        return True
    try:
        index(x)
    except (TypeError, ValueError):
        return False
    return True


def _arithmetic(name: str) -> Any:
    """A binary operator: of dimensions and integers a dimension, of anything else a value."""

    def decorate(exact: Callable[[DimExpr, Any], Any]) -> Callable[[DimExpr, Any], Any]:
        @functools.wraps(exact)
        def operator(self: DimExpr, other: Any) -> Any:
            if not _convertible(other):
                return getattr(self.__jax_array__(), name)(other)
            if isinstance(other, DimExpr):
                self.scope.check_same(other, f"for operation {name.strip('_')}")
                return exact(self, other)
            return exact(self, index(other))

        return operator

    return decorate


class DimExpr(SymbolicDim):
    """An expression that is no constant; made by ``expression``."""

    __slots__ = ("_hash", "scope", "terms")
    __array_priority__ = 1000  # NumPy's arrays leave arithmetic with it to it

    def __init__(self, terms: Coefficients, scope: Any) -> None:
        self.terms = terms
        self.scope = scope
        self._hash: int | None = None

    @property
    def leading(self) -> tuple[Term, int]:
        return next(iter(self.terms.items()))

    def variables(self) -> set[str]:
        found: set[str] = set()
        for t in self.terms:
            for f, _ in t:
                inner = [x for x in f[1:] if isinstance(x, DimExpr)] if isinstance(f, Operation) else []
                found |= {f} if isinstance(f, str) else set().union(*(x.variables() for x in inner))
        return found

    def evaluate(self, env: Mapping[str, Any]) -> Any:
        """Its value for those of its variables, which are integers or expressions.

        Raises:
          UnexpectedDimVar: one has none.
        """
        total: Any = 0
        for t, k in self.terms.items():
            product: Any = k
            for f, n in t:
                product = product * _value(f, env) ** n
            total = total + product
        return total

    # --- arithmetic

    @_arithmetic("__add__")
    def __add__(self, other: Any) -> Any:
        return combined(self, 1, other, 1, self.scope)

    @_arithmetic("__radd__")
    def __radd__(self, other: Any) -> Any:
        return combined(self, 1, other, 1, self.scope)

    @_arithmetic("__sub__")
    def __sub__(self, other: Any) -> Any:
        return combined(self, 1, other, -1, self.scope)

    @_arithmetic("__rsub__")
    def __rsub__(self, other: Any) -> Any:
        return combined(self, -1, other, 1, self.scope)

    def __neg__(self) -> Any:
        return combined(self, -1, 0, 0, self.scope)

    def __pos__(self) -> Any:
        return self

    @_arithmetic("__mul__")
    def __mul__(self, other: Any) -> Any:
        total: Coefficients = {}
        for t, k in self.terms.items():
            for u, m in terms_of(other).items():
                product = multiplied(t, u)
                total[product] = total.get(product, 0) + k * m
        return expression(total, self.scope)

    @_arithmetic("__rmul__")
    def __rmul__(self, other: Any) -> Any:
        return self * other

    def __pow__(self, power: Any) -> Any:
        if isinstance(power, DimExpr):
            return self.__jax_array__() ** power
        if power != int(power):
            raise ValueError(f"Symbolic dimension cannot be raised to non-integer powers: '{self}' ** '{power}'")
        if power < 0:
            raise ValueError(f"Symbolic dimension cannot be raised to negative powers: '{self}' ** '{power}'")
        found: Any = 1
        for _ in range(int(power)):
            found = self * found
        return found

    def __rpow__(self, other: Any) -> Any:
        return self.__jax_array__().__rpow__(other)

    @_arithmetic("__divmod__")
    def __divmod__(self, divisor: Any) -> tuple[Any, Any]:
        return _divided(self, divisor) or (
            operation("floordiv", self, divisor, self.scope),
            operation("mod", self, divisor, self.scope),
        )

    @_arithmetic("__rdivmod__")
    def __rdivmod__(self, dividend: Any) -> tuple[Any, Any]:
        if not dividend:
            return 0, 0
        return operation("floordiv", dividend, self, self.scope), operation("mod", dividend, self, self.scope)

    @_arithmetic("__floordiv__")
    def __floordiv__(self, divisor: Any) -> Any:
        return divmod(self, divisor)[0]

    @_arithmetic("__rfloordiv__")
    def __rfloordiv__(self, dividend: Any) -> Any:
        return divmod(dividend, self)[0]

    @_arithmetic("__mod__")
    def __mod__(self, divisor: Any) -> Any:
        return divmod(self, divisor)[1]

    @_arithmetic("__rmod__")
    def __rmod__(self, dividend: Any) -> Any:
        return divmod(dividend, self)[1]

    def __truediv__(self, divisor: Any) -> Any:
        return self.__jax_array__() / divisor

    def __rtruediv__(self, dividend: Any) -> Any:
        return dividend / self.__jax_array__()

    def max(self, other: Any, flipped: bool = False) -> Any:
        return self._extreme("max", other, flipped)

    def min(self, other: Any, flipped: bool = False) -> Any:
        return self._extreme("min", other, flipped)

    def _extreme(self, name: str, other: Any, flipped: bool) -> Any:
        lower, upper = self.scope.bounds(self - other)
        if lower >= 0:
            return self if name == "max" else other
        if upper <= 0:
            return other if name == "max" else self
        return operation(name, *((other, self) if flipped else (self, other)), self.scope)

    # --- comparisons

    def __eq__(self, other: object) -> bool:
        """Whether they are equal for all values of the variables; where that can't be told, they aren't."""
        if isinstance(other, DimExpr):
            return self is other or (self.scope is other.scope and self.terms == other.terms)
        return False

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((tuple(self.terms.items()), id(self.scope)))
        return self._hash

    def __ge__(self, other: Any) -> bool:
        return self._at_least(self, other, ">=", other)

    def __le__(self, other: Any) -> bool:
        return self._at_least(other, self, "<=", other)

    def __gt__(self, other: Any) -> bool:
        return not self._at_least(other, self, ">", other)

    def __lt__(self, other: Any) -> bool:
        return not self._at_least(self, other, "<", other)

    def _at_least(self, a: Any, b: Any, sign: str, other: Any) -> bool:
        """Whether ``a >= b``; the question that was asked is ``self sign other``."""
        if isinstance(other, DimExpr):
            self.scope.check_same(other, f"when comparing '{self}' {sign} '{other}'")
        lower, upper = self.scope.bounds(a - b)
        if lower >= 0 or upper < 0:
            return lower >= 0
        known = f"\nUsing symbolic scope {self.scope}" if self.scope.constraints else ""
        raise inconclusive(f"Symbolic dimension comparison '{self}' {sign} '{other}' is inconclusive.{known}")

    # --- what else dimensions are asked for

    def __bool__(self) -> bool:
        return self != 0

    def __int__(self) -> int:
        raise inconclusive(f"Symbolic dimension '{self}' used in a context that requires a constant")

    def __jax_array__(self) -> Any:
        return dim_as_value(self)

    def dimension_as_value(self) -> Any:
        """The dimension as a value to compute with."""
        return dim_as_value(self)

    def __copy__(self) -> DimExpr:
        return self

    def __deepcopy__(self, memo: Any) -> DimExpr:
        return self

    def __str__(self) -> str:
        parts: list[str] = []
        for t, k in self.terms.items():
            size = term_text(t) if t and abs(k) == 1 else f"{abs(k)}*{term_text(t)}" if t else str(abs(k))
            parts.append(f"{'+' if k > 0 else '-'} {size}")
        return " ".join(parts).removeprefix("+ ")

    __repr__ = __str__


def _value(f: Factor, env: Mapping[str, Any]) -> Any:
    if isinstance(f, str):
        if f not in env:
            raise UnexpectedDimVar(
                f"Encountered dimension variable '{f}' that is not appearing in the shapes of the function arguments.\n"
                "The following dimension variables are appearing in the shapes of the function arguments: "
                f"{list(env)}."
            )
        return env[f]
    values = [evaluated(x, env) for x in f[1:]]
    return _COMPUTED[f.name](*values)


def evaluated(d: Any, env: Mapping[str, Any]) -> Any:
    """The value of a dimension, which may be an integer."""
    return d.evaluate(env) if isinstance(d, DimExpr) else d


_COMPUTED: dict[str, Callable[[Any, Any], Any]] = {
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "max": max_dim,
    "min": min_dim,
}
OPERATIONS = tuple(_COMPUTED)


def _divided(dividend: DimExpr, divisor: Any) -> tuple[Any, Any] | None:
    """Polynomial division: quotient and rest, which is an integer, and zero if the divisor is no integer."""
    if divisor == 0:
        raise ZeroDivisionError(f"Symbolic dimension '{dividend}' divided by 0")
    rest: Any = dividend
    quotient: Any = 0
    top, by = divisor.leading if isinstance(divisor, DimExpr) else ((), divisor)
    while isinstance(rest, DimExpr):
        t, k = rest.leading
        part = divided(t, top)
        if part is None or k % by:
            return None
        step = expression({part: k // by}, dividend.scope)
        quotient, rest = quotient + step, rest - step * divisor
    if isinstance(divisor, DimExpr):
        return None if rest else (quotient, 0)
    return quotient + rest // divisor, rest % divisor
