"""Scalar operations made of others: what the walker falls back to when an emitter lacks one.

``TABLE`` names them; ``integer_pow`` and ``reduce_precision`` are not in it, since they have parameters: lowerings call
them. All build expressions and know neither emitters nor kernels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from polyax.ir.dtypes import finfo
from polyax_kernels.ir.expr import BOOL, Expr, bitcast, cast, const, op, where


def _bits(dtype: np.dtype) -> np.dtype:
    return np.dtype(f"uint{8 * dtype.itemsize}")


def _polynomial(x: Expr, coefficients: Sequence[float]) -> Expr:
    """Horner's scheme, highest power first."""
    total = const(coefficients[0], x.dtype)
    for c in coefficients[1:]:
        total = total * x + c
    return total


def _is_float(x: Expr) -> bool:
    return x.dtype.kind not in "biu"


def max_(x: Expr, y: Expr) -> Expr:
    """Equal floats differ at most in the sign of zero: the conjunction of their bits is +0 if either is."""
    if x.dtype == BOOL:
        return x | y
    equal = bitcast(bitcast(x, _bits(x.dtype)) & bitcast(y, _bits(y.dtype)), x.dtype) if _is_float(x) else x
    return where(x > y, x, where(x < y, y, where(op("eq", x, y), equal, x + y)))


def min_(x: Expr, y: Expr) -> Expr:
    if x.dtype == BOOL:
        return x & y
    equal = bitcast(bitcast(x, _bits(x.dtype)) | bitcast(y, _bits(y.dtype)), x.dtype) if _is_float(x) else x
    return where(x < y, x, where(x > y, y, where(op("eq", x, y), equal, x + y)))


def clamp_(low: Expr, x: Expr, high: Expr) -> Expr:
    return op("min", op("max", low, x), high)


def rem_(x: Expr, y: Expr) -> Expr:
    """Integers only: x / 0 = -1 makes the remainder x, and INT_MIN / -1 = INT_MIN makes it 0."""
    assert not _is_float(x), "the remainder of floats is exact and no emitter may lack it"
    return x - op("div", x, y) * y


def _rounds_down(rest: Expr, y: Expr) -> Expr:
    return op("ne", rest, const(0, y.dtype)) & op("ne", y, const(0, y.dtype)) & ((rest < 0) ^ (y < 0))


def floordiv_(x: Expr, y: Expr) -> Expr:
    return op("div", x, y) - cast(_rounds_down(op("rem", x, y), y), x.dtype)


def mod_(x: Expr, y: Expr) -> Expr:
    rest = op("rem", x, y)
    return where(_rounds_down(rest, y), rest + y, rest)


def sign_(x: Expr) -> Expr:
    """The operand itself where it is zero (of either sign) or NaN."""
    positive = where(x > 0, 1, x)
    return positive if x.dtype.kind == "u" else where(x < 0, -1, positive)


def square_(x: Expr) -> Expr:
    return x * x


def abs_(x: Expr) -> Expr:
    if x.dtype.kind == "u":
        return x
    if not _is_float(x):
        return where(x < 0, -x, x)
    bits = _bits(x.dtype)
    return bitcast(bitcast(x, bits) & (2 ** (8 * bits.itemsize - 1) - 1), x.dtype)


def is_finite_(x: Expr) -> Expr:
    return op("abs", x) < math.inf


def trunc_(x: Expr) -> Expr:
    return where(x < 0, op("ceil", x), op("floor", x))


def round_(x: Expr) -> Expr:
    whole = op("trunc", x)
    return where(op("abs", x - whole) >= 0.5, whole + where(x < 0, -1.0, const(1, x.dtype)), whole)


def rsqrt_(x: Expr) -> Expr:
    return 1.0 / op("sqrt", x)


def logistic_(x: Expr) -> Expr:
    return 1.0 / (op("exp", -x) + 1.0)


def population_count_(x: Expr) -> Expr:
    """Sums of neighbouring fields of 1, 2, 4, ... bits."""
    width, count = 8 * x.dtype.itemsize, bitcast(x, _bits(x.dtype))
    field = 1
    while field < width:
        mask = sum((2**field - 1) << at for at in range(0, width, 2 * field))
        count = (count & mask) + ((count >> field) & mask)
        field *= 2
    return bitcast(count, x.dtype)


def clz_(x: Expr) -> Expr:
    """Copies the leading one into all lower bits; the zeros are what remains."""
    width, bits = 8 * x.dtype.itemsize, bitcast(x, _bits(x.dtype))
    step = 1
    while step < width:
        bits = bits | (bits >> step)
        step *= 2
    return width - op("population_count", bitcast(bits, x.dtype))


def nextafter_(x: Expr, y: Expr) -> Expr:
    """Neighbouring floats have neighbouring bit patterns, as sign and magnitude."""
    kind = _bits(x.dtype)
    top = 2 ** (8 * kind.itemsize - 1)
    bits = bitcast(x, kind)
    away = (x > 0) ^ (x > y)  # magnitudes grow
    step = bitcast(where(away, bits + 1, bits - 1), x.dtype)
    smallest = bitcast((bitcast(y, kind) & top) | 1, x.dtype)
    moved = where(op("eq", x, const(0, x.dtype)), smallest, step)
    ordered = op("eq", x, x) & op("eq", y, y)
    return where(ordered, where(op("eq", x, y), y, moved), x + y)


_ERF_INV_CENTRE = (
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
    -0.00125372503, -0.00417768164, 0.246640727, 1.50140941,
)  # fmt: skip
_ERF_INV_TAIL = (
    -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
    -0.0076224613, 0.00943887047, 1.00167406, 2.83297682,
)  # fmt: skip


def erf_inv_(y: Expr) -> Expr:
    """Giles, "Approximating the erfinv function" (GPU Computing Gems 2, 2010); in float64 with two Newton steps."""
    w = -op("log1p", -y * y)
    p = where(w < 5.0, _polynomial(w - 2.5, _ERF_INV_CENTRE), _polynomial(op("sqrt", w) - 3.0, _ERF_INV_TAIL))
    x = p * y
    for _ in range(2 if y.dtype.itemsize == 8 else 0):
        tail = 1.0 - op("abs", y) - op("erfc", op("abs", x))
        error = where(op("abs", y) < 0.9, op("erf", x) - y, where(y < 0, -tail, tail))
        x = x - error * op("exp", x * x) * (math.sqrt(math.pi) / 2)
    return where(op("eq", op("abs", y), const(1, y.dtype)), y * math.inf, x)


def digamma_(x: Expr) -> Expr:
    """Reflection below 1/2, ten steps of the recurrence, the asymptotic series (Abramowitz and Stegun 6.3.18)."""
    reflected = x < 0.5
    z = where(reflected, 1.0 - x, x)
    steps = 1.0 / z
    for n in range(1, 10):
        steps = steps + 1.0 / (z + float(n))
    z = z + 10.0
    r = 1.0 / (z * z)
    series = r * _polynomial(r, (691 / 32760, -1 / 132, 1 / 240, -1 / 252, 1 / 120, -1 / 12))
    value = op("log", z) - 0.5 / z + series - steps
    fraction = x - op("trunc", x)
    cotangent = math.pi / op("tan", fraction * math.pi)
    pole = (x <= 0) & op("eq", fraction, const(0, x.dtype))
    return where(pole, math.nan, where(reflected, value - cotangent, value))


def integer_pow(x: Expr, y: int) -> Expr:
    """``x ** y`` by repeated squaring; a negative ``y`` takes the reciprocal of the result.

    >>> from polyax_kernels.ir.expr import consing, param
    >>> with consing():
    ...     integer_pow(param(0, "float32"), 3)
    mul(p0, mul(p0, p0))
    """
    result: Expr | None = None
    base, n = x, abs(y)
    while n:
        if n & 1:
            result = base if result is None else result * base
        n >>= 1
        base = base * base if n else base
    result = const(1, x.dtype) if result is None else result
    return const(1, x.dtype) / result if y < 0 else result


def reduce_precision(x: Expr, exponent_bits: int, mantissa_bits: int) -> Expr:
    """Rounds to a float with fewer bits, half to even; overflow gives infinity, underflow zero, NaN stays."""
    info = finfo(x.dtype)
    kind = _bits(x.dtype)
    bits, drop = bitcast(x, kind), info.nmant - mantissa_bits
    if drop > 0:
        odd = (bits >> drop) & 1
        bits = ((bits + odd) + (2 ** (drop - 1) - 1)) & -(2**drop)
    rounded = bitcast(bits, x.dtype)
    if exponent_bits < info.nexp:
        bias = 2 ** (exponent_bits - 1) - 1
        zero = bitcast(bits & 2 ** (8 * kind.itemsize - 1), x.dtype)
        rounded = where(op("abs", rounded) < 2.0 ** (1 - bias), zero, rounded)
        rounded = where(
            op("abs", rounded) >= 2.0 ** (bias + 1), where(x < 0, -math.inf, const(math.inf, x.dtype)), rounded
        )
    return where(op("eq", x, x), rounded, x)


TABLE: dict[str, Callable[..., Expr]] = {
    f.__name__.removesuffix("_"): f
    for f in (
        *(max_, min_, clamp_, rem_, floordiv_, mod_, sign_, square_, abs_, is_finite_, trunc_, round_, rsqrt_),
        *(logistic_, population_count_, clz_, nextafter_, erf_inv_, digamma_),
    )
}
"""How operations are made of others, by their names."""
