"""Error functions and the gamma family.

Derivatives are from the Digital Library of Mathematical Functions (dlmf.nist.gov), sections 5.2, 5.15, 7.2 and 25.11.
"""

from __future__ import annotations

import math
from typing import Any, NoReturn

import numpy as np

from polyax.ir.aval import aval_of
from polyax.ops.basis import add, convert, div, eq, full_like, mul, neg, select_n, stretched, sub, unary
from polyax.ops.compare import bitwise_and, bitwise_not, bitwise_or, le, lt, ne
from polyax.ops.define import FLOAT, Derivative, broadcast_shape, elementwise
from polyax.ops.elementwise import exp, floor, pow, rem, square

__all__ = [
    "digamma", "digamma_p", "erf", "erf_inv", "erf_inv_p", "erf_p", "erfc", "erfc_p", "lgamma", "lgamma_p", "polygamma",
    "polygamma_p", "zeta", "zeta_p",
]  # fmt: skip

TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)


def _unknown(what: str) -> Derivative:
    def derivative(t: Any, z: Any, *operands: Any) -> NoReturn:
        raise NotImplementedError(f"the derivative of {what} is not built yet")

    return derivative


def _gauss(x: Any) -> Any:
    return mul(TWO_OVER_ROOT_PI, exp(neg(square(x))))


erf_p = elementwise("erf", FLOAT, lambda t, z, x: mul(t, _gauss(x)))
erfc_p = elementwise("erfc", FLOAT, lambda t, z, x: neg(mul(t, _gauss(x))))
erf_inv_p = elementwise("erf_inv", FLOAT, lambda t, z, x: mul(t, mul(1 / TWO_OVER_ROOT_PI, exp(square(z)))))
lgamma_p = elementwise("lgamma", FLOAT, lambda t, z, x: mul(t, digamma(x)))
digamma_p = elementwise("digamma", FLOAT, lambda t, z, x: mul(t, polygamma(full_like(x, 1), x)))
polygamma_p = elementwise(
    "polygamma",
    (FLOAT, FLOAT),
    (_unknown("polygamma in its order"), lambda t, z, m, x: mul(t, polygamma(add(m, 1), x))),
)
zeta_p = elementwise(
    "zeta",
    (FLOAT, FLOAT),
    (_unknown("zeta in its exponent"), lambda t, z, x, q: mul(neg(t), mul(x, zeta(add(x, 1), q)))),
)

erf = unary(erf_p, "The error function, the integral of ``2/sqrt(pi) exp(-t^2)`` from 0 to ``x``.")
erfc = unary(erfc_p, "``1 - erf(x)``, accurate for large ``x``.")
erf_inv = unary(erf_inv_p, "The inverse of ``erf``; infinite at -1 and 1, NaN outside.")
lgamma = unary(lgamma_p, "The logarithm of the absolute value of the gamma function.")
digamma = unary(digamma_p, "The derivative of the logarithm of the gamma function.")


def polygamma(m: Any, x: Any) -> Any:
    """The ``m``-th derivative of ``digamma`` at ``x``."""
    return polygamma_p.bind1(m, x)


def zeta(x: Any, q: Any) -> Any:
    """The Hurwitz zeta function, the sum of ``(k + q) ** -x`` over ``k >= 0``."""
    return zeta_p.bind1(x, q)


# --- in terms of others ----------------------------------------------------------------------------------------------

_TERMS = 9
_EULER_MACLAURIN = (1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000)
"""B[2k] / (2k)! for k = 1, 2, ..."""


def zeta_series(x: Any, q: Any) -> Any:
    """The first terms, and the rest by the formula of Euler and Maclaurin (DLMF 25.11.28)."""
    total = pow(q, neg(x))
    for k in range(1, _TERMS):
        total = add(total, pow(add(q, float(k)), neg(x)))
    a = add(q, float(_TERMS))
    power = pow(a, neg(x))
    total = add(total, add(div(mul(power, a), sub(x, 1.0)), mul(power, 0.5)))
    factor = div(mul(power, x), a)
    for k, c in enumerate(_EULER_MACLAURIN):
        total = add(total, mul(factor, c))
        factor = div(mul(factor, mul(add(x, 2.0 * k + 1.0), add(x, 2.0 * k + 2.0))), square(a))
    return _where_defined(x, q, total)


def _where_defined(x: Any, q: Any, value: Any) -> Any:
    """Infinite at x = 1 and at integers q <= 0; NaN for smaller x, and for negative q where powers are complex."""
    whole = eq(q, floor(q))
    broken = bitwise_and(bitwise_and(le(q, 0), bitwise_not(whole)), ne(x, floor(x)))
    infinite = bitwise_or(eq(x, 1), bitwise_and(le(q, 0), whole))
    value = select_n(infinite, value, full_like(value, math.inf))
    return select_n(bitwise_or(lt(x, 1), broken), value, full_like(value, math.nan))


def _polygamma(m: Any, x: Any) -> Any:
    """(-1)^(m+1) m! zeta(m + 1, x); digamma for m = 0."""
    size = mul(exp(lgamma(add(m, 1.0))), zeta(add(m, 1.0), x))
    value = select_n(eq(rem(m, 2), 0), size, neg(size))
    undefined = bitwise_or(lt(m, 0), ne(m, floor(m)))
    return select_n(eq(m, 0), select_n(undefined, value, full_like(value, math.nan)), digamma(x))


def _in_floats(fun: Any) -> Any:
    """The rule ``decompose`` of a formula that needs at least float32, of operands of one shape."""

    def rule(*operands: Any) -> list[Any]:
        dtype = aval_of(operands[0]).dtype
        shape = broadcast_shape("a formula", [np.shape(x) for x in operands])
        wide = np.promote_types(dtype, np.float32) if dtype.kind == "f" else np.dtype(np.float32)
        return [convert(fun(*(stretched(convert(x, wide), shape) for x in operands)), dtype)]

    return rule


def _log_gamma(x: Any) -> Any:
    from polyax.ops.gammas import log_gamma  # few engines lack it

    return log_gamma(x)


def _derivative_of_log_gamma(x: Any) -> Any:
    from polyax.ops.gammas import derivative_of_log_gamma

    return derivative_of_log_gamma(x)


lgamma_p.decompose = _in_floats(_log_gamma)
digamma_p.decompose = _in_floats(_derivative_of_log_gamma)
zeta_p.decompose = _in_floats(zeta_series)
polygamma_p.decompose = _in_floats(_polygamma)
