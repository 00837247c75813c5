"""Exponentials, logarithms, powers and hyperbolic functions of float64, within 2 ulp. What rounding loses of arguments
is carried along where it would count."""

from __future__ import annotations

import math

from polyax_kernels.emit.functions.blocks import (
    INF,
    NAN,
    V,
    absolute,
    bits,
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
from polyax_kernels.emit.functions.exponential import (
    LN2_HI,
    LN2_LO,
    acosh_near,
    asinh_near,
    log_edges,
    log_of_double,
    power,
    sinh_of,
)
from polyax_kernels.emit.functions.pairs import any_sum, ordered_sum, product

_LN2_TAIL = 2.319046813846299558e-17
"""What a float64 of ln 2 lacks."""
_EXP = (0.49999999999999999984, 0.16666666666666677628, 0.041666666666666705021, 0.008333333333320654863,
        0.0013888888888864998514, 0.00019841269888892502567, 0.000024801587364206475914, 2.7557241164461183121e-6,
        2.7557239636658961727e-7, 2.5110178752252425715e-8, 2.0925407368705304513e-9)  # fmt: skip


def exp_parts(x: V) -> tuple[V, V, V]:
    """``r``, ``curve`` and ``n`` with exp(x) = (1 + r + curve) 2^n, of which curve is small, and tiny for a tiny x."""
    n, n_bits = nearest(x, 1 / math.log(2))
    near = fma(n, -LN2_HI, x)
    r = fma(n, -LN2_LO, near)
    return r, fma(r * r, poly(r, *_EXP), fma(n, -LN2_LO, near - r)), n_bits


def exp2(x: V) -> V:
    deep, x = x < -1022.0, clamp(x, -1100.0, 1100.0)
    n, n_bits = nearest(x, 1.0)
    r, lost = product(x - n, math.log(2))
    mantissa = fma(r * r, poly(r, *_EXP), fma(x - n, _LN2_TAIL, lost)) + r + 1.0
    return deepened(x.type, deep, [n_bits], lambda n: scale(mantissa, n))


def _expm1(x: V) -> tuple[V, V]:
    """Half of e^x - 1 as a sum: 2^n (r + curve) + (2^n - 1), halved since 2^n may overflow."""
    r, curve, n = exp_parts(x)
    half = power_of_two(n - 1)
    return fma(half, r, half - 0.5), half * curve


def expm1(x: V) -> V:
    most, rest = _expm1(clamp(x, -50.0, 710.0))
    return select(absolute(x) < 2.0**-54, x, (most + rest) * 2.0)


def tanh(x: V) -> V:
    """e / (e + 2) with e = expm1(2|x|), halved; the division is corrected by what rounding lost. Beyond 20 it is 1."""
    a = absolute(x)
    e, lost = ordered_sum(*_expm1(select(a > 20.0, 20.0, a) * 2.0))
    total, more = any_sum(e, e.like(1.0))
    quotient = e / total
    rest = fma(-total, quotient, e) + (lost - (more + lost) * quotient)
    return with_sign(quotient + rest / total, x)


_SINH = (0.16666666666666666666, 0.0083333333333333335599, 0.000198412698412695904, 2.7557319224120243545e-6,
         2.5052108345641083056e-8, 1.6059050705915008891e-10, 7.6464763582834864699e-13,
         2.8483983624278062442e-15)  # fmt: skip


def _half_exp(a: V) -> V:
    """exp(a) / 2 for a >= 0, which overflows where hyperbolic functions do."""
    r, curve, n = exp_parts(clamp(a, 0.0, 750.0))
    return scale(curve + r + 1.0, n - 1)


def sinh(x: V) -> V:
    return sinh_of(x, _half_exp(absolute(x)), _SINH)


def cosh(x: V) -> V:
    half = _half_exp(absolute(x))
    return half + 0.25 / half


# logarithms -----------------------------------------------------------------------------------------------------------


def log1p(x: V) -> V:
    """The logarithm of u = 1 + x, and what that sum lost by u."""
    u = x + 1.0
    lost = select(absolute(x) < 1.0, x - (u - 1.0), 1.0 - (u - x))
    k, m = split(u)
    result = log_edges(u, log_of_double(m - 1.0, k, lost / u))
    return select(absolute(x) < 2.0**-54, x, result)


_ASINH = (-0.16666666666666611106, 0.074999999999846202909, -0.044642857127995462599, 0.030381943722988633993,
          -0.022372138512467586077, 0.017352389223605626155, -0.013960254119103505732, 0.011513124160517590592,
          -0.0095347337936141751732, 0.0074671790240786121827, -0.004749931758703119881,
          0.0017197035909813205117)  # fmt: skip
_ACOSH = (-0.08333333333333305553, 0.018749999999961550727, -0.0055803571409994328249, 0.0018988714826867896246,
          -0.00069912932851461206491, 0.00027113108161883790867, -0.00010906448530549613853,
          0.000044973141252021838251, -0.000018622526940652685885, 7.2921670157017697097e-6, -2.3193026165542577544e-6,
          4.1984950951692395304e-7)  # fmt: skip
_ATANH = (0.33333333333331968227, 0.20000000000703275475, 0.14285714161967117344, 0.11111121626081488911,
          0.090904160776132282906, 0.077057142339475051002, 0.064572340751390566122,
          0.075984700966839799502)  # fmt: skip


def asinh(x: V) -> V:
    return asinh_near(x, 0.5, _ASINH)


def acosh(x: V) -> V:
    return acosh_near(x, _ACOSH)


def atanh(x: V) -> V:
    """Half the logarithm of (1 + |x|) / (1 - |x|), and what rounding these lost; a polynomial up to 1/4."""
    a = absolute(x)
    t = a * a
    above, lost_above = ordered_sum(a.like(1.0), a)
    below, lost_below = ordered_sum(a.like(1.0), -a)
    quotient = above / below
    rest = (fma(-quotient, below, above) + (lost_above - quotient * lost_below)) / above
    k, m = split(quotient)
    far = log_of_double(m - 1.0, k, rest) * 0.5
    result = select(a < 0.25, fma(a * t, poly(t, *_ATANH), a), select(a.compare("==", 1.0), INF, far))
    return with_sign(select(a <= 1.0, result, NAN), x)


# powers ---------------------------------------------------------------------------------------------------------------

_CBRT = (0.99999998885571139941, -0.33333013706945139109, 0.22223543994966037385, -0.17424940025860187633,
         0.14283332549145262533)  # fmt: skip


def cbrt(x: V) -> V:
    """A third of the exponent's bits, a polynomial that corrects it, and a step of Halley's method, for which the
    square is exact."""
    a = absolute(x)
    tiny = a < 2.0**-1022
    a = select(tiny, a * 2.0**54, a)
    third = ((bits(a) >> 32) * 0x55555556) >> 32
    guess = from_bits((third + 715094163) << 32)
    ratio = guess * guess * (guess / a)
    guess = guess * poly(ratio - 1.0, *_CBRT)
    guess = from_bits(bits(guess) & -(1 << 28))
    quotient = a / (guess * guess)
    root = fma(guess, (quotient - guess) / (guess + guess + quotient), guess)
    root = select(tiny, root * 2.0**-18, root)
    return select((a > 0.0) & (a < INF), with_sign(root, x), x + x)


_LOG_TAIL = (0.20000000000000000109, 0.14285714285714187752, 0.11111111111145288434, 0.090909090846267252765,
             0.076923083765753795187, 0.066666202200231142721, 0.058843368198264983981, 0.05211453600505556343,
             0.055066433396234450296)  # fmt: skip
_THIRD = 1 / 3, 1.850371707708594e-17
_LN2_PAIR = 0.69314718055994530942, _LN2_TAIL


def _log_pair(x: V) -> tuple[V, V]:
    """k ln 2 + 2 (s + s^3 / 3 + ...) with s = f / (2 + f), to some 65 bits; for finite positive ``x``."""
    k, m = split(x)
    f = m - 1.0
    below, lost = ordered_sum(f.like(2.0), f)
    s = f / below
    s_low = (fma(-s, below, f) - s * lost) / below
    t, t_low = product(s, s)
    t_low = fma(s * 2.0, s_low, t_low)
    slope, slope_low = product(t, _THIRD[0])
    slope_low = fma(t, _THIRD[1], fma(t_low, _THIRD[0], slope_low)) + t * t * poly(t, *_LOG_TAIL)
    slope, slope_low = ordered_sum(slope, slope_low)
    cube, cube_low = product(s, slope)
    cube_low = fma(s, slope_low, fma(s_low, slope, cube_low))
    high, low = ordered_sum(s, cube)
    low = low + (s_low + cube_low)
    whole, whole_low = product(k, _LN2_PAIR[0])
    high, more = any_sum(whole, high * 2.0)
    return ordered_sum(high, more + fma(low, 2.0, fma(k, _LN2_PAIR[1], whole_low)))


def pow(x: V, y: V) -> V:
    """exp(y log|x|), whose argument has the digits that it loses by its size."""
    return power(x, y, _positive_power)


def _positive_power(x: V, y: V) -> V:
    usual = (x > 0.0) & (x < INF)
    high, low = _log_pair(select(usual, x, 1.0))
    edge = select(x.compare("==", 0.0), -INF, x)  # NaN, and infinity, are their own logarithms
    exponent, lost = product(y, select(usual, high, edge))
    exact = usual & (absolute(exponent) < 800.0)
    r, curve, n = exp_parts(clamp(exponent, -800.0, 800.0))
    more = select(exact, fma(y, low, lost), 0.0)
    return scale(fma(more, curve + r + 1.0, curve) + r + 1.0, n)
