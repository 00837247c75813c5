"""Circular functions: sine and cosine in float32, the others in float64 inside.

``sin``, ``cos`` and ``tan`` are right up to ``NEAR``: they reduce their argument with three float32 parts of pi/2. The
ones named ``wide`` go up to ``WIDE`` and give NaN beyond, as they reduce it in float64, which takes twice the time.
"""

from __future__ import annotations

import math

from polyax_kernels.emit.functions.blocks import (
    INF,
    NAN,
    V,
    absolute,
    bits,
    fma,
    from_bits,
    nearest,
    poly,
    select,
    with_sign,
)

_PIO2 = (1.570796251296997, 7.549789415861596e-08, 5.390302858158119e-15)  # float32 parts of pi/2, all positive,
# so that a negative zero survives the reduction
_PIO2_64 = (1.57079632679489655800, 6.12323399573676603587e-17)
_SIN = (-0.16666653471182169686, 0.0083320834536926213221, -0.00019504316575822674606)
_COS = (0.041666644383203397917, -0.0013887242975655563958, 0.000024423912859978469997)
_SIN64 = (-0.16666666666623967326, 0.0083333333238977590843, -0.00019841263069263312272, 2.7555197362514171603e-6,
          -2.4750030938352527675e-8)  # fmt: skip
_COS64 = (0.041666666666588180821, -0.0013888888876456604622, 0.000024801580175390447971, -2.7555423244902636544e-7,
          2.0638536209204317923e-9)  # fmt: skip
NEAR = 2.0**18
"""Up to here three float32 parts of pi/2 suffice."""
WIDE = 2.0**51
"""Up to here float64 holds the number of quarter turns."""


def sin_cos(r: V, single: bool = True) -> tuple[V, V]:
    """Sine and cosine on [-pi/4, pi/4]."""
    t = r * r
    s = fma(r * t, poly(t, *(_SIN if single else _SIN64)), r)
    c = fma(t * t, poly(t, *(_COS if single else _COS64)), fma(t, -0.5, 1.0))
    return s, c


def quadrant(s: V, c: V, n: V) -> V:
    """Swaps sine and cosine in odd quadrants and turns the sign in the lower half."""
    value = select((n & 1).compare("==", 0), s, c)
    n = n if n.type == "i32" else n.b.convert("trunc", n, "i32")
    flip = (n & 2) << 30
    if value.type == "float":
        return from_bits(bits(value) ^ flip)
    return select(flip.compare("==", 0), value, -value)


def _wave(x: V, shift: int) -> V:
    n, n_bits = nearest(x, 2 / math.pi)
    r = fma(n, -_PIO2[2], fma(n, -_PIO2[1], fma(n, -_PIO2[0], x)))
    s, c = sin_cos(r)
    return quadrant(s, c, n_bits + shift)


def _keep_zero(x: V, result: V) -> V:
    """Odd functions keep the sign of zero, which a sum of products loses."""
    return select(x.compare("==", 0.0), x, result)


def sin(x: V) -> V:
    return _keep_zero(x, _wave(x, 0))


def cos(x: V) -> V:
    return _wave(x, 1)


def tan(x: V) -> V:
    r, n = _reduce64(x)
    s, c = sin_cos(r, single=False)
    return _keep_zero(x, x.b.convert("fptrunc", tan_of(s, c, n), "float"))


def _reduce64(x: V) -> tuple[V, V]:
    wide = x.b.convert("fpext", x, "double")
    n, n_bits = nearest(wide, 2 / math.pi)
    r = fma(n, -_PIO2_64[1], fma(n, -_PIO2_64[0], wide))
    return r, x.b.convert("trunc", n_bits, "i32")


def _wide_wave(x: V, shift: int) -> V:
    """The sine as a product keeps the sign of zero; it costs the last bit that ``sin`` has right."""
    wide, n = _reduce64(x)
    r = x.b.convert("fptrunc", wide, "float")
    t = r * r
    _, c = sin_cos(r)
    return _inside(x, quadrant(r * fma(t, poly(t, *_SIN), 1.0), c, n + shift))


def _inside(x: V, result: V) -> V:
    return select(absolute(x) < WIDE, result, NAN)


def sin_wide(x: V) -> V:
    return _wide_wave(x, 0)


def cos_wide(x: V) -> V:
    return _wide_wave(x, 1)


def tan_wide(x: V) -> V:
    return _inside(x, tan(x))


def tan_of(s: V, c: V, n: V) -> V:
    """The tangent in quadrant ``n``, from sine and cosine of the reduced argument."""
    odd = (n & 1).compare("!=", 0)
    return select(odd, -c, s) / select(odd, s, c)


# inverses -------------------------------------------------------------------------------------------------------------

_ATAN64 = (-0.33333333331673077101, 0.19999999681615358442, -0.1428569337352451801, 0.11110444181488515708,
           -0.090790573335113922773, 0.075679335840983061083, -0.058886970308375054217,
           0.030857636216348425109)  # fmt: skip
_ASIN64 = (0.16666666669695824373, 0.074999995255754512739, 0.044643112480339226339, 0.030375232992406359048,
           0.022471305446402321185, 0.0164777791602471983, 0.018630147376802322655, -0.0028575979982313664859,
           0.031958612522896151628)  # fmt: skip


def _atan_unit(z: V) -> V:
    """On [0, 1]; above tan(pi/8), pi/4 is split off."""
    far = z > math.tan(math.pi / 8)
    z = select(far, (z - 1.0) / (z + 1.0), z)
    t = z * z
    return fma(z * t, poly(t, *_ATAN64), z) + select(far, math.pi / 4, z.like(0.0))


def atan64(x: V) -> V:
    a = absolute(x)
    far = a > 1.0
    angle = _atan_unit(select(far, 1.0 / a, a))
    return with_sign(select(far, math.pi / 2 - angle, angle), x)


def atan2_64(y: V, x: V) -> V:
    """The angle of (x, y), with C's values for zeros and infinities."""
    a, c = absolute(y), absolute(x)
    steep = a > c
    low, high = select(steep, c, a), select(steep, a, c)
    endless = low.compare("==", INF) & high.compare("==", INF)
    z = select((low + high).compare("==", 0.0), 0.0, select(endless, 1.0, low / high))
    angle = _atan_unit(z)
    angle = select(steep, math.pi / 2 - angle, angle)
    # a product: of a copied sign that is narrowed twice LLVM makes one conversion to float16, which x86 lacks
    return select(bits(x) < 0, math.pi - angle, angle) * with_sign(y.like(1.0), y)


def _asin_parts(x: V) -> tuple[V, V]:
    """Whether |x| > 1/2, and then asin(sqrt((1 - |x|) / 2)), else asin(|x|)."""
    a = absolute(x)
    far = a > 0.5
    t = select(far, (1.0 - a) * 0.5, a * a)
    s = select(far, x.b.intrinsic("sqrt", t), a)
    return far, fma(s * t, poly(t, *_ASIN64), s)


def asin64(x: V) -> V:
    far, p = _asin_parts(x)
    return with_sign(select(far, fma(p, -2.0, math.pi / 2), p), x)


def acos64(x: V) -> V:
    far, p = _asin_parts(x)
    middle = math.pi / 2 - with_sign(p, x)
    return select(far, select(x < 0.0, fma(p, -2.0, math.pi), p * 2.0), middle)
