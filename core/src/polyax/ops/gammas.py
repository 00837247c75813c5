"""The gamma function's logarithm and its derivative in terms of others, for engines that have neither.

Formulas are those of the Digital Library of Mathematical Functions (dlmf.nist.gov), chapter 5. They err by a few units
in the last place of float32 and float64, but for results that are small because large terms cancel.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from polyax.ops.basis import add, div, eq, full_like, mul, neg, select_n, sub
from polyax.ops.compare import lt
from polyax.ops.elementwise import abs as absolute
from polyax.ops.elementwise import cos, log, log1p, round, sin, square

EULER = 0.5772156649015329
ZETA = (
    0.6449340668482264, 0.2020569031595943, 0.08232323371113819, 0.03692775514336993, 0.01734306198444914,
    0.008349277381922827, 0.00407735619794434, 0.0020083928260822143, 0.0009945751278180853, 0.0004941886041194645,
    0.0002460865533080483, 0.00012271334757848915, 6.124813505870483e-05, 3.058823630702049e-05, 1.528225940865187e-05,
    7.637197637899763e-06, 3.81729326499984e-06, 1.908212716553939e-06, 9.539620338727962e-07, 4.769329867878064e-07,
    2.38450502727733e-07, 1.1921992596531106e-07, 5.960818905125948e-08, 2.980350351465228e-08, 1.4901554828365043e-08,
    7.45071178983543e-09,
)  # fmt: skip
"""zeta(k) - 1 for k = 2, 3, ..."""
BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)
"""B[2k] for k = 1, 2, ..."""
FAR = 8
"""Where the asymptotic series give all digits; smaller numbers are moved there."""


def log_gamma(x: Any) -> Any:
    """Reflected below 1/2, a power series up to 5/2, Stirling's from there on."""
    small = lt(x, 0.5)
    y = select_n(small, x, sub(1.0, x))
    value = select_n(lt(y, 2.5), _stirling(y), _near(y))
    reflected = sub(log(div(math.pi, absolute(sin(_turn(x))))), value)
    value = select_n(small, value, reflected)
    return select_n(eq(absolute(x), math.inf), value, full_like(x, math.inf))


def _turn(x: Any) -> Any:
    """pi times the distance from the nearest integer."""
    return mul(math.pi, sub(x, round(x)))


def _near(y: Any) -> Any:
    """By DLMF 5.7.3, whose terms vanish where the result does: at 1 and 2."""
    below = lt(y, 1.5)
    z = select_n(below, sub(y, 2.0), sub(y, 1.0))
    series = _polynomial(neg(z), [c / k for k, c in enumerate(ZETA, 2)])
    value = mul(z, add(1 - EULER, mul(z, series)))
    return select_n(below, value, sub(value, log1p(z)))


def _stirling(y: Any) -> Any:
    """DLMF 5.11.1, divided by what the move multiplied by."""
    w, near, first = _far(y)
    product = full_like(y, 1)
    for k in range(FAR):
        product = mul(product, add(first, float(k)))
    moved = select_n(near, full_like(y, 0), log(product))
    series = _polynomial(square(div(1.0, w)), [b / (2 * k * (2 * k - 1)) for k, b in enumerate(BERNOULLI, 1)])
    value = add(mul(sub(w, 0.5), sub(log(w), 1.0)), 0.5 * math.log(2 * math.pi) - 0.5)
    return sub(add(value, div(series, w)), moved)


def derivative_of_log_gamma(x: Any) -> Any:
    """DLMF 5.11.2 and 5.5.2; reflected below 1/2 (5.5.4)."""
    small = lt(x, 0.5)
    y = select_n(small, x, sub(1.0, x))
    w, near, first = _far(y)
    total = full_like(y, 0)
    for k in range(FAR):
        total = add(total, div(1.0, add(first, float(k))))
    moved = select_n(near, full_like(y, 0), total)
    r = div(1.0, w)
    series = _polynomial(square(r), [b / (2 * k) for k, b in enumerate(BERNOULLI, 1)])
    value = sub(sub(sub(log(w), mul(0.5, r)), mul(series, square(r))), moved)
    cotangent = div(cos(_turn(x)), sin(_turn(x)))
    return select_n(small, value, sub(value, mul(math.pi, cotangent)))


def _far(y: Any) -> tuple[Any, Any, Any]:
    """``y`` where the series are good, whether it was moved there, and from where: 1, if it wasn't."""
    near = lt(y, float(FAR))
    return select_n(near, y, add(y, float(FAR))), near, select_n(near, full_like(y, 1), y)


def _polynomial(x: Any, coefficients: Sequence[float]) -> Any:
    total = full_like(x, coefficients[-1])
    for c in coefficients[-2::-1]:
        total = add(mul(total, x), c)
    return total
