"""Arithmetic, powers, exponentials, trigonometric and hyperbolic functions: the table of the elementwise primitives.

A derivative is ``(t, z, x, ...) -> tangent``: tangent, result, operands. Names of the public functions are those of
``lax``, builtins included.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from operator import index
from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.ir.aval import aval_of
from polyax.ir.primitive import Primitive
from polyax.ops.basis import (
    add,
    add_p,
    binary,
    convert,
    div,
    div_p,
    eq,
    full_like,
    mul,
    mul_p,
    named,
    neg,
    neg_p,
    same_dtype,
    select_n,
    sub,
    sub_p,
    unary,
)
from polyax.ops.compare import ge
from polyax.ops.convert import imag, real
from polyax.ops.define import FLOAT, INEXACT, MAGNITUDES, NUMBER, ORDERED, REAL, check_dtype, elementwise

__all__ = [
    "RoundingMethod", "abs", "abs_p", "acos", "acos_p", "acosh", "acosh_p", "asin", "asin_p", "asinh", "asinh_p",
    "atan", "atan2", "atan2_p", "atan_p", "atanh", "atanh_p", "cbrt", "cbrt_p", "ceil", "ceil_p", "cos", "cos_p",
    "cosh", "cosh_p", "exp", "exp2", "exp2_p", "exp_p", "expm1", "expm1_p", "floor", "floor_p", "integer_pow",
    "integer_pow_p", "is_finite", "is_finite_p", "log", "log1p", "log1p_p", "log_p", "logistic", "logistic_p", "max",
    "max_p", "min", "min_p", "nextafter", "nextafter_p", "pow", "pow_p", "reciprocal", "rem", "rem_p", "round",
    "round_p", "rsqrt", "rsqrt_p", "sign", "sign_p", "sin", "sin_p", "sinh", "sinh_p", "sqrt", "sqrt_p", "square",
    "square_p", "tan", "tan_p", "tanh", "tanh_p",
]  # fmt: skip


def accurate(primitive: Primitive, doc: str) -> Callable[..., Any]:
    """``unary`` for a function whose accuracy can be asked for: it is as exact as the most exact setting asks for, so
    that there is nothing to choose."""
    primitive.unset |= {"accuracy"}

    def apply(x: Any, accuracy: Any = None) -> Any:
        if accuracy is not None and not getattr(accuracy, "is_accuracy", False):
            raise NotImplementedError(f"Accuracy {accuracy} not supported; give an AccuracyMode, a Tolerance, or None")
        return primitive.bind1(x)

    return named(apply, primitive.name, doc)


# --- arithmetic -----------------------------------------------------------------------------------------------------

elementwise(add_p, (NUMBER, NUMBER), (lambda t, z, x, y: t, lambda t, z, x, y: t), linear_in=(0, 1))
elementwise(sub_p, (NUMBER, NUMBER), (lambda t, z, x, y: t, lambda t, z, x, y: neg(t)), linear_in=(0, 1))
elementwise(mul_p, (NUMBER, NUMBER), (lambda t, z, x, y: mul(t, y), lambda t, z, x, y: mul(x, t)), linear_in=(0, 1))
elementwise(
    div_p,
    (NUMBER, NUMBER),
    (lambda t, z, x, y: div(t, y), lambda t, z, x, y: mul(mul(neg(t), z), div(1, y))),
    linear_in=(0,),
)
elementwise(neg_p, NUMBER, lambda t, z, x: neg(t), linear_in=(0,))
sign_p = elementwise("sign", NUMBER)
floor_p = elementwise("floor", FLOAT)
ceil_p = elementwise("ceil", FLOAT)
round_p = elementwise("round", FLOAT)
nextafter_p = elementwise("nextafter", (FLOAT, FLOAT))
is_finite_p = elementwise("is_finite", FLOAT, out=lambda d: np.dtype(bool))

sign = unary(sign_p, "-1, 0 or 1 with the sign of ``x``; for complex numbers ``x / |x|``, or 0.")
floor = unary(floor_p, "The largest integer that is not above ``x``.")
ceil = unary(ceil_p, "The smallest integer that is not below ``x``.")
is_finite = unary(is_finite_p, "Whether ``x`` is neither infinite nor NaN.")


def nextafter(x1: Any, x2: Any) -> Any:
    """The next representable number after ``x1`` in the direction of ``x2``."""
    return nextafter_p.bind1(*same_dtype(x1, x2))


class RoundingMethod(enum.IntEnum):
    """Where halves go."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


def round(x: Any, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Any:
    """The nearest integer; halves go as ``rounding_method`` says."""
    return round_p.bind1(x, rounding_method=RoundingMethod(rounding_method))


def reciprocal(x: Any) -> Any:
    """``1 / x``."""
    return integer_pow(x, -1)


def _abs_jvp(t: Any, z: Any, x: Any) -> Any:
    """d|x| = (Re x dRe x + Im x dIm x) / |x|, and 0 at 0; of real x it is that from above at 0."""
    if not dtypes.is_complex(aval_of(x).dtype):
        return mul(t, select_n(ge(x, 0), full_like(x, -1), full_like(x, 1)))
    inner = add(mul(real(x), real(t)), mul(imag(x), imag(t)))
    return div(inner, select_n(eq(z, 0), z, full_like(z, 1)))


def _share(z: Any, x: Any, y: Any) -> Any:
    """Which part of the extremum's derivative belongs to ``x``: 1, 0, or a half where both attain it."""
    one, zero = full_like(z, 1), full_like(z, 0)
    return div(select_n(eq(x, z), zero, one), select_n(eq(y, z), one, full_like(z, 2)))


_EXTREMUM = (lambda t, z, x, y: mul(t, _share(z, x, y)), lambda t, z, x, y: mul(t, _share(z, y, x)))


def _rem_in_divisor(t: Any, z: Any, x: Any, y: Any) -> Any:
    """rem(x, y) = x - y trunc(x / y)."""
    q = div(x, y)
    return mul(neg(t), mul(sign(q), floor(abs(q))))


abs_p = elementwise("abs", MAGNITUDES, _abs_jvp, out=dtypes.real_part)
max_p = elementwise("max", (ORDERED, ORDERED), _EXTREMUM)
min_p = elementwise("min", (ORDERED, ORDERED), _EXTREMUM)
rem_p = elementwise("rem", (REAL, REAL), (lambda t, z, x, y: t, _rem_in_divisor), linear_in=())
square_p = elementwise("square", NUMBER, lambda t, z, x: mul(t, mul(2, x)))

abs = unary(abs_p, "Absolute value; real for complex numbers.")
max = binary(max_p, "Elementwise maximum; NaN if either is.")
min = binary(min_p, "Elementwise minimum; NaN if either is.")
rem = binary(rem_p, "Remainder with the sign of ``x``; ``x`` itself for an integer ``y`` of zero.")
square = unary(square_p, "``x * x``.")

# --- powers and roots -----------------------------------------------------------------------------------------------


def _nonzero(x: Any) -> Any:
    """``x``, with 1 instead of 0."""
    return select_n(eq(x, 0), x, full_like(x, 1))


def _pow_in_base(t: Any, z: Any, x: Any, y: Any) -> Any:
    """y x^(y-1), which is 0 for y = 0, also at x = 0; elsewhere the exponent stays a function of y, whose derivative
    that of the slope is made from."""
    y = convert(y, aval_of(x).dtype) if aval_of(y).dtype != aval_of(x).dtype else y
    both = mul(*(convert(eq(v, 0), aval_of(x).dtype) for v in (x, y)))
    return mul(t, mul(y, pow(x, add(sub(y, 1), mul(both, 2)))))


def _pow_in_exponent(t: Any, z: Any, x: Any, y: Any) -> Any:
    """x^y log x, with 0 log 0 = 0."""
    return mul(t, mul(log(_nonzero(x)), z))


def _integer_pow_jvp(t: Any, z: Any, x: Any, *, y: int) -> Any:
    return full_like(t, 0) if y == 0 else mul(t, mul(y, x if y == 2 else integer_pow(x, y - 1)))


pow_p = elementwise("pow", (INEXACT, NUMBER), (_pow_in_base, _pow_in_exponent), mixed=True, out=lambda x, y: x)
integer_pow_p = elementwise("integer_pow", NUMBER, _integer_pow_jvp, out=lambda d, y: d)
sqrt_p = elementwise("sqrt", INEXACT, lambda t, z, x: mul(t, div(0.5, z)))
rsqrt_p = elementwise("rsqrt", INEXACT, lambda t, z, x: mul(t, mul(-0.5, div(z, x))))
cbrt_p = elementwise("cbrt", FLOAT, lambda t, z, x: mul(t, div(full_like(z, 1 / 3), mul(z, z))))

sqrt = accurate(sqrt_p, "Square root; NaN for negative numbers.")
rsqrt = accurate(rsqrt_p, "``1 / sqrt(x)``.")
cbrt = accurate(cbrt_p, "Cube root; of negative numbers too.")


def pow(x: Any, y: Any) -> Any:
    """``x ** y`` for an inexact ``x``; ``y`` is of the same dtype or an integer.

    Raises:
      TypeError: they are of other dtypes.
    """
    if isinstance(y, int) and not isinstance(y, bool):
        check_dtype("pow", aval_of(x), INEXACT, 0)
        return integer_pow(x, y)
    if not dtypes.is_integer(aval_of(y).dtype):
        x, y = same_dtype(x, y)
    return pow_p.bind1(x, y)


def integer_pow(x: Any, y: int) -> Any:
    """``x ** y`` for a Python integer ``y``, by repeated multiplication.

    Raises:
      TypeError: ``x`` is an integer and ``y`` is negative.
    """
    y = index(y)
    if y < 0 and dtypes.is_integer(aval_of(x).dtype):
        raise TypeError(f"Integers cannot be raised to negative powers, got integer_pow({aval_of(x)}, {y})")
    return integer_pow_p.bind1(x, y=y)


# --- exponentials and logarithms ------------------------------------------------------------------------------------

LN2 = 0.6931471805599453

exp_p = elementwise("exp", INEXACT, lambda t, z, x: mul(t, z))
exp2_p = elementwise("exp2", INEXACT, lambda t, z, x: mul(t, mul(LN2, z)))
log_p = elementwise("log", INEXACT, lambda t, z, x: div(t, x))
expm1_p = elementwise("expm1", INEXACT, lambda t, z, x: mul(t, add(z, 1.0)))
log1p_p = elementwise("log1p", INEXACT, lambda t, z, x: div(t, add(x, 1.0)))
logistic_p = elementwise("logistic", INEXACT, lambda t, z, x: mul(t, mul(z, sub(1.0, z))))

exp = accurate(exp_p, "``e ** x``.")
exp2 = accurate(exp2_p, "``2 ** x``.")
log = accurate(log_p, "Natural logarithm; NaN for negative numbers.")
expm1 = accurate(expm1_p, "``e ** x - 1``, accurate near 0.")
log1p = accurate(log1p_p, "``log(1 + x)``, accurate near 0.")
logistic = accurate(logistic_p, "``1 / (1 + exp(-x))``.")

# --- trigonometric and hyperbolic functions, and their inverses -----------------------------------------------------

_NORM = (
    lambda t, z, x, y: mul(t, div(y, add(square(x), square(y)))),
    lambda t, z, x, y: mul(t, div(neg(x), add(square(x), square(y)))),
)

sin_p = elementwise("sin", INEXACT, lambda t, z, x: mul(t, cos(x)))
cos_p = elementwise("cos", INEXACT, lambda t, z, x: neg(mul(t, sin(x))))
tan_p = elementwise("tan", INEXACT, lambda t, z, x: mul(t, add(1.0, square(z))))
asin_p = elementwise("asin", INEXACT, lambda t, z, x: mul(t, rsqrt(sub(1.0, square(x)))))
acos_p = elementwise("acos", INEXACT, lambda t, z, x: mul(t, neg(rsqrt(sub(1.0, square(x))))))
atan_p = elementwise("atan", INEXACT, lambda t, z, x: div(t, add(1.0, square(x))))
atan2_p = elementwise("atan2", (FLOAT, FLOAT), _NORM)
sinh_p = elementwise("sinh", INEXACT, lambda t, z, x: mul(t, cosh(x)))
cosh_p = elementwise("cosh", INEXACT, lambda t, z, x: mul(t, sinh(x)))
tanh_p = elementwise("tanh", INEXACT, lambda t, z, x: mul(add(t, mul(t, z)), sub(1.0, z)))  # (1 + z)(1 - z)
asinh_p = elementwise("asinh", INEXACT, lambda t, z, x: mul(t, rsqrt(add(square(x), 1.0))))
acosh_p = elementwise("acosh", INEXACT, lambda t, z, x: mul(t, mul(rsqrt(sub(x, 1.0)), rsqrt(add(x, 1.0)))))
atanh_p = elementwise("atanh", INEXACT, lambda t, z, x: mul(div(t, add(1.0, x)), div(1.0, sub(1.0, x))))

sin = accurate(sin_p, "Sine.")
cos = accurate(cos_p, "Cosine.")
tan = accurate(tan_p, "Tangent.")
asin = unary(asin_p, "Arc sine; NaN outside [-1, 1].")
acos = unary(acos_p, "Arc cosine; NaN outside [-1, 1].")
atan = unary(atan_p, "Arc tangent.")
_angle = binary(atan2_p, "Of real numbers.", "atan2")


def atan2(x: Any, y: Any) -> Any:
    """Angle of the point with ordinate ``x`` and abscissa ``y``, in [-pi, pi].

    Of complex numbers ``-i log((y + i x) / sqrt(x^2 + y^2))``, which continues it.
    """
    if not dtypes.is_complex(aval_of(x).dtype):
        return _angle(x, y)
    radius = sqrt(add(square(x), square(y)))
    return mul(log(div(add(y, mul(x, 1j)), radius)), -1j)


sinh = unary(sinh_p, "Hyperbolic sine.")
cosh = unary(cosh_p, "Hyperbolic cosine.")
tanh = accurate(tanh_p, "Hyperbolic tangent.")
asinh = unary(asinh_p, "Inverse hyperbolic sine.")
acosh = unary(acosh_p, "Inverse hyperbolic cosine; NaN below 1.")
atanh = unary(atanh_p, "Inverse hyperbolic tangent; NaN outside [-1, 1].")
