"""Elementwise primitives under NumPy, with the total semantics of XLA: every input has a defined result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from polyax.ir.dtypes import NARROW, NARROW_INTS
from polyax.ops import basis, compare, convert, elementwise
from polyax.reference.table import rule

_UFUNCS: dict[Any, Callable[..., Any]] = {
    basis.add_p: np.add,
    basis.sub_p: np.subtract,
    basis.mul_p: np.multiply,
    basis.neg_p: np.negative,
    basis.eq_p: np.equal,
    compare.ne_p: np.not_equal,
    compare.ge_p: np.greater_equal,
    compare.gt_p: np.greater,
    compare.le_p: np.less_equal,
    compare.lt_p: np.less,
    compare.and_p: np.bitwise_and,
    compare.or_p: np.bitwise_or,
    compare.xor_p: np.bitwise_xor,
    compare.not_p: np.invert,
    elementwise.abs_p: np.abs,
    elementwise.floor_p: np.floor,
    elementwise.ceil_p: np.ceil,
    elementwise.is_finite_p: np.isfinite,
    elementwise.nextafter_p: np.nextafter,
    elementwise.square_p: np.square,
    elementwise.sqrt_p: np.sqrt,
    elementwise.cbrt_p: np.cbrt,
    elementwise.exp_p: np.exp,
    elementwise.exp2_p: np.exp2,
    elementwise.log_p: np.log,
    elementwise.expm1_p: np.expm1,
    elementwise.log1p_p: np.log1p,
    elementwise.sin_p: np.sin,
    elementwise.cos_p: np.cos,
    elementwise.tan_p: np.tan,
    elementwise.asin_p: np.arcsin,
    elementwise.acos_p: np.arccos,
    elementwise.atan_p: np.arctan,
    elementwise.atan2_p: np.arctan2,
    elementwise.sinh_p: np.sinh,
    elementwise.cosh_p: np.cosh,
    elementwise.tanh_p: np.tanh,
    elementwise.asinh_p: np.arcsinh,
    elementwise.acosh_p: np.arccosh,
    elementwise.atanh_p: np.arctanh,
    convert.real_p: np.real,
    convert.imag_p: np.imag,
    convert.copy_p: np.copy,
    convert.stop_gradient_p: np.asarray,
}

for _primitive, _ufunc in _UFUNCS.items():
    rule(_primitive)(_ufunc)


def _is_int(x: Any) -> bool:
    return x.dtype.kind in "iu"


# --- arithmetic -----------------------------------------------------------------------------------------------------


@rule(basis.div_p)
def div(x: Any, y: Any) -> Any:
    """Toward zero; by zero -1; the lowest integer over -1 is itself."""
    if not _is_int(x):
        return np.divide(x, y)
    by_zero, by_minus_one = y == 0, _minus_one(y)
    safe = np.where(by_zero | by_minus_one, np.ones_like(y), y)
    quotient = (x - np.fmod(x, safe)) // safe
    return np.where(by_zero, np.invert(np.zeros_like(x)), np.where(by_minus_one, np.negative(x), quotient))


@rule(elementwise.rem_p)
def rem(x: Any, y: Any) -> Any:
    """With the sign of the dividend; by zero the dividend."""
    if not _is_int(x):
        return np.fmod(x, y)
    safe = np.where((y == 0) | _minus_one(y), np.ones_like(y), y)
    return np.where(y == 0, x, np.fmod(x, safe))


def _minus_one(y: Any) -> Any:
    return y == -1 if y.dtype.kind == "i" else np.zeros(np.shape(y), bool)


@rule(elementwise.max_p)
def max(x: Any, y: Any) -> Any:
    """NaN if either is; of zeros the positive one."""
    return np.where((x == y) & (x == 0), np.add(x, y), np.maximum(x, y)) if x.dtype.kind in "fV" else np.maximum(x, y)


@rule(elementwise.min_p)
def min(x: Any, y: Any) -> Any:
    """NaN if either is; of zeros the negative one."""
    return -max(-x, -y) if x.dtype.kind in "fV" else np.minimum(x, y)


@rule(elementwise.sign_p)
def sign(x: Any) -> Any:
    return np.where(x == 0, x, np.sign(x))  # keeps -0.0


@rule(elementwise.round_p)
def round(x: Any, *, rounding_method: int) -> Any:
    if rounding_method == elementwise.RoundingMethod.TO_NEAREST_EVEN:
        return np.rint(x)
    whole = np.trunc(x)
    up = np.where(np.abs(x - whole) >= 0.5, np.copysign(np.ones_like(x), x), np.zeros_like(x))
    return np.copysign(whole + up, x)


@rule(elementwise.pow_p)
def pow(x: Any, y: Any) -> Any:
    y = y if y.dtype == x.dtype else y.astype(x.dtype)
    powers = np.power(x, y).astype(x.dtype)
    if x.dtype.kind != "c":
        return powers
    return np.where((x == np.inf) & (y.real > 0) & (y.imag == 0), x, powers)


@rule(elementwise.integer_pow_p)
def integer_pow(x: Any, *, y: int) -> Any:
    """Repeated squaring, so that integers wrap."""
    result, factor = np.ones_like(x), x
    n = y if y >= 0 else -y
    while n:
        if n & 1:
            result = result * factor
        factor, n = factor * factor, n >> 1
    return np.ones_like(x) / result if y < 0 else result


@rule(elementwise.rsqrt_p)
def rsqrt(x: Any) -> Any:
    return np.ones_like(x) / np.sqrt(x)


@rule(elementwise.logistic_p)
def logistic(x: Any) -> Any:
    one = np.ones_like(x)
    return one / (one + np.exp(-x))


# --- bits -----------------------------------------------------------------------------------------------------------


def _unsigned(x: Any) -> Any:
    return x.view(f"u{x.dtype.itemsize}")


def _shift(shift: Callable[[Any, Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Shifts by the width or more, negative ones included, are defined: ``shift(x, amount, beyond)``."""

    def apply(x: Any, y: Any) -> Any:
        amount = _unsigned(np.asarray(y))
        beyond = amount >= 8 * x.dtype.itemsize
        return shift(np.asarray(x), np.where(beyond, np.zeros_like(amount), amount), beyond)

    return apply


@rule(compare.shift_left_p)
@_shift
def shift_left(x: Any, amount: Any, beyond: Any) -> Any:
    return np.where(beyond, np.zeros_like(x), np.left_shift(x, amount.astype(x.dtype)))


@rule(compare.shift_right_logical_p)
@_shift
def shift_right_logical(x: Any, amount: Any, beyond: Any) -> Any:
    return np.where(beyond, np.zeros_like(x), np.right_shift(_unsigned(x), amount).view(x.dtype))


@rule(compare.shift_right_arithmetic_p)
@_shift
def shift_right_arithmetic(x: Any, amount: Any, beyond: Any) -> Any:
    signed = x.view(f"i{x.dtype.itemsize}")
    filled = np.where(signed < 0, np.full_like(signed, -1), np.zeros_like(signed))
    return np.where(beyond, filled, np.right_shift(signed, amount.astype(signed.dtype))).view(x.dtype)


@rule(compare.population_count_p)
def population_count(x: Any) -> Any:
    return np.bitwise_count(_unsigned(np.asarray(x))).astype(x.dtype)


@rule(compare.clz_p)
def clz(x: Any) -> Any:
    """The width less the bits of ``x`` with everything below its highest bit set."""
    bits, width = _unsigned(np.asarray(x)), 8 * x.dtype.itemsize
    for step in (1, 2, 4, 8, 16, 32):
        if step < width:
            bits = bits | (bits >> bits.dtype.type(step))
    return (width - np.bitwise_count(bits).astype(np.int32)).astype(x.dtype)


@rule(compare.mulhi_p)
def mulhi(x: Any, y: Any) -> Any:
    wide = np.asarray(x, object) * np.asarray(y, object)
    return np.asarray(wide >> 8 * x.dtype.itemsize, object).astype(x.dtype)


# --- choices --------------------------------------------------------------------------------------------------------


@rule(basis.select_n_p)
def select_n(which: Any, *cases: Any) -> Any:
    if which.dtype == np.bool_:
        return np.where(which, cases[-1], cases[0])
    result = cases[0]
    for i, case in enumerate(cases[1:], 1):
        result = np.where(which >= i, case, result)
    return result


@rule(compare.clamp_p)
def clamp(low: Any, x: Any, high: Any) -> Any:
    return np.minimum(np.maximum(x, low), high)


def _total_order(x: Any) -> Any:
    """Integers that are ordered as -NaN < -inf < ... < -0 < +0 < ... < inf < NaN."""
    if x.dtype.kind not in "fV":
        return x
    bits = np.ascontiguousarray(x).view(f"i{x.dtype.itemsize}").reshape(np.shape(x))
    return np.where(bits < 0, np.iinfo(bits.dtype).max ^ bits, bits)


for _primitive, _ufunc in ((compare.eq_to_p, np.equal), (compare.le_to_p, np.less_equal), (compare.lt_to_p, np.less)):
    rule(_primitive)(lambda x, y, f=_ufunc: f(_total_order(x), _total_order(y)))

# --- representations ------------------------------------------------------------------------------------------------


@rule(basis.convert_element_type_p)
def convert_element_type(x: Any, *, new_dtype: Any, weak_type: bool = False) -> Any:
    """Complex to real keeps the real part; float to integer truncates and saturates, NaN gives 0."""
    x = np.asarray(x)
    if x.dtype in NARROW:
        x = x.astype(np.int32 if x.dtype.name in NARROW_INTS else np.float32)
    if new_dtype == np.bool_:
        return x != 0
    if new_dtype.name in NARROW_INTS and x.dtype.kind in "fVc":
        info = ml_dtypes.iinfo(new_dtype)
        x = np.clip(_to_integer(x.real, np.dtype("int32")), int(info.min), int(info.max))
    if x.dtype.kind == "c" and new_dtype.kind != "c":
        x = x.real
    if x.dtype.kind in "fV" and new_dtype.kind in "iu":
        return _to_integer(x, new_dtype)
    if x.dtype.kind == "V" and new_dtype.kind == "c":
        x = x.astype(np.float32)
    return x.astype(new_dtype)


def _to_integer(x: Any, dtype: Any) -> Any:
    info = np.iinfo(dtype)
    whole = np.trunc(np.where(np.isnan(x), np.zeros_like(x), x).astype(np.float64))
    low, high = whole <= float(info.min), whole >= float(info.max)
    inside = np.where(low | high, 0.0, whole).astype(dtype)
    return np.where(low, dtype.type(info.min), np.where(high, dtype.type(info.max), inside))


@rule(convert.bitcast_convert_type_p)
def bitcast_convert_type(x: Any, *, new_dtype: Any) -> Any:
    shape, old, new = np.shape(x), x.dtype.itemsize, new_dtype.itemsize
    shape = shape if old == new else (*shape, old // new) if old > new else shape[:-1]
    return np.ascontiguousarray(x).view(new_dtype).reshape(shape)


@rule(convert.reduce_precision_p)
def reduce_precision(x: Any, *, exponent_bits: int, mantissa_bits: int) -> Any:
    """Rounds to nearest even; what is too large becomes infinite, what is too small 0."""
    exact = x.astype(np.float64)
    mantissa, exponent = np.frexp(exact)  # 0.5 <= |mantissa| < 1
    scale = 2.0 ** (mantissa_bits + 1)
    rounded = np.ldexp(np.rint(mantissa * scale) / scale, exponent)
    bias = 2 ** (exponent_bits - 1) - 1
    largest, smallest = (2 - 2.0**-mantissa_bits) * 2.0**bias, 2.0 ** (1 - bias)
    rounded = np.where(np.abs(rounded) > largest, np.copysign(np.inf, exact), rounded)
    rounded = np.where(np.abs(rounded) < smallest, np.copysign(0.0, exact), rounded)
    return np.where(np.isfinite(exact), rounded, exact).astype(x.dtype)


@rule(convert.complex_p)
def complex(x: Any, y: Any) -> Any:
    result = np.empty(np.broadcast_shapes(np.shape(x), np.shape(y)), f"c{2 * x.dtype.itemsize}")
    result.real, result.imag = x, y
    return result


@rule(convert.conj_p)
def conj(x: Any, *, input_dtype: Any) -> Any:
    return np.conj(x if x.dtype.kind == "c" else x.astype(f"c{2 * x.dtype.itemsize}"))
