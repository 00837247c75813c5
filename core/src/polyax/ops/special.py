"""Error functions and the gamma family.

Derivatives are from the Digital Library of Mathematical Functions (dlmf.nist.gov), sections 5.2, 5.15, 7.2 and 25.11.
"""

from __future__ import annotations

import math
from typing import Any, NoReturn

from polyax.ops.basis import add, mul, neg, same_dtype, unary
from polyax.ops.define import FLOAT, Derivative, elementwise
from polyax.ops.elementwise import exp, square

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
digamma_p = elementwise("digamma", FLOAT, lambda t, z, x: mul(t, polygamma(1, x)))
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
    return polygamma_p.bind1(*same_dtype(m, x))


def zeta(x: Any, q: Any) -> Any:
    """The Hurwitz zeta function, the sum of ``(k + q) ** -x`` over ``k >= 0``."""
    return zeta_p.bind1(*same_dtype(x, q))
