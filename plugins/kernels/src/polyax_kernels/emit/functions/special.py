"""The error functions in float32, and the gamma function's kin, in float64 inside."""

from __future__ import annotations

import math

from polyax_kernels.emit.functions.blocks import (
    INF,
    NAN,
    V,
    absolute,
    fma,
    nearest,
    poly,
    power_of_two,
    scale,
    select,
    with_sign,
)
from polyax_kernels.emit.functions.circular import sin_cos
from polyax_kernels.emit.functions.exponential import exp_parts, log1p, log64

_ERF_NEAR = (0.12837916659910983308, -0.37612633371135743112, 0.11283689950803485043, -0.026859092558134508654,
             0.0052002767404205275544, -0.0008134160621613047339, 0.000083340996835485100291)  # fmt: skip
_LOG2_ERFC = (-0.00024019641162146006, -1.627067207318954, -0.91896274667735, -0.15020380796427815,
              0.03219380033791894, -0.004422501931881575, 0.0002859634431877342)  # fmt: skip
_EXP2 = (0.693147195505231, 0.2402234895480987, 0.05550333182170396, 0.009666372953819065,
         0.0013400436082654785)  # fmt: skip
_ERFC = (0.28208827747488139435, 0.28225805764379307173, 0.24512253753734586381, 0.1859164145282024927,
         0.053728409164027340435, 0.038117865345216585884, -0.026246349957756760129, -0.28509943732844574691,
         0.37842328519409547874, -0.18988233708670988207, 0.035573280930755062604)  # fmt: skip


def erf(x: V) -> V:
    """Up to 0.9 a polynomial in x^2; beyond, 1 - 2^p(|x|), whose error counts for a fifth and less; 1 from 4 on."""
    a = absolute(x)
    logarithm = poly(select(a > 4.0, 4.0, a), *_LOG2_ERFC)
    n, n_bits = nearest(logarithm, 1.0)
    r, power = logarithm - n, power_of_two(n_bits)
    far = fma(-power, r * poly(r, *_EXP2), 1.0 - power)
    return select(a > 0.9, with_sign(far, x), fma(x, poly(x * x, *_ERF_NEAR), x))


def erfc(x: V) -> V:
    """exp(-a^2) t p(t) with a = |x| and t = 1 / (1 + a / 2), where the polynomial varies little; 2 minus that below 0.

    What rounding a^2, the sum, its inverse and the product loses is added to the exponential's tail."""
    a = absolute(x)
    a = select(a > 10.1, 10.1, a)  # where float32 underflows
    half = a * 0.5
    total = half + 1.0
    t = 1.0 / total
    lost = fma(-total, t, 1.0) - (half - (total - 1.0)) * t
    square = a * a
    slope = poly(t, *_ERFC[1:])
    p = fma(t, slope, _ERFC[0])
    h = t * p
    rest = fma(t, p, -h) + t * fma(t, slope, _ERFC[0] - p)
    r, curve, n = exp_parts(-square)
    inexact = lost * fma(t, 1.25, 1.0) - fma(a, a, -square)
    curve = curve + fma(inexact, r + curve, inexact)
    result = scale(h + fma(h, r, fma(h, curve, rest)), n)
    return select(x < 0.0, 2.0 - result, result)


# M. Giles, "Approximating the erfinv function" (2010), single precision; what XLA uses, so that normal samples agree
_ERFINV_NEAR = (1.50140941, 0.246640727, -0.00417768164, -0.00125372503, 0.00021858087, -4.39150654e-06, -3.5233877e-06,
                3.43273939e-07, 2.81022636e-08)  # fmt: skip
_ERFINV_FAR = (2.83297682, 1.00167406, 0.00943887047, -0.0076224613, 0.00573950773, -0.00367342844, 0.00134934322,
               0.000100950558, -0.000200214257)  # fmt: skip


def erf_inv(x: V) -> V:
    w = -log1p(-(x * x))
    near = poly(w - 2.5, *_ERFINV_NEAR)
    far = poly(x.b.intrinsic("sqrt", w) - 3.0, *_ERFINV_FAR)
    return select(absolute(x).compare("==", 1.0), x * INF, select(w < 5.0, near, far) * x)


# log Gamma and its derivative: asymptotic series (Abramowitz and Stegun 6.1.41, 6.3.18) from 8 on, the recurrence
# below, reflection below 1/2
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)
_DIGAMMA = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760)
_STEPS = 8


def _lgamma_positive(x: V) -> V:
    product = x
    for i in range(1, _STEPS):
        product = product * (x + float(i))
    small = x < float(_STEPS)
    z = select(small, x + float(_STEPS), x)
    r = 1.0 / z
    series = fma(z - 0.5, log64(z), poly(r * r, *_STIRLING) * r - z + 0.5 * math.log(2 * math.pi))
    return select(small, series - log64(select(small, product, 1.0)), series)


def _sin_cos_pi(x: V) -> tuple[V, V]:
    """Of pi x up to the sign, which both functions lose when x moves by one."""
    f = x - x.b.intrinsic("roundeven", x)
    far = absolute(f) > 0.25
    s, c = sin_cos((select(far, 0.5 - absolute(f), f)) * math.pi, single=False)
    return select(far, with_sign(c, f), s), select(far, s, c)


def lgamma64(x: V) -> V:
    mirrored = x < 0.5
    value = _lgamma_positive(select(mirrored, 1.0 - x, x))
    sine, _ = _sin_cos_pi(x)
    result = select(mirrored, log64(math.pi / absolute(sine)) - value, value)
    result = select(x.compare("==", 1.0) | x.compare("==", 2.0), 0.0, result)
    return select(absolute(x).compare("==", INF), INF, result)


def digamma64(x: V) -> V:
    mirrored = x < 0.5
    z = select(mirrored, 1.0 - x, x)
    small = z < float(_STEPS)
    total = 1.0 / z
    for i in range(1, _STEPS):
        total = total + 1.0 / (z + float(i))
    z = select(small, z + float(_STEPS), z)
    r = 1.0 / z
    value = log64(z) - r * 0.5 - r * r * poly(r * r, *_DIGAMMA) - select(small, total, total.like(0.0))
    sine, cosine = _sin_cos_pi(x)
    pole = mirrored & x.compare("==", x.b.intrinsic("floor", x))
    return select(pole, NAN, select(mirrored, value - cosine / sine * math.pi, value))
