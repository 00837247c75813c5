"""NumPy definitions of scalar operations where NumPy's own differ from XLA's or are missing.

Called with ``np.errstate(all="ignore")`` on arrays of one dtype. Nothing here knows of expressions.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = np.ndarray


def _unsigned(dtype: np.dtype) -> np.dtype:
    return np.dtype(f"uint{8 * dtype.itemsize}")


def _safe_divisor(x: Array, y: Array) -> tuple[Array, Array, Array]:
    """Masks of division by zero and of the overflow INT_MIN / -1, and a divisor that is neither."""
    zero = y == 0
    minus = (y == -1) if y.dtype.kind == "i" else np.zeros_like(zero)
    return zero, minus, np.where(zero | minus, y.dtype.type(1), y)


def div(x: Array, y: Array) -> Array:
    """Integers: rounds to zero; x / 0 = -1 (all bits set), INT_MIN / -1 = INT_MIN."""
    if x.dtype.kind not in "iu":
        return np.divide(x, y)
    zero, minus, safe = _safe_divisor(x, y)
    down = np.floor_divide(x, safe)
    quotient = down + ((x % safe != 0) & ((x < 0) != (safe < 0))).astype(x.dtype)
    return np.where(zero, ~np.zeros_like(x), np.where(minus, np.negative(x), quotient))


def rem(x: Array, y: Array) -> Array:
    """The sign is the dividend's; integers: x rem 0 = x."""
    if x.dtype.kind not in "iu":
        return np.fmod(x, y)
    zero, minus, safe = _safe_divisor(x, y)
    return np.where(zero, x, np.where(minus, x.dtype.type(0), np.fmod(x, safe)))


def floordiv(x: Array, y: Array) -> Array:
    """Rounds down; by zero as ``div``."""
    quotient, rest = div(x, y), rem(x, y)
    return quotient - ((rest != 0) & (y != 0) & ((rest < 0) != (y < 0))).astype(x.dtype)


def mod(x: Array, y: Array) -> Array:
    """The sign is the divisor's; by zero as ``rem``."""
    rest = rem(x, y)
    return np.where((rest != 0) & (y != 0) & ((rest < 0) != (y < 0)), rest + y, rest)


def maximum(x: Array, y: Array) -> Array:
    """NaN wins, and +0 over -0, so that the operation is associative and commutative."""
    if x.dtype.kind != "f":
        return np.maximum(x, y)
    return np.where(x == y, np.where(np.signbit(x), y, x), np.maximum(x, y))


def minimum(x: Array, y: Array) -> Array:
    if x.dtype.kind != "f":
        return np.minimum(x, y)
    return np.where(x == y, np.where(np.signbit(x), x, y), np.minimum(x, y))


def clamp(low: Array, x: Array, high: Array) -> Array:
    return minimum(maximum(low, x), high)


def sign(x: Array) -> Array:
    """-1, 0 or 1; floats: keeps -0 and NaN."""
    return np.where(x == 0, x, np.sign(x))


def _shift(shift: Any, x: Array, n: Array, past: Array) -> Array:
    inside = n.astype(_unsigned(n.dtype)) < 8 * x.dtype.itemsize
    return np.where(inside, shift(x, np.where(inside, n, n.dtype.type(0))), past)


def shift_left(x: Array, n: Array) -> Array:
    return _shift(np.left_shift, x, n, np.zeros_like(x))


def shift_right_logical(x: Array, n: Array) -> Array:
    unsigned = x.astype(_unsigned(x.dtype))
    return _shift(np.right_shift, unsigned, n.astype(unsigned.dtype), np.zeros_like(unsigned)).astype(x.dtype)


def shift_right_arithmetic(x: Array, n: Array) -> Array:
    signed = x.astype(f"int{8 * x.dtype.itemsize}")
    past = np.where(signed < 0, ~np.zeros_like(signed), np.zeros_like(signed))
    return _shift(np.right_shift, signed, n.astype(signed.dtype), past).astype(x.dtype)


def clz(x: Array) -> Array:
    """Leading zero bits; the width for 0."""
    bits, count = x.astype(_unsigned(x.dtype)), np.zeros_like(x)
    for n in range(8 * x.dtype.itemsize):
        count = count + (bits >> bits.dtype.type(n) == 0).astype(x.dtype)
    return count


def population_count(x: Array) -> Array:
    return np.bitwise_count(x.astype(_unsigned(x.dtype))).astype(x.dtype)


def round_away(x: Array) -> Array:
    """To the nearest integer, halves away from zero."""
    whole = np.trunc(x)
    return np.copysign(np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(1, x), whole), x)


def nextafter(x: Array, y: Array) -> Array:
    """The neighbour of ``x`` towards ``y``; ``y`` itself where they are equal."""
    return np.where(x == y, y, np.nextafter(x, y))


def rsqrt(x: Array) -> Array:
    return x.dtype.type(1) / np.sqrt(x)


def logistic(x: Array) -> Array:
    """1 / (1 + exp(-x))."""
    return x.dtype.type(1) / (1 + np.exp(-x))


def _scalarwise(fun: Any) -> Any:
    apply = np.vectorize(fun, otypes=[np.float64])
    return lambda x: apply(x).astype(x.dtype) if x.size else x


def _lgamma(x: float) -> float:
    return math.inf if math.isinf(x) or (x <= 0 and x == math.floor(x)) else math.lgamma(x)


erf = _scalarwise(math.erf)
erfc = _scalarwise(math.erfc)
lgamma = _scalarwise(_lgamma)


def _erf_inv(y: float) -> float:
    """Newton's iteration on erfc near 1 and on erf elsewhere, from Winitzki's approximation (2008)."""
    if not abs(y) < 1:
        return math.copysign(math.inf, y) if abs(y) == 1 else math.nan
    log, a = math.log1p(-y * y), 0.147
    half = 2 / (math.pi * a) + log / 2
    x = math.copysign(math.sqrt(max(0.0, math.sqrt(half * half - log / a) - half)), y)
    for _ in range(4):
        error = math.erf(x) - y if abs(y) < 0.9 else math.copysign(1, y) * ((1 - abs(y)) - math.erfc(abs(x)))
        x -= error * math.sqrt(math.pi) / 2 * math.exp(x * x)
    return x if y else y


def _digamma(x: float) -> float:
    """Reflection below 1/2, recurrence up to 10, then the asymptotic series (Abramowitz and Stegun 6.3.18)."""
    if math.isnan(x) or x == -math.inf or (x <= 0 and x == math.floor(x)):
        return math.nan
    if x < 0.5:
        return _digamma(1 - x) - math.pi / math.tan(math.pi * math.fmod(x, 1))
    total = 0.0
    while x < 10:
        total, x = total - 1 / x, x + 1
    r = 1 / (x * x)
    series = r * (1 / 12 - r * (1 / 120 - r * (1 / 252 - r * (1 / 240 - r * (1 / 132 - r * 691 / 32760)))))
    return total + math.log(x) - 0.5 / x - series


erf_inv = _scalarwise(_erf_inv)
digamma = _scalarwise(_digamma)


def cast(x: Array, target: np.dtype) -> Array:
    """Floats to integers saturate and take NaN to 0; integers wrap; to bool means ``x != 0``."""
    if target.kind == "b":
        return x != 0
    if target.kind not in "iu" or x.dtype.kind in "biu":
        return x.astype(target)
    limits, wide = np.iinfo(target), x.astype(np.float64)
    inside = (wide > float(limits.min) - 1) & (wide < float(limits.max) + 1) & (wide >= float(limits.min))
    edge = np.where(np.isnan(wide), 0, np.where(wide > 0, limits.max, limits.min)).astype(target)
    return np.where(inside, np.where(inside, wide, 0).astype(target), edge)
