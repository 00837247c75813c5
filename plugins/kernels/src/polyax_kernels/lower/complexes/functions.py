"""Elementary functions of complex numbers in terms of their parts.

W. Kahan, "Branch cuts for complex elementary functions", 1987, is meant by Kahan.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polyax.ir.aval import aval_of
from polyax.ops.basis import add, convert, div, eq, mul, neg, sub
from polyax.ops.compare import bitwise_and, bitwise_not, bitwise_or, ge, gt, lt
from polyax.ops.elementwise import abs as absolute
from polyax.ops.elementwise import (
    asinh,
    atan2,
    cos,
    cosh,
    exp,
    expm1,
    is_finite,
    log,
    log1p,
    sign,
    sin,
    sinh,
    sqrt,
    tan,
)
from polyax.ops.elementwise import max as maximum
from polyax_kernels.lower.complexes.formulas import (
    FORMULAS,
    Parts,
    divided,
    formula,
    modulus,
    number,
    ratio_of,
    scaled,
    shifted,
    times,
    where,
    zero,
)

__all__ = ["FORMULAS"]


# --- roots and logarithms ---------------------------------------------------------------------------------------------


@formula("sqrt")
def root(z: Parts) -> Parts:
    """The root in the right half plane. Kahan; halves are taken first, so that nothing overflows."""
    a, b = z
    t = sqrt(add(scaled(absolute(a), 0.5), scaled(modulus(z), 0.5)))
    flat = eq(t, zero(t))
    other = div(scaled(b, 0.5), where(flat, number(t, 1), t))
    right = ge(a, zero(a))
    re = where(right, t, absolute(other))
    im = where(right, other, where(_negative(b), neg(t), t))
    far = eq(absolute(b), number(b, np.inf))
    level = bitwise_and(eq(absolute(a), number(a, np.inf)), is_finite(b))
    im = where(far, b, where(level, where(right, scaled(b, 0), im), im))
    re = where(far, absolute(b), where(level, where(right, a, zero(a)), re))
    return re, where(flat, b, im)


def _negative(x: Any) -> Any:
    """Whether the sign is set, that of zero too."""
    return lt(where(eq(x, zero(x)), div(number(x, 1), x), x), zero(x))


@formula("rsqrt")
def _rsqrt(z: Parts) -> Parts:
    return divided((number(z[0], 1), zero(z[0])), root(z))


@formula("log")
def logarithm(z: Parts) -> Parts:
    """Near the unit circle the logarithm of the modulus is that of ``1 + (x - 1)(x + 1) + y^2``."""
    large, ratio = ratio_of(z)
    small = mul(large, ratio)
    near = bitwise_and(gt(large, number(large, 0.5)), lt(large, number(large, 2)))
    excess = add(mul(shifted(large, -1), shifted(large, 1)), mul(small, small))
    rest = scaled(log1p(where(near, excess, mul(ratio, ratio))), 0.5)
    size = where(near, rest, add(log(large), rest))
    infinite = bitwise_or(*[eq(absolute(x), number(x, np.inf)) for x in z])
    return where(infinite, number(size, np.inf), size), atan2(z[1], z[0])


@formula("log1p")
def _log1p(z: Parts) -> Parts:
    """Of ``1 + x + iy``: where that is near 1 it is ``log1p(2x + x^2 + y^2) / 2``."""
    a, b = z
    one_more = shifted(a, 1)
    small = lt(maximum(absolute(a), absolute(b)), number(a, 0.5))
    near = scaled(log1p(add(mul(a, shifted(a, 2)), mul(b, b))), 0.5)
    re, im = logarithm((one_more, b))
    return where(small, near, re), im


# --- exponentials -----------------------------------------------------------------------------------------------------


def damped(x: Any, y: Any) -> Any:
    """``x y``, and zero where ``x`` is, even if ``y`` is infinite or NaN."""
    finite = where(eq(y, y), sign(y), number(y, 1))
    return mul(x, where(eq(x, zero(x)), finite, y))


@formula("exp")
def exponential(z: Parts) -> Parts:
    """Where ``exp(x)`` overflows, its root is multiplied twice: the product may be finite."""
    a, b = z
    limit = {4: 88.0, 8: 709.0}[aval_of(a).dtype.itemsize]
    large = gt(a, number(a, limit))
    size = exp(where(large, scaled(a, 0.5), a))
    again = where(large, size, number(size, 1))
    low = bitwise_and(eq(a, number(a, -np.inf)), bitwise_not(is_finite(b)))  # of modulus 0, whatever the angle
    re, im = (damped(damped(f(b), size), again) for f in (cos, sin))
    return where(low, zero(a), re), where(low, zero(a), im)


@formula("exp2")
def _exp2(z: Parts) -> Parts:
    return exponential((scaled(z[0], np.log(2)), scaled(z[1], np.log(2))))


@formula("expm1")
def _expm1(z: Parts) -> Parts:
    """``expm1(x) cos(y) - 2 sin(y/2)^2``, whose terms are small where the result is. Of either zero it is +0."""
    a, b = z
    half, size = sin(scaled(b, 0.5)), where(eq(a, zero(a)), zero(a), expm1(a))
    re = sub(mul(size, cos(b)), scaled(mul(half, half), 2))
    return where(eq(a, number(a, -np.inf)), size, re), exponential(z)[1]


@formula("logistic")
def _logistic(z: Parts) -> Parts:
    a, b = exponential((neg(z[0]), neg(z[1])))
    return divided((number(a, 1), zero(a)), (shifted(a, 1), b))


@formula("pow")
def power(x: Parts, y: Any) -> Parts:
    """``exp(y log(x))``; 0 to the power of 0 is 1, and to those with a positive real part 0; infinity to positive
    powers stays itself."""
    a, b = x
    if not isinstance(y, tuple):
        y = convert(y, aval_of(a).dtype), zero(a)
    re, im = exponential(times(y, logarithm(x)))
    nothing, one = zero(re), number(re, 1)
    flat = bitwise_and(eq(a, nothing), eq(b, nothing))
    none = bitwise_and(eq(y[0], nothing), eq(y[1], nothing))
    vanishes = bitwise_and(flat, gt(y[0], nothing))
    re, im = where(vanishes, nothing, re), where(vanishes, nothing, im)
    endless = bitwise_and(eq(a, number(a, np.inf)), eq(b, nothing))
    grows = bitwise_and(endless, bitwise_and(gt(y[0], nothing), eq(y[1], nothing)))
    re, im = where(grows, a, re), where(grows, nothing, im)
    return where(none, one, re), where(none, nothing, im)


# --- trigonometric and hyperbolic functions ---------------------------------------------------------------------------


@formula("sin")
def _sin(z: Parts) -> Parts:
    a, b = z
    return damped(sin(a), cosh(b)), damped(cos(a), sinh(b))


@formula("cos")
def _cos(z: Parts) -> Parts:
    a, b = z
    return damped(cos(a), cosh(b)), neg(damped(sin(a), sinh(b)))


@formula("sinh")
def _sinh(z: Parts) -> Parts:
    a, b = z
    return damped(cos(b), sinh(a)), damped(sin(b), cosh(a))


@formula("cosh")
def _cosh(z: Parts) -> Parts:
    a, b = z
    return damped(cos(b), cosh(a)), damped(sin(b), sinh(a))


@formula("tanh")
def hyperbolic_tangent(z: Parts) -> Parts:
    """Kahan: in terms of ``tan(y)`` and ``sinh(x)``; far out it is 1, with ``4 sin(y) cos(y) exp(-2|x|)``."""
    a, b = z
    t = tan(b)
    far = gt(absolute(a), number(a, {4: 11.0, 8: 22.0}[aval_of(a).dtype.itemsize]))
    far = bitwise_and(far, bitwise_or(eq(t, t), bitwise_not(is_finite(a))))  # else all is NaN
    near = where(far, zero(a), a)
    s = sinh(near)
    beta, rho = shifted(mul(t, t), 1), sqrt(shifted(mul(s, s), 1))
    below = shifted(mul(beta, mul(s, s)), 1)
    tail = scaled(damped(exp(scaled(absolute(a), -2)), mul(sin(b), cos(b))), 4)
    slope = where(eq(t, zero(t)), t, div(t, below))  # even if x is NaN
    return where(far, sign(a), div(mul(mul(beta, rho), s), below)), where(far, tail, slope)


@formula("tan")
def _tan(z: Parts) -> Parts:
    """``tan(z) = -i tanh(iz)``."""
    re, im = hyperbolic_tangent((neg(z[1]), z[0]))
    return im, neg(re)


# --- their inverses ---------------------------------------------------------------------------------------------------


def _roots(z: Parts) -> tuple[Parts, Parts]:
    """Of ``1 - z`` and ``1 + z``."""
    a, b = z
    return root((sub(number(a, 1), a), neg(b))), root((shifted(a, 1), b))


def _crossed(x: Parts, y: Parts) -> Any:
    """The imaginary part of ``conj(x) y``."""
    return sub(mul(x[0], y[1]), mul(x[1], y[0]))


def _angle(im: Any, re: Any, z: Parts, far_im: Any, far_re: Any) -> tuple[Any, Any]:
    """``atan2(im, re)``, and where a part of ``z`` is infinite that of the others; where that is."""
    far = bitwise_or(*[eq(absolute(x), number(x, np.inf)) for x in z])
    return far, atan2(where(far, far_im, im), where(far, far_re, re))


def _unit(x: Any) -> Any:
    """1 or -1 of what is infinite, and 0 of what isn't, with its sign; NaN of NaN."""
    return where(eq(absolute(x), number(x, np.inf)), sign(x), scaled(x, 0))


def _signed(size: float, like: Any) -> Any:
    return where(_negative(like), number(like, -size), number(like, size))


@formula("asin")
def arc_sine(z: Parts) -> Parts:
    """Kahan."""
    below, above = _roots(z)
    re = sub(mul(below[0], above[0]), mul(below[1], above[1]))
    far, angle = _angle(z[0], re, z, _unit(z[0]), absolute(_unit(z[1])))
    return angle, where(far, _signed(np.inf, z[1]), asinh(_crossed(below, above)))


@formula("acos")
def _acos(z: Parts) -> Parts:
    """Kahan."""
    below, above = _roots(z)
    far, angle = _angle(below[0], above[0], z, absolute(_unit(z[1])), _unit(z[0]))
    size = where(far, neg(_signed(np.inf, z[1])), asinh(_crossed(above, below)))
    return where(far, angle, scaled(angle, 2)), size


@formula("asinh")
def _asinh(z: Parts) -> Parts:
    """``asinh(z) = -i asin(iz)``."""
    re, im = arc_sine((neg(z[1]), z[0]))
    return im, neg(re)


@formula("acosh")
def _acosh(z: Parts) -> Parts:
    """Kahan."""
    a, b = z
    below, above = root((shifted(a, -1), b)), root((shifted(a, 1), b))
    re = add(mul(below[0], above[0]), mul(below[1], above[1]))
    far, angle = _angle(below[1], above[0], z, _unit(b), _unit(a))
    return where(far, number(re, np.inf), asinh(re)), where(far, angle, scaled(angle, 2))


@formula("atanh")
def area_tangent(z: Parts) -> Parts:
    """``log((1 + z) / (1 - z)) / 2``, its parts apart, for positive real parts; the function is odd in them."""
    a, b = absolute(z[0]), z[1]
    rest, square = sub(number(a, 1), a), mul(b, b)
    far = bitwise_or(*[eq(absolute(x), number(x, np.inf)) for x in z])
    re = scaled(log1p(div(scaled(a, 4), add(mul(rest, rest), square))), 0.25)
    im = scaled(atan2(scaled(b, 2), sub(mul(rest, shifted(a, 1)), square)), 0.5)
    re = where(far, zero(a), re)
    return where(_negative(z[0]), neg(re), re), where(far, _signed(np.pi / 2, b), im)


@formula("atan")
def _atan(z: Parts) -> Parts:
    """``atan(z) = i atanh(-iz)``."""
    re, im = area_tangent((z[1], neg(z[0])))
    return neg(im), re
