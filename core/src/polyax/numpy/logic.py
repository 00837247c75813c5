"""Elementwise functions of bits and truth values: comparisons, logic, shifts, tests for NaN and infinity."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.ir.aval import aval_of
from polyax.lax import lenient as lax
from polyax.numpy.broadcast import as_mask, choose
from polyax.numpy.promotion import check_arraylike, convert, promote_args, promote_args_inexact, promote_args_numeric
from polyax.ops.basis import named

__all__ = [
    "bitwise_and", "bitwise_count", "bitwise_invert", "bitwise_left_shift", "bitwise_not", "bitwise_or",
    "bitwise_right_shift", "bitwise_xor", "copysign", "equal", "greater", "greater_equal", "invert", "isclose",
    "isfinite", "isinf", "isnan", "isneginf", "isposinf", "left_shift", "less", "less_equal", "logical_and",
    "logical_not", "logical_or", "logical_xor", "not_equal", "right_shift", "signbit",
]  # fmt: skip


def _comparison(name: str, op: Callable[[Any, Any], Any], doc: str, lexical: bool) -> Callable[[Any, Any], Any]:
    def fun(x: Any, y: Any, /) -> Any:
        x, y = promote_args(name, x, y)
        if lexical and aval_of(x).dtype in dtypes.COMPLEX:
            by_imag = op(lax.imag(x), lax.imag(y))
            return choose(lax.eq(lax.real(x), lax.real(y)), by_imag, op(lax.real(x), lax.real(y)))
        return op(x, y)

    order = " Complex numbers are ordered by real part, then by imaginary part." if lexical else ""
    return named(fun, name, f"{doc}\n\nElementwise; shapes broadcast, dtypes are promoted; boolean.{order}")


equal = _comparison("equal", lax.eq_p.bind1, "``x == y``.", False)
not_equal = _comparison("not_equal", lax.ne_p.bind1, "``x != y``.", False)
less = _comparison("less", lax.lt_p.bind1, "``x < y``.", True)
less_equal = _comparison("less_equal", lax.le_p.bind1, "``x <= y``.", True)
greater = _comparison("greater", lax.gt_p.bind1, "``x > y``.", True)
greater_equal = _comparison("greater_equal", lax.ge_p.bind1, "``x >= y``.", True)


def _logical(name: str, op: Callable[..., Any], doc: str) -> Callable[..., Any]:
    def fun(x1: Any, x2: Any, /) -> Any:
        return op(*map(as_mask, promote_args(name, x1, x2)))

    return named(fun, name, f"{doc}\n\nElementwise; nonzero numbers are true; boolean.")


logical_and = _logical("logical_and", lax.bitwise_and, "Both are true.")
logical_or = _logical("logical_or", lax.bitwise_or, "Either is true.")
logical_xor = _logical("logical_xor", lax.bitwise_xor, "One of both is true.")


def logical_not(x: Any, /) -> Any:
    """Where ``x`` is zero or false."""
    return lax.bitwise_not(*map(as_mask, promote_args("logical_not", x)))


def _bitwise(name: str, op: Callable[..., Any], doc: str) -> Callable[..., Any]:
    def fun(x1: Any, x2: Any, /) -> Any:
        return op(*promote_args(name, x1, x2))

    return named(fun, name, f"{doc}\n\nElementwise, for integers and booleans; others raise ``TypeError``.")


bitwise_and = _bitwise("bitwise_and", lax.bitwise_and, "Bits set in both.")
bitwise_or = _bitwise("bitwise_or", lax.bitwise_or, "Bits set in either.")
bitwise_xor = _bitwise("bitwise_xor", lax.bitwise_xor, "Bits set in one of both.")


def bitwise_not(x: Any, /) -> Any:
    """All bits flipped; logical *not* of booleans."""
    return lax.bitwise_not(*promote_args("bitwise_not", x))


invert = bitwise_invert = bitwise_not


def bitwise_count(x: Any, /) -> Any:
    """Number of bits set in the absolute value of ``x``, as uint8."""
    (x,) = promote_args_numeric("bitwise_count", x)
    magnitude = lax.abs(x) if dtypes.is_signed(aval_of(x).dtype) else x
    return lax.convert_element_type(lax.population_count(magnitude), np.uint8)


def left_shift(x: Any, y: Any, /) -> Any:
    """Bits of ``x`` moved up by ``y`` places."""
    return lax.shift_left(*promote_args_numeric("left_shift", x, y))


def right_shift(x1: Any, x2: Any, /) -> Any:
    """Bits of ``x1`` moved down by ``x2`` places; the sign is kept."""
    x1, x2 = promote_args_numeric("right_shift", x1, x2)
    unsigned = dtypes.is_unsigned(aval_of(x1).dtype)
    return lax.shift_right_logical(x1, x2) if unsigned else lax.shift_right_arithmetic(x1, x2)


bitwise_left_shift, bitwise_right_shift = left_shift, right_shift


# --- special values ---------------------------------------------------------------------------------------------------


def _test_of_inexact(name: str, op: Callable[[Any], Any], otherwise: bool, doc: str) -> Callable[[Any], Any]:
    def fun(x: Any, /) -> Any:
        (x,) = promote_args(name, x)
        if dtypes.is_inexact(aval_of(x).dtype):
            return op(x)
        return lax.full_like(x, otherwise, dtype=np.bool_)

    return named(fun, name, f"{doc}\n\nElementwise; boolean.")


def _isfinite(x: Any) -> Any:
    if aval_of(x).dtype in dtypes.COMPLEX:
        return lax.bitwise_and(lax.is_finite(lax.real(x)), lax.is_finite(lax.imag(x)))
    return lax.is_finite(x)


def _isinf(x: Any) -> Any:
    if aval_of(x).dtype in dtypes.COMPLEX:
        return lax.bitwise_or(_isinf(lax.real(x)), _isinf(lax.imag(x)))
    return lax.eq(lax.abs(x), lax.full_like(x, np.inf, dtype=aval_of(x).dtype))


isfinite = _test_of_inexact("isfinite", _isfinite, True, "Neither infinite nor NaN.")
isinf = _test_of_inexact("isinf", _isinf, False, "Plus or minus infinity.")
isnan = _test_of_inexact("isnan", lambda x: lax.ne(x, x), False, "Not a number.")


def isposinf(x: Any, /, out: None = None) -> Any:
    """Plus infinity. Elementwise."""
    return _is_signed_infinity("isposinf", x, np.inf, out)


def isneginf(x: Any, /, out: None = None) -> Any:
    """Minus infinity. Elementwise."""
    return _is_signed_infinity("isneginf", x, -np.inf, out)


def _is_signed_infinity(name: str, x: Any, infinity: float, out: None) -> Any:
    if out is not None:
        raise NotImplementedError(f"The 'out' argument to jnp.{name} is not supported.")
    (x,) = promote_args(name, x)
    dtype = aval_of(x).dtype
    if dtype in dtypes.COMPLEX:
        raise ValueError(f"{name} is not well defined for complex types: {dtype}")
    return lax.eq(x, dtype.type(infinity)) if dtypes.is_float(dtype) else lax.full_like(x, False, dtype=np.bool_)


def signbit(x: Any, /) -> Any:
    """Where the sign bit is set: negative numbers and minus zero."""
    (x,) = promote_args("signbit", x)
    dtype = aval_of(x).dtype
    x = convert(x, dtype)
    if dtypes.is_signed(dtype):
        return lax.lt(x, 0)
    if dtypes.is_float(dtype):
        bits = lax.bitcast_convert_type(x, np.dtype(f"int{8 * dtype.itemsize}"))
        return lax.lt(bits, 0)
    if dtype in dtypes.COMPLEX:
        raise ValueError(f"jax.numpy.signbit is not well defined for {dtype}")
    return lax.full_like(x, False, dtype=np.bool_)


def copysign(x1: Any, x2: Any, /) -> Any:
    """``abs(x1)`` with the sign of ``x2``. Elementwise."""
    x1, x2 = promote_args_inexact("copysign", x1, x2)
    if aval_of(x1).dtype in dtypes.COMPLEX:
        raise TypeError("copysign does not support complex-valued inputs")
    magnitude = lax.abs(x1)
    return choose(signbit(x2), lax.neg(magnitude), magnitude)


def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    """Where ``abs(a - b) <= atol + rtol * abs(b)``; infinities, and random keys, must be equal. Elementwise.

    >>> import polyax.numpy as jnp
    >>> jnp.isclose(jnp.array([1.0, 2.0]), jnp.array([1.0, 2.1])).tolist()
    [True, False]
    """
    check_arraylike("isclose", a, b)
    if dtypes.is_extended(aval_of(a).dtype):
        return lax.eq(a, b)
    a, b = promote_args_inexact("isclose", a, b)
    near = convert(_close(a, b, rtol, atol), np.dtype(bool))
    if not equal_nan:
        return near
    return lax.bitwise_or(near, lax.bitwise_and(isnan(a), isnan(b)))


def _close(a: Any, b: Any, rtol: Any, atol: Any) -> Any:
    bound = lax.add(lax.mul(lax.abs(b), rtol), atol)
    return lax.bitwise_or(lax.eq(a, b), lax.bitwise_and(_isfinite(b), lax.le(lax.abs(lax.sub(a, b)), bound)))
