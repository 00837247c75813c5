"""Elementwise functions of real and complex numbers: arithmetic, rounding, exponentials, trigonometry.

Each promotes its arguments as NumPy does (integers become float32 where the result is not an integer) and binds
primitives; broadcasting of equal ranks is left to these.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from polyax.control.calls.custom_jvp import custom_jvp
from polyax.ir import dtypes
from polyax.ir.aval import aval_of
from polyax.lax import lenient as lax
from polyax.lax.extrema import precedes
from polyax.numpy.broadcast import as_mask, choose
from polyax.numpy.fused import fused
from polyax.numpy.promotion import (
    as_array,
    check_arraylike,
    convert,
    is_traced,
    promote_args,
    promote_args_inexact,
    promote_args_numeric,
    promote_dtypes_numeric,
    promote_shapes,
    same,
    shape_of,
    strong,
    to_inexact,
    to_numeric,
    unwrap,
)
from polyax.ops.basis import named

__all__ = [
    "absolute", "acos", "acosh", "add", "angle", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2",
    "arctanh", "around", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "conj", "conjugate", "cos", "cosh",
    "deg2rad", "degrees", "divide", "divmod", "exp", "exp2", "expm1", "fabs", "float_power", "floor", "floor_divide",
    "fmax", "fmin", "fmod", "heaviside", "hypot", "imag", "iscomplex", "isreal", "ldexp", "log", "log1p", "log2",
    "log10", "logaddexp", "logaddexp2", "maximum", "minimum", "mod", "modf", "multiply", "negative", "nextafter",
    "positive", "pow", "power", "rad2deg", "radians", "real", "reciprocal", "remainder", "rint", "round", "sign", "sin",
    "sinc", "sinh", "sqrt", "square", "subtract", "tan", "tanh", "true_divide", "trunc",
]  # fmt: skip

_INEXACT_NOTE = "Booleans and integers are computed as float32, those of 64 bits as float64."


def unary(name: str, op: Callable[[Any], Any], doc: str, to: Callable[[Any], Any] = to_inexact) -> Callable[[Any], Any]:
    """An elementwise function of one argument, promoted by ``to``."""

    def fun(x: Any, /) -> Any:
        return op(*promote_args(name, x, to=to))

    note = _INEXACT_NOTE if to is to_inexact else ""
    return named(fun, name, f"{doc}\n\nElementwise, for arrays of any shape. {note}".rstrip())


def binary(name: str, op: Callable[[Any, Any], Any], doc: str, to: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    """An elementwise function of two arguments, which broadcast and are promoted to one dtype."""

    def fun(x1: Any, x2: Any, /) -> Any:
        return op(*promote_args(name, x1, x2, to=to))

    note = _INEXACT_NOTE if to is to_inexact else ""
    return named(fun, name, f"{doc}\n\nElementwise; shapes broadcast, dtypes are promoted. {note}".rstrip())


def _by_number(x: Any, divisor: float) -> Any:
    """Each part of complex numbers by it: one may be infinite and the other not."""
    if aval_of(x).dtype not in dtypes.COMPLEX:
        return lax.div(x, divisor)
    return lax.complex(lax.div(lax.real(x), divisor), lax.div(lax.imag(x), divisor))


def _times(x: Any, factor: float) -> Any:
    """Each part of complex numbers times it: one may be infinite and the other not."""
    if aval_of(x).dtype not in dtypes.COMPLEX:
        return lax.mul(x, factor)
    return lax.complex(lax.mul(lax.real(x), factor), lax.mul(lax.imag(x), factor))


# --- trigonometry and exponentials ------------------------------------------------------------------------------------

sin = unary("sin", lax.sin, "Sine of ``x`` in radians.")
cos = unary("cos", lax.cos, "Cosine of ``x`` in radians.")
tan = unary("tan", lax.tan, "Tangent of ``x`` in radians.")
asin = unary("arcsin", lax.asin, "Angle in [-pi/2, pi/2] whose sine is ``x``; NaN outside [-1, 1].")
acos = unary("arccos", lax.acos, "Angle in [0, pi] whose cosine is ``x``; NaN outside [-1, 1].")
atan = unary("arctan", lax.atan, "Angle in (-pi/2, pi/2) whose tangent is ``x``.")
sinh = unary("sinh", lax.sinh, "Hyperbolic sine.")
cosh = unary("cosh", lax.cosh, "Hyperbolic cosine.")
tanh = unary("tanh", lax.tanh, "Hyperbolic tangent.")
asinh = unary("arcsinh", lax.asinh, "Inverse hyperbolic sine.")
acosh = unary("arccosh", lax.acosh, "Inverse hyperbolic cosine; NaN below 1.")
atanh = unary("arctanh", lax.atanh, "Inverse hyperbolic tangent; NaN outside [-1, 1].")
exp = unary("exp", lax.exp, "The exponential function.")
exp2 = unary("exp2", lax.exp2, "Two to the power ``x``.")
expm1 = unary("expm1", lax.expm1, "``exp(x) - 1``, exact near zero.")
log = unary("log", lax.log, "Natural logarithm; NaN below zero, -inf at zero.")
log1p = unary("log1p", lax.log1p, "``log(1 + x)``, exact near zero.")
sqrt = unary("sqrt", lax.sqrt, "Square root; NaN below zero.")
cbrt = unary("cbrt", lax.cbrt, "Cube root.")
log2 = unary("log2", lambda x: strong(_by_number(lax.log(x), float(np.log(2.0)))), "Logarithm to base 2.")
log10 = unary("log10", lambda x: strong(_by_number(lax.log(x), float(np.log(10.0)))), "Logarithm to base 10.")
deg2rad = unary("deg2rad", lambda x: lax.mul(x, float(np.pi / 180)), "Degrees to radians.")
rad2deg = unary("rad2deg", lambda x: lax.mul(x, float(180 / np.pi)), "Radians to degrees.")
reciprocal = unary("reciprocal", lambda x: lax.integer_pow(x, -1), "``1 / x``.")
arcsin, arccos, arctan, arcsinh, arccosh, arctanh = asin, acos, atan, asinh, acosh, atanh
radians, degrees = deg2rad, rad2deg


atan2 = binary("arctan2", lax.atan2, "Angle of the point ``(x2, x1)`` in (-pi, pi].", to_inexact)
arctan2 = atan2


def nextafter(x: Any, y: Any, /) -> Any:
    """The next number after ``x`` in the direction of ``y``. Elementwise; shapes broadcast, dtypes are promoted."""
    return lax.nextafter(*promote_args_inexact("nextafter", x, y))


def sinc(x: Any, /) -> Any:
    """``sin(pi x) / (pi x)``, and 1 at zero. Elementwise."""
    (x,) = promote_args_inexact("sinc", x)
    at_zero = lax.eq(x, 0)
    angle = lax.mul(choose(at_zero, lax.full_like(x, 1), x), float(np.pi))
    return choose(at_zero, _sinc_at_zero(0, x), lax.div(lax.sin(angle), angle))


@partial(custom_jvp, nondiff_argnums=(0,))
def _sinc_at_zero(order: int, x: Any) -> Any:
    """The derivative of that order at 0: (-1)^(order / 2) pi^order / (order + 1), and 0 for odd orders."""
    value = 0 if order % 2 else (-1) ** (order // 2) * np.pi**order / (order + 1)
    return lax.full_like(x, value)


@_sinc_at_zero.defjvp
def _sinc_at_zero_jvp(order: int, primals: Any, tangents: Any) -> Any:
    return _sinc_at_zero(order, *primals), lax.mul(_sinc_at_zero(order + 1, *primals), *tangents)


def hypot(x1: Any, x2: Any, /) -> Any:
    """``sqrt(x1**2 + x2**2)`` without overflow of the squares. Elementwise, real arguments.

    >>> import polyax.numpy as jnp
    >>> jnp.hypot(3.0, 4.0).item()
    5.0
    """
    x1, x2 = promote_args_inexact("hypot", x1, x2)
    if aval_of(x1).dtype in dtypes.COMPLEX:
        raise ValueError(
            "jnp.hypot is not well defined for complex-valued inputs. Please convert to real values first, such as by "
            "using abs(x)"
        )
    x1, x2 = absolute(x1), absolute(x2)
    large, small = lax.max(x1, x2), lax.min(x1, x2)
    is_zero = lax.eq(large, 0)
    ratio = lax.div(small, choose(is_zero, lax.full_like(large, 1), large))
    finite = lax.mul(large, lax.sqrt(lax.add(lax.integer_pow(ratio, 2), 1.0)))
    infinite = lax.bitwise_or(lax.eq(x1, np.inf), lax.eq(x2, np.inf))  # even beside NaN
    return _strong_unless_scalar(choose(is_zero, large, choose(infinite, lax.full_like(large, np.inf), finite)))


def _strong_unless_scalar(x: Any) -> Any:
    """As JAX types what it selects beside a number spread over the same dimensions."""
    return strong(x) if np.shape(x) else x


@fused
def _log_add(x1: Any, x2: Any) -> Any:
    return _stable_log_add(x1, x2)


@custom_jvp
def _stable_log_add(x1: Any, x2: Any) -> Any:
    """max + log1p(exp(-|difference|)); equal infinities, whose difference is NaN, are added."""
    if aval_of(x1).dtype in dtypes.COMPLEX:
        return _complex_log_add(x1, x2)
    difference = lax.sub(x1, x2)
    undefined = lax.ne(difference, difference)
    gap = choose(undefined, lax.full_like(difference, 0), lax.abs(difference))
    return choose(undefined, lax.add(x1, x2), lax.add(lax.max(x1, x2), lax.log1p(lax.exp(lax.neg(gap)))))


def _complex_log_add(x1: Any, x2: Any) -> Any:
    """The same of complex numbers, the one of the larger real part first; its angle in (-pi, pi]."""
    large = choose(precedes(x1, x2, lax.gt), x1, x2)
    rest = lax.sub(lax.add(x1, x2), lax.mul(large, 2.0))
    out = lax.add(large, lax.log1p(lax.exp(rest)))
    angle = lax.sub(np.pi, lax.imag(out))
    turns = lax.mul(lax.floor(lax.div(angle, 2 * np.pi)), 2 * np.pi)
    return lax.complex(lax.real(out), lax.add(lax.imag(out), turns))


@_stable_log_add.defjvp
def _log_add_jvp(primals: Any, tangents: Any) -> Any:
    """Smooth where the arguments are equal: d log(e^x1 + e^x2) is the mean of the tangents, weighed by e^x."""
    out = _stable_log_add(*primals)
    finite = [choose(lax.eq(x, np.inf), lax.full_like(x, 0), x) for x in (*primals, out)]
    weighed = [lax.mul(t, lax.exp(lax.sub(x, finite[2]))) for t, x in zip(tangents, finite, strict=False)]
    return out, lax.add(*weighed)


logaddexp = binary("logaddexp", _log_add, "``log(exp(x1) + exp(x2))`` without overflow.", to_inexact)


def logaddexp2(x1: Any, x2: Any, /) -> Any:
    """``log2(2**x1 + 2**x2)`` without overflow. Elementwise."""
    x1, x2 = promote_args_inexact("logaddexp2", x1, x2)
    ln2 = float(np.log(2.0))
    return _strong_unless_scalar(_by_number(_log_add(_times(x1, ln2), _times(x2, ln2)), ln2))


# --- arithmetic -------------------------------------------------------------------------------------------------------


def _add(x: Any, y: Any) -> Any:
    return lax.bitwise_or(x, y) if aval_of(x).dtype in dtypes.BOOL else lax.add_p.bind1(x, y)


def _multiply(x: Any, y: Any) -> Any:
    return lax.bitwise_and(x, y) if aval_of(x).dtype in dtypes.BOOL else lax.mul_p.bind1(x, y)


def _product(x1: Any, x2: Any, /) -> Any:
    x, y = promote_args("multiply", x1, x2)
    for mask, other in ((x1, y), (x2, x)):
        if _covers(mask, x, y):
            return choose(mask, other, 0)
    return _multiply(x, y)


def _covers(mask: Any, x: Any, y: Any) -> bool:
    """Whether it is a mask of the shape of a product of numbers: what it covers is zero there, NaN too, as in XLA."""
    if getattr(mask, "dtype", None) not in dtypes.BOOL or not dtypes.is_inexact(aval_of(x).dtype):
        return False
    return shape_of(mask) == lax.broadcast_shapes(shape_of(x), shape_of(y))


add = binary("add", _add, "Sum; logical *or* of booleans.", same)
multiply = named(
    _product, "multiply", "Product; logical *and* of booleans. A mask leaves zeros of NaN and infinities too."
)
true_divide = binary("true_divide", lax.div_p.bind1, "Quotient, never an integer.", to_inexact)
divide = true_divide


maximum = binary("maximum", lax.max, "The larger of both; NaN where either is NaN.", same)
minimum = binary("minimum", lax.min, "The smaller of both; NaN where either is NaN.", same)
negative = unary("negative", lax.neg, "``-x``.", same)
positive = unary("positive", as_array, "``x`` itself, as an array.", same)
sign = unary("sign", lax.sign, "-1, 0 or 1 (``x / abs(x)`` for complex numbers); NaN stays NaN.", same)


def float_power(x: Any, y: Any, /) -> Any:
    """``x`` to the power ``y``, also of integers. Elementwise; shapes broadcast, dtypes are promoted."""
    return lax.pow_p.bind1(*promote_args_inexact("float_power", x, y))


square = unary("square", lax.square, "``x * x``.", to_numeric)


def subtract(x1: Any, x2: Any, /) -> Any:
    """Difference. Elementwise; shapes broadcast, dtypes are promoted.

    Raises:
      TypeError: both arguments are boolean.
    """
    x1, x2 = promote_args("subtract", x1, x2)
    if aval_of(x1).dtype in dtypes.BOOL:
        raise TypeError("subtract does not accept dtype bool: use logical_xor or bitwise_xor instead.")
    return lax.sub_p.bind1(x1, x2)


def absolute(x: Any, /) -> Any:
    """Absolute value; real for complex ``x``, ``x`` itself for booleans and unsigned integers. Elementwise."""
    (x,) = promote_args("absolute", x)
    dtype = aval_of(x).dtype
    return as_array(x) if dtype in dtypes.BOOL or dtypes.is_unsigned(dtype) else lax.abs(x)


def fabs(x: Any, /) -> Any:
    """Absolute value as a floating-point number. Elementwise."""
    (x,) = promote_args_inexact("fabs", x)
    if aval_of(x).dtype in dtypes.COMPLEX:
        raise TypeError("ufunc 'fabs' does not support complex dtypes")
    return lax.abs(x)


@fused
def _floor_rest(x1: Any, x2: Any) -> Any:
    rest = _rem(x1, x2)
    return choose(_signs_differ(rest, x2), lax.add(rest, x2), rest)


def _signs_differ(rest: Any, divisor: Any) -> Any:
    """Where truncated division must be corrected: a nonzero rest on the other side of zero than the divisor."""
    return lax.bitwise_and(lax.ne(lax.lt(rest, 0), lax.lt(divisor, 0)), lax.ne(rest, 0))


@fused
def _floor_divmod(x1: Any, x2: Any) -> tuple[Any, Any]:
    dtype = aval_of(x1).dtype
    if dtype in dtypes.COMPLEX:
        raise TypeError("floor_divide does not support complex-valued inputs")
    rest = _rem(x1, x2)
    if dtypes.is_unsigned(dtype):
        return lax.div(x1, x2), rest
    wrong = _signs_differ(rest, x2)
    if dtypes.is_signed(dtype):
        rounded = lax.bitwise_or(wrong, lax.bitwise_and(lax.eq(x2, 0), lax.ne(x1, 0)))  # as XLA has x / 0
        quotient = lax.div(x1, x2)
        quotient = choose(rounded, lax.sub(quotient, 1), quotient)
        return quotient, choose(wrong, lax.add(rest, x2), rest)
    else:
        divisible = choose(lax.eq(x2, 0), x1, lax.sub(x1, rest))
        quotient = lax.round(lax.div(divisible, x2))
    return choose(wrong, lax.sub(quotient, 1), quotient), choose(wrong, lax.add(rest, x2), rest)


def _rem(x1: Any, x2: Any) -> Any:
    """``lax.rem``, but 0 for integers over zero."""
    if dtypes.is_integer(aval_of(x1).dtype):
        x2 = choose(lax.eq(x2, 0), lax.full_like(x2, 1), x2)
    return lax.rem(x1, x2)


floor_divide = binary(
    "floor_divide",
    lambda x1, x2: _floor_divmod(x1, x2)[0],
    "Quotient rounded towards minus infinity; of integers an integer.",
    to_numeric,
)
remainder = binary("remainder", _floor_rest, "Remainder of ``floor_divide``: it has the sign of ``x2``.", to_numeric)
divmod = binary("divmod", _floor_divmod, "``(floor_divide(x1, x2), remainder(x1, x2))``.", to_numeric)
fmod = binary("fmod", _rem, "Remainder of division rounded towards zero: it has the sign of ``x1``.", to_numeric)
mod = remainder


def power(x1: Any, x2: Any, /) -> Any:
    """``x1`` to the power ``x2``. Elementwise.

    A concrete integer ``x2`` becomes the primitive ``integer_pow``, which is exact and differentiable everywhere.

    Raises:
      TypeError: an integer to a concrete negative integer power.

    >>> import polyax.numpy as jnp
    >>> jnp.power(jnp.array([1, 2, 3]), 2).tolist()
    [1, 4, 9]
    """
    check_arraylike("power", x1, x2)
    x1, x2 = unwrap(x1), unwrap(x2)
    exponent = _static_exponent(x2)
    if exponent is not None:
        return lax.integer_pow(promote_dtypes_numeric(x1)[0], exponent)
    x1, x2 = promote_shapes("power", x1, x2)
    base, raised = promote_args_numeric("power", x1, x2)
    if dtypes.is_integer(aval_of(base).dtype):
        return _integer_power(base, raised)
    if dtypes.is_inexact(aval_of(x1).dtype) and dtypes.is_integer(aval_of(x2).dtype):
        return lax.pow_p.bind1(x1, x2)  # unpromoted: differentiable in x1 at zero
    return lax.pow_p.bind1(base, raised)


pow = power


def _static_exponent(x: Any) -> int | None:
    if is_traced(x) or isinstance(x, (float, complex)) or np.shape(x) != ():
        return None
    return operator.index(x) if dtypes.is_integer(aval_of(x).dtype) or isinstance(x, bool) else None


@fused
def _integer_power(x: Any, n: Any) -> Any:
    """Binary exponentiation with six bits of exponent: larger ones overflow for every base beyond 1."""
    x, n = as_array(x), as_array(n)
    vanishes = lax.bitwise_and(lax.eq(x, 0), lax.ne(n, 0))
    result = choose(vanishes, lax.full_like(x, 0), lax.full_like(x, 1))
    for _ in range(6):
        result = choose(lax.ne(lax.bitwise_and(n, 1), 0), lax.mul(result, x), result)
        x, n = lax.mul(x, x), lax.shift_right_logical(n, 1)
    return strong(result)


def heaviside(x1: Any, x2: Any, /) -> Any:
    """0 where ``x1 < 0``, 1 where ``x1 > 0``, ``x2`` at zero, NaN at NaN. Elementwise."""
    x1, x2 = promote_args_inexact("heaviside", x1, x2)
    step = choose(lax.lt(x1, 0), lax.full_like(x1, 0), choose(lax.gt(x1, 0), lax.full_like(x1, 1), x2))
    result = choose(lax.ne(x1, x1), x1, step)
    return strong(result) if np.shape(x1) else result


def fmax(x1: Any, x2: Any) -> Any:
    """The larger of both, ignoring NaN. Elementwise."""
    x1, x2 = promote_args("fmax", x1, x2)
    return choose(lax.bitwise_or(precedes(x1, x2, lax.gt), lax.ne(x2, x2)), x1, x2)


def fmin(x1: Any, x2: Any) -> Any:
    """The smaller of both, ignoring NaN. Elementwise."""
    x1, x2 = promote_args("fmin", x1, x2)
    return choose(lax.bitwise_or(precedes(x1, x2, lax.lt), lax.ne(x2, x2)), x1, x2)


# --- rounding ---------------------------------------------------------------------------------------------------------


def _rounding(name: str, op: Callable[[Any], Any], doc: str) -> Callable[[Any], Any]:
    def fun(x: Any, /) -> Any:
        (x,) = promote_args(name, x)
        return op(x) if dtypes.is_inexact(aval_of(x).dtype) else as_array(x)

    return named(fun, name, f"{doc}\n\nElementwise; integers and booleans stay as they are.")


def _truncate(x: Any) -> Any:
    return choose(lax.lt(x, 0), lax.ceil(x), lax.floor(x))


floor = _rounding("floor", lax.floor, "The largest whole number that is not above ``x``.")
ceil = _rounding("ceil", lax.ceil, "The smallest whole number that is not below ``x``.")


def trunc(x: Any) -> Any:
    """``x`` without its fractional part. Elementwise; integers and booleans stay as they are."""
    return _trunc(x)


_trunc = _rounding("trunc", _truncate, "")


def _round_to_even(x: Any) -> Any:
    if aval_of(x).dtype in dtypes.COMPLEX:
        return lax.complex(_round_to_even(lax.real(x)), _round_to_even(lax.imag(x)))
    return lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)


def rint(x: Any, /) -> Any:
    """The nearest whole number; halves to even. Elementwise; of integers as ``float``, of 64 bits where enabled."""
    (x,) = promote_args("rint", x)
    if dtypes.is_inexact(aval_of(x).dtype):
        return as_array(_round_to_even(x))
    return lax.convert_element_type(x, dtypes.default_float())


def round(a: Any, decimals: int = 0, out: None = None) -> Any:
    """``a`` rounded to ``decimals`` places, halves to even. Integers with ``decimals >= 0`` stay as they are.

    Raises:
      NotImplementedError: ``out`` is given, or integers are rounded to negative places.
      ValueError: of truth values.

    >>> import polyax.numpy as jnp
    >>> jnp.round(jnp.array([0.5, 1.5, 2.7])).tolist()
    [0.0, 2.0, 3.0]
    """
    check_arraylike("round", a)
    decimals = operator.index(decimals)
    if out is not None:
        raise NotImplementedError("The 'out' argument to jnp.round is not supported.")
    (a,) = promote_args("round", a)
    dtype = aval_of(a).dtype
    if dtype in dtypes.BOOL:
        raise ValueError("data type <class 'numpy.bool'> not inexact")
    if not dtypes.is_inexact(dtype):
        if decimals < 0:
            raise NotImplementedError("integer np.round not implemented for decimals < 0")
        return as_array(a)
    return _round_to_even(a) if decimals == 0 else _round_scaled(a, dtype, decimals)


def _round_scaled(a: Any, dtype: np.dtype[Any], decimals: int) -> Any:
    """Float16 is rounded as float32, as it holds few powers of ten; those beyond a dtype change none of its numbers."""
    working = np.dtype(np.float32) if dtype == np.float16 else dtype
    if decimals > math.log10(float(dtypes.finfo(working).max)):
        return as_array(a)
    factor = 10.0**decimals
    scaled = lax.mul(convert(a, working) if working != dtype else a, factor)
    rounded = lax.div(_round_to_even(scaled), factor)
    return convert(rounded, dtype) if working != dtype else rounded


around = round


def modf(x: Any, /, out: None = None) -> tuple[Any, Any]:
    """Fractional and whole part, both with the sign of ``x``. Elementwise."""
    if out is not None:
        raise NotImplementedError("The 'out' argument to jnp.modf is not supported.")
    (x,) = promote_args_inexact("modf", x)
    whole = _truncate(x)
    return lax.sub(x, whole), whole


# --- complex numbers --------------------------------------------------------------------------------------------------


def _of_complex(op: Callable[[Any], Any], of_real: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: op(x) if aval_of(x).dtype in dtypes.COMPLEX else of_real(x)


_real = _of_complex(lax.real, as_array)
_imag = _of_complex(lax.imag, lambda x: lax.full_like(x, 0))


def real(val: Any, /) -> Any:
    """Real part; real arrays stay as they are. Elementwise.

    >>> import polyax.numpy as jnp
    >>> jnp.real(jnp.array([1 + 2j])).tolist()
    [1.0]
    """
    return _real(*promote_args("real", val))


def imag(val: Any, /) -> Any:
    """Imaginary part; zeros for real arrays. Elementwise."""
    return _imag(*promote_args("imag", val))


conjugate = unary(
    "conjugate", _of_complex(lax.conj, as_array), "Complex conjugate; real arrays stay as they are.", same
)
conj = conjugate


def angle(z: Any, deg: bool = False) -> Any:
    """Argument of a complex number in (-pi, pi], in degrees if ``deg``."""
    (z,) = promote_args("angle", z)
    dtype = aval_of(z).dtype
    if not dtypes.is_complex(dtype):
        z = convert(z, dtype if dtypes.is_inexact(dtype) else dtypes.default_float())
    re, im = real(z), imag(z)
    result = lax.atan2(im, re)
    return rad2deg(result) if deg else result


def iscomplex(x: Any) -> Any:
    """Where the imaginary part is not zero."""
    part = imag(x)
    return as_mask(part)


def isreal(x: Any) -> Any:
    """Where the imaginary part is zero."""
    part = imag(x)
    return lax.eq(part, False if part.dtype in dtypes.BOOL else 0)


def ldexp(x1: Any, x2: Any, /) -> Any:
    """``x1 * 2**x2`` for integers ``x2``. Elementwise.

    Raises:
      ValueError: ``x2`` is not integer, or ``x1`` is complex.
    """
    check_arraylike("ldexp", x1, x2)
    kinds = aval_of(x1).dtype, aval_of(x2).dtype
    if kinds[0] in dtypes.COMPLEX or dtypes.is_inexact(kinds[1]):
        raise ValueError(f"ldexp not supported for input types {kinds}")
    (x1,) = promote_args_inexact("ldexp", x1)
    (x2,) = promote_args_numeric("ldexp", x2)
    dtype = aval_of(x1).dtype
    half = lax.div(as_array(x2), convert(2, aval_of(x2).dtype))
    rest = lax.sub(as_array(x2), half)
    (x1, a) = promote_shapes("ldexp", x1, lax.exp2(lax.convert_element_type(half, dtype)))
    (x1, b) = promote_shapes("ldexp", x1, lax.exp2(lax.convert_element_type(rest, dtype)))
    scaled = lax.mul(lax.mul(x1, a), b)  # in two steps, since 2**x2 alone may overflow
    unmoved = lax.bitwise_or(lax.eq(x1, 0), lax.bitwise_not(lax.is_finite(x1)))
    return choose(unmoved, x1, scaled)
