"""Special functions in float64, from their textbook expansions (dlmf.nist.gov, chapters 5, 7 and 25)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from polyax.ops import special
from polyax.reference.table import rule, through_float64


def _lgamma(x: float) -> float:
    if math.isnan(x):
        return x
    if math.isinf(x) or (x <= 0 and x == math.floor(x)):
        return math.inf
    return math.lgamma(x)


_erfc = np.vectorize(math.erfc, otypes=[np.float64])

erf = rule(special.erf_p)(through_float64(np.vectorize(math.erf, otypes=[np.float64])))
erfc = rule(special.erfc_p)(through_float64(_erfc))
lgamma = rule(special.lgamma_p)(through_float64(np.vectorize(_lgamma, otypes=[np.float64])))


@rule(special.erf_inv_p)
@through_float64
def erf_inv(x: Any) -> Any:
    """Halley's method on erfc(y) = 1 - |x|, from Winitzki's approximation."""
    a = np.abs(x)
    log = np.log1p(-(np.where(a < 1, a, 0) ** 2))
    c = 2 / (math.pi * 0.147) + log / 2
    y = np.sqrt(np.sqrt(c * c - log / 0.147) - c)
    for _ in range(4):
        step = ((1 - a) - _erfc(y)) * np.exp(y * y) / special.TWO_OVER_ROOT_PI
        y = y - step / (1 + y * step)
    return np.copysign(np.where(a < 1, y, np.where(a == 1, np.inf, np.nan)), x)


_DIGAMMA = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)


@rule(special.digamma_p)
@through_float64
def digamma(x: Any) -> Any:
    """The asymptotic series beyond 10, the recurrence below, the reflection formula for negative numbers."""
    positive = np.where(x <= 0, 1 - x, x)
    shift, y = np.zeros_like(positive), positive
    for _ in range(10):
        small = y < 10
        shift, y = np.where(small, shift - 1 / y, shift), np.where(small, y + 1, y)
    series = sum(c / y ** (2 * k + 2) for k, c in enumerate(_DIGAMMA))
    value = np.where(np.isinf(y), y, np.log(y) - 0.5 / y - series + shift)
    reflected = value - math.pi / np.tan(math.pi * x)
    pole = (x <= 0) & (x == np.floor(x))
    return np.where(pole, np.nan, np.where(x <= 0, reflected, value))


_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798)
_TERMS = 12


@rule(special.zeta_p)
@through_float64
def zeta(x: Any, q: Any) -> Any:
    """Euler-Maclaurin summation after the first terms."""
    x, q = np.broadcast_arrays(x, q)
    total = sum((q + k) ** -x for k in range(_TERMS))
    a = q + _TERMS
    total = total + a ** (1 - x) / (x - 1) + a**-x / 2
    factor = x * a ** (-x - 1)
    for k, b in enumerate(_BERNOULLI, 1):
        total = total + b / math.factorial(2 * k) * factor
        factor = factor * (x + 2 * k - 1) * (x + 2 * k) / (a * a)
    pole = (q <= 0) & (q == np.floor(q))
    total = np.where((x == 1) | pole, np.inf, total)
    return np.where((x < 1) | (q <= 0) & ~pole & (x != np.floor(x)), np.nan, total)


@rule(special.polygamma_p)
@through_float64
def polygamma(m: Any, x: Any) -> Any:
    """(-1)^(m+1) m! zeta(m + 1, x); digamma for m = 0."""
    factorial = np.vectorize(lambda n: math.gamma(n + 1) if n >= 0 else math.nan, otypes=[np.float64])(m)
    value = np.where(m % 2 == 0, -1.0, 1.0) * factorial * zeta(m + 1, x)
    return np.where(m == 0, digamma(x), np.where((m < 0) | (m != np.floor(m)), np.nan, value))
