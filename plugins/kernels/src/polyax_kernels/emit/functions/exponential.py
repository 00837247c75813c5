"""Exponentials, logarithms, powers and hyperbolic functions of float32; ``64`` in a name: float64 inside. Those of
float64, but for the shortest, are in ``exponential_double``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from polyax_kernels.emit.functions.blocks import (
    INF,
    NAN,
    V,
    absolute,
    bits,
    branches,
    clamp,
    deepened,
    fma,
    from_bits,
    nearest,
    poly,
    power_of_two,
    scale,
    select,
    split,
    with_sign,
)

LN2_HI, LN2_LO = 0.693145751953125, 1.42860682030941723212e-6  # hi has 15 bits: n * hi is exact
_LN2_HI64, _LN2_LO64 = 0.69314718036912381649, 1.9082149292705877e-10  # hi has 33 bits
_EXP = (0.49999993050889994227, 0.16666514791495945137, 0.041668456795702797919, 0.0083694188334584887698,
        0.0013813142823357808032)  # fmt: skip
_EXP_TOP = 88.722833
"""Between the last float32 whose exponential is finite, and the next."""
_EXPM1 = (0.50000000492244627548, 0.16666666827011598497, 0.041666342139995806458, 0.0083332704819463562193,
          0.0013942045879228236531, 0.00019915687098690211892)  # fmt: skip
_EXP2 = (0.69314720418145083056, 0.24022647742220529746, 0.055503293506152685157, 0.0096184499867287248434,
         0.0013400169834272412362, 0.00015352309875410114846)  # fmt: skip
_EXP64 = (0.50000000000000116876, 0.16666666666666385036, 0.041666666666519186313, 0.0083333333335081064659,
          0.0013888888946920978037, 0.00019841269485742720401, 0.000024801489345393555257, 2.7557597215894600967e-6,
          2.7631691134759238765e-7, 2.499906237769248584e-8)  # fmt: skip


def _reduced(x: V) -> tuple[V, V, V]:
    """``r``, and ``n`` as bits and as a float, with x = r + n log 2."""
    n, n_bits = nearest(x, 1 / math.log(2))
    return fma(n, -LN2_LO, fma(n, -LN2_HI, x)), n_bits, n


def _reduce_exp(x: V) -> tuple[V, V]:
    return _reduced(x)[:2]


def exp_parts(x: V) -> tuple[V, V, V]:
    """``r``, ``curve`` and ``n`` with exp(x) = (1 + r + curve) 2^n, of which curve is small."""
    r, n = _reduce_exp(x)
    return r, r * r * poly(r, *_EXP), n


def exp(x: V) -> V:
    deep, x = x < -87.33654, select(x < -104.0, -104.0, x)  # below 2^-126; nothing is left below 2^-150
    return (_exp_by_bits if branches(x.b) and not x.b.scales else _exp_by_scaling)(x, deep)


def _exp_by_scaling(x: V, deep: V) -> V:
    r, *n = _reduced(select(x > 89.0, 89.0, x))
    mantissa = fma(r * r, poly(r, *_EXP), r) + 1.0
    return deepened(x.type, deep, n, lambda *n: scale(mantissa, *n))


def _exp_by_bits(x: V, deep: V) -> V:
    """The power of two is added to the exponent, which can't be a deep one. What overflows, and NaN, is the sum with
    infinity."""
    r, n = _reduce_exp(x)
    mantissa = fma(r * r, poly(r, *_EXP), r) + 1.0
    result = deepened(x.type, deep, [n], lambda n: from_bits(bits(mantissa) + (n << 23)))
    return select(x <= _EXP_TOP, result, x + INF)


def exp2(x: V) -> V:
    deep, x = x < -126.0, clamp(x, -151.0, 129.0)
    n, n_bits = nearest(x, 1.0)
    r = x - n
    mantissa = fma(r, poly(r, *_EXP2), 1.0)
    return deepened(x.type, deep, [n_bits, n], lambda *n: scale(mantissa, *n))


def expm1(x: V) -> V:
    """2^n (e^r - 1) + (2^n - 1), halved and doubled at the top, where 2^n alone would overflow."""
    r, n = _reduce_exp(clamp(x, -30.0, 89.0))
    tail = fma(r * r, poly(r, *_EXPM1), r)
    half = power_of_two(n - 1)
    return select(absolute(x) < 2.0**-25, x, fma(half, tail, half - 0.5) * 2.0)


def exp64(x: V) -> V:
    deep = x < -708.3964  # below 2^-1022
    r, *n = _reduced(clamp(x, -750.0, 750.0))
    mantissa = fma(r * r, poly(r, *_EXP64), r) + 1.0
    return deepened(x.type, deep, n, lambda *n: scale(mantissa, *n))


def logistic(x: V) -> V:
    return _logistic_of(x, exp(-absolute(x)))


def logistic64(x: V) -> V:
    return _logistic_of(x, exp64(-absolute(x)))


def _logistic_of(x: V, e: V) -> V:
    """1 / (1 + e) or e / (1 + e) with e = exp(-|x|); the division is corrected by what rounding 1 + e lost."""
    total = e + 1.0
    lost = e - (total - 1.0)
    inverse = 1.0 / total
    rest = fma(-lost, inverse, fma(-total, inverse, 1.0))
    top = select(x < 0.0, e, e.like(1.0))
    return fma(top, inverse, top * inverse * rest)


def tanh(x: V) -> V:
    """e / (e + 2) with e = expm1(2|x|); the division is corrected by what rounding e + 2 lost. Beyond 9.1 it is 1."""
    a = absolute(x)
    r, n = _reduce_exp(select(a > 9.1, 9.1, a) * 2.0)
    power = power_of_two(n)
    e = fma(power, fma(r * r, poly(r, *_EXPM1), r), power - 1.0)
    total = e + 2.0
    lost = e - (total - 2.0)
    inverse = 1.0 / total
    quotient = e * inverse
    rest = fma(-total, quotient, e) - lost * quotient
    return with_sign(fma(rest, inverse, quotient), x)


_SINH = (0.16666666481465673379, 0.008333351123602326365, 0.00019835960998189631725, 2.8180627600663477785e-6)


def _half_exp(a: V) -> V:
    """exp(a) / 2 for a >= 0, which overflows where hyperbolic functions do."""
    r, curve, n = exp_parts(clamp(a, 0.0, 90.0))
    return scale(r + curve + 1.0, n - 1)


def sinh(x: V) -> V:
    return sinh_of(x, _half_exp(absolute(x)), _SINH)


def sinh_of(x: V, half: V, coefficients: Sequence[float]) -> V:
    """(e^|x| - e^-|x|) / 2 with the sign of x, from ``half`` of e^|x|; up to 1, where that cancels, a polynomial."""
    t = x * x
    far = with_sign(half - 0.25 / half, x)
    return select(absolute(x) < 1.0, fma(x * t, poly(t, *coefficients), x), far)


def cosh(x: V) -> V:
    half = _half_exp(absolute(x))
    return half + 0.25 / half


# logarithms -----------------------------------------------------------------------------------------------------------

_LOG = (0.33333316747725365975, -0.25000810394690216879, 0.20002285258356705643, -0.16624554217864276352,
        0.14181208049460485489, -0.13128764746609716286, 0.12881562665874970175, -0.078594983485102592203)  # fmt: skip
_LOG64 = (0.33333333333333672054, 0.19999999999707342136, 0.14285714371193343674, 0.11111099286631132603,
          0.090917821612635022924, 0.076570253191457573399, 0.073979744358006968144)  # fmt: skip


def _log_of(f: V, k: V, rest: V | float = 0.0) -> V:
    """log((1 + f) 2^k) + rest for f in [sqrt(1/2) - 1, sqrt(2) - 1] and a small ``rest``."""
    square = f * f
    tail = fma(square * f, poly(f, *_LOG), fma(k, LN2_LO, fma(square, -0.5, rest)))
    return fma(k, LN2_HI, f + tail)


def log_edges(x: V, result: V) -> V:
    """The cases that splitting can't do: zero, infinity, negative numbers, NaN."""
    result = select(x.compare("==", INF), x, result)
    result = select(x.compare("==", 0.0), -INF, result)
    return select(x >= 0.0, result, NAN)


def log(x: V) -> V:
    k, m = split(x)
    return log_edges(x, _log_of(m - 1.0, k))


def log1p(x: V) -> V:
    """With u = 1 + x = m 2^k, f = 2^-k - 1 + 2^-k x recovers the bits that the sum lost; a large u lost none."""
    u = x + 1.0
    n = (bits(u) - 0x3F3504F3) >> 23
    down = power_of_two(-n)
    f = select(n > 60, from_bits(bits(u) - (n << 23)) - 1.0, fma(x, down, down - 1.0))
    result = _log_of(f, x.b.convert("sitofp", n, "float"))
    return select(absolute(x) < 2.0**-14, fma(x * -0.5, x, x), log_edges(u, result))


def cbrt64(x: V) -> V:
    return with_sign(exp64(log64(absolute(x)) * (1 / 3)), x)


def log_of_double(f: V, k: V, rest: V | float = 0.0) -> V:
    """The same in float64. With s = f / (2 + f), log(1 + f) = f - (h - s (h + c)) for h = f^2 / 2 and a small c, so
    that what rounding s and the sums loses is far behind the digits of f."""
    s = f / (f + 2.0)
    t = s * s
    half = f * f * 0.5
    tail = fma(s, fma(t, poly(t, *_LOG64) * 2.0, half), fma(k, _LN2_LO64, rest))
    return fma(k, _LN2_HI64, f - (half - tail))


def log64(x: V) -> V:
    k, m = split(x)
    return log_edges(x, log_of_double(m - 1.0, k))


def pow64(x: V, y: V) -> V:
    return power(x, y, lambda x, y: exp64(y * log64(x)))


def power(x: V, y: V, positive: Callable[[V, V], V]) -> V:
    """The power of the absolute value, with the signs and limits of C's ``pow``."""
    magnitude = absolute(x)
    result = positive(magnitude, y)
    floor = x.b.intrinsic("floor", y)
    whole = floor.compare("==", y)
    half = y * 0.5
    odd = whole & x.b.intrinsic("floor", half).compare("!=", half)
    result = select(odd, with_sign(result, x), result)
    result = select((x < 0.0) & (magnitude < INF) & ~whole, NAN, result)
    flat = magnitude.compare("==", 1.0) & absolute(y).compare("==", INF)
    one = y.compare("==", 0.0) | x.compare("==", 1.0) | flat
    return select(one, 1.0, result)


_ASINH = (-0.16666657464710259339, 0.07499482373749543471, -0.044545056297570330365, 0.029516308150636698803,
          -0.018339605525129925627, 0.0071491808760886798591)  # fmt: skip
_ACOSH = (-0.083333219344739363383, 0.018746658409893807056, -0.0055482344127961128618, 0.0017609751815603757758,
          -0.00041400545507592427692)  # fmt: skip


def log_sum(a: V, sign: float) -> V:
    """log(a + sqrt(a^2 + sign)) for a >= 1/2, and >= 3/2 if the sign is negative.

    What rounding loses of the square, the root and the sum is added to the logarithm."""
    single = a.type == "float"
    far = a > (2.0**13 if single else 2.0**28)
    b = select(far, 1.0, a) if sign > 0 else select(far, 2.0, a)
    square = b * b
    w = square + sign
    root = b.b.intrinsic("sqrt", w)
    lost = fma(-root, root, w) + (square - (w - sign)) + fma(b, b, -square)
    large, small = (root, b) if sign > 0 else (b, root)
    total = large + small
    rest = fma(small - (total - large), root, lost * 0.5) / (root * total)
    k, m = split(select(far, a, total))
    k = k + select(far, 1.0, k.like(0.0))
    return (_log_of if single else log_of_double)(m - 1.0, k, select(far, 0.0, rest))


def asinh(x: V) -> V:
    return asinh_near(x, 0.6, _ASINH)


def asinh_near(x: V, bound: float, coefficients: Sequence[float]) -> V:
    """sign log(|x| + sqrt(x^2 + 1)); a polynomial up to ``bound``."""
    a = absolute(x)
    t = a * a
    result = select(a < bound, fma(a * t, poly(t, *coefficients), a), log_sum(a, 1.0))
    return with_sign(select(a < INF, result, a), x)


def acosh(x: V) -> V:
    return acosh_near(x, _ACOSH)


def acosh_near(x: V, coefficients: Sequence[float]) -> V:
    """log(x + sqrt(x^2 - 1)); up to 3/2, sqrt(2 t) times a polynomial in t = x - 1."""
    t = x - 1.0
    root = x.b.intrinsic("sqrt", t * 2.0)
    near = fma(root * t, poly(t, *coefficients), root)
    return select(x < 1.5, near, select(x < INF, log_sum(x, -1.0), x))


def atanh64(x: V) -> V:
    a = absolute(x)
    return with_sign(_log1p64(a * 2.0 / (1.0 - a)) * 0.5, x)


def _log1p64(x: V) -> V:
    """Kahan's correction: x log(u) / (u - 1) with u = 1 + x."""
    u = x + 1.0
    d = u - 1.0
    fine = d.compare("!=", 0.0) & (u < INF)
    return select(fine, log64(u) * (x / select(fine, d, 1.0)), select(u < INF, x, log64(u)))
