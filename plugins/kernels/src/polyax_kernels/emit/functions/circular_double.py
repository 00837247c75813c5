"""Circular functions of float64, within 2 ulp. Sine, cosine and tangent are right up to ``NEAR``; ``wave`` and
``tangent`` make them of arguments that were reduced elsewhere."""

from __future__ import annotations

import math

from polyax_kernels.emit.functions.blocks import (
    INF,
    NAN,
    V,
    absolute,
    bits,
    fma,
    nearest,
    poly,
    select,
    with_sign,
)
from polyax_kernels.emit.functions.circular import quadrant, tan_of
from polyax_kernels.emit.functions.pairs import any_sum, ordered_sum, product

NEAR = 2.0**30
"""Up to here three parts of pi/2 suffice."""
PIO2 = (1.57079632679489655800, 6.12323399573676603587e-17, -1.4973849048591833e-33)
_SIN = (-0.16666666666666631652, 0.0083333333333223151795, -0.00019841269829725193806, 2.7557313662051963594e-6,
        -2.5050753263830378362e-8, 1.5896504923881373185e-10)  # fmt: skip
_COS = (0.041666666666666598748, -0.001388888888887399078, 0.00002480158728939495263, -2.7557314326037361685e-7,
        2.0875719559526112286e-9, -1.1359448719474508781e-11)  # fmt: skip


def _sin_cos(r: V, low: V) -> tuple[V, V]:
    """Sine and cosine of r + low on [-pi/4, pi/4]: those of r, with the derivative's share of low."""
    t = r * r
    half = t * 0.5
    top = 1.0 - half
    sine = r + fma(r * t, poly(t, *_SIN), fma(-half, low, low))
    cosine = top + fma(t * t, poly(t, *_COS), fma(-r, low, (1.0 - top) - half))
    return sine, cosine


def _reduced(x: V) -> tuple[V, V, V]:
    """``r + low`` and the low bits of ``n`` with x = n pi/2 + r. The first part's product is subtracted exactly."""
    n, n_bits = nearest(x, 2 / math.pi)
    near = fma(n, -PIO2[0], x)
    step, lost = product(n, PIO2[1])
    r, low = any_sum(near, -step)
    return r, fma(n, -PIO2[2], low - lost), n_bits


def wave(kind: str, r: V, low: V, n: V) -> V:
    """``sin``, ``cos`` or ``tan`` of n quarter turns and an angle of r + low."""
    sine, cosine = _sin_cos(r, low)
    return tan_of(sine, cosine, n) if kind == "tan" else quadrant(sine, cosine, n + (1 if kind == "cos" else 0))


def near(kind: str, x: V) -> V:
    """Odd functions keep the sign of zero, which a sum of products loses."""
    result = wave(kind, *_reduced(x))
    return result if kind == "cos" else select(x.compare("==", 0.0), x, result)


def inside(kind: str, x: V) -> V:
    """NaN where ``near`` isn't right."""
    return select(absolute(x) < NEAR, near(kind, x), NAN)


# inverses -------------------------------------------------------------------------------------------------------------

_ATAN = (-0.33333333333333198843, 0.19999999999953999538, -0.14285714280239720604, 0.11111110785677773078,
         -0.090908978226925749456, 0.076920613839534533685, -0.066631174182483064706, 0.058479867470467926227,
         -0.050397431464009005414, 0.038075661324867664591, -0.01791930604081256768)  # fmt: skip
_ASIN = (0.16666666666666762441, 0.074999999999702590573, 0.044642857175123202142, 0.030381942683523449082,
         0.022372215662395322996, 0.017351600062778905098, 0.013980961714080251992, 0.011397774414456281519,
         0.010786535253998593508, 0.003683026521108098662, 0.021763521181679782772, -0.021077305648608708255,
         0.032676889204111529625)  # fmt: skip


def _arctangent(low: V, high: V) -> tuple[V, V]:
    """The angle of (high, low), 0 <= low <= high, as a sum. Above tan(pi/8) it is pi/4 and that of a point that is
    turned by pi/4; what rounding loses of coordinates and of their ratio is in the second."""
    far = low > high * math.tan(math.pi / 8)
    total, lost = ordered_sum(high, low)
    above, below = select(far, low - high, low), select(far, total, high)
    inverse = 1.0 / below
    z = above * inverse
    more = (fma(-z, below, above) - select(far, z * lost, 0.0)) * inverse
    t = z * z
    angle, rest = ordered_sum(select(far, math.pi / 4, z.like(0.0)), z)
    rest = rest + select(far, PIO2[1] / 2, z.like(0.0))
    return angle, fma(z * t, poly(t, *_ATAN), fma(-t, more, more) + rest)


def _from(whole: float, lost: float, angle: tuple[V, V]) -> V:
    """``whole + lost`` minus the angle."""
    return (whole - angle[0]) - (angle[1] - lost)


def atan(x: V) -> V:
    a = absolute(x)
    steep = a > 1.0
    angle = _arctangent(select(steep, 1.0, a), select(steep, a, 1.0))
    turned = _from(PIO2[0], PIO2[1], angle)
    result = select(steep, turned, angle[0] + angle[1])
    return with_sign(select(a.compare("==", INF), PIO2[0], result), x)


def atan2(y: V, x: V) -> V:
    """The angle of (x, y), with C's values for zeros and infinities. Both are scaled so that their sum is finite."""
    a, c = absolute(y), absolute(x)
    steep = a > c
    low, high = select(steep, c, a), select(steep, a, c)
    endless = high.compare("==", INF)
    low = select(endless, select(low.compare("==", INF), 1.0, low.like(0.0)), low)
    high = select(endless | high.compare("==", 0.0), 1.0, high)
    large, small = high > 2.0**1000, high < 2.0**-900
    by = select(large, 2.0**-100, select(small, 2.0**120, high.like(1.0)))
    angle = _arctangent(low * by, high * by)
    angle = select(steep, PIO2[0] - angle[0], angle[0]), select(steep, PIO2[1] - angle[1], angle[1])
    result = select(bits(x) < 0, _from(2 * PIO2[0], 2 * PIO2[1], angle), angle[0] + angle[1])
    result = select(y.compare("!=", y) | x.compare("!=", x), x + y, result)
    return with_sign(result, y)


def _asin_parts(x: V) -> tuple[V, V, V]:
    """Whether |x| > 1/2, and then asin(sqrt((1 - |x|) / 2)) as a sum, else asin(|x|)."""
    a = absolute(x)
    far = a > 0.5
    t = select(far, (1.0 - a) * 0.5, a * a)
    root = x.b.intrinsic("sqrt", t)
    lost = fma(-root, root, t) / (root + root)
    s = select(far, root, a)
    lost = select(far & (t > 0.0), lost, 0.0)
    return far, s, fma(s * t, poly(t, *_ASIN), lost)


def asin(x: V) -> V:
    far, s, rest = _asin_parts(x)
    turned = fma(s, -2.0, PIO2[0]) - fma(rest, 2.0, -PIO2[1])
    return with_sign(select(far, turned, s + rest), x)


def acos(x: V) -> V:
    """Up to 1/2, pi/2 - asin(x); for a negative x beyond, pi minus that of |x|."""
    far, s, rest = _asin_parts(x)
    middle = (PIO2[0] - with_sign(s, x)) - (with_sign(rest, x) - PIO2[1])
    turned = fma(s, -2.0, 2 * PIO2[0]) - fma(rest, 2.0, -2 * PIO2[1])
    return select(far, select(x < 0.0, turned, (s + rest) * 2.0), middle)
