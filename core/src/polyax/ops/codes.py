"""Narrow types as bytes: what a code stands for, and the code of a number, in operations that every device has.

A code is a ``uint8``: the bits of a narrow float, or those of a narrow integer, with zeros above them.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.ir.aval import aval_of
from polyax.ir.dtypes import DType
from polyax.ops import basis, compare, convert, elementwise

CODE = np.dtype("uint8")
_UINT, _FLOAT, _HALF = (np.dtype(t) for t in ("uint32", "float32", "float16"))


@dataclass(frozen=True)
class NarrowFormat:
    """How a narrow float is written: ``mantissa`` bits above which the exponent, and then maybe a sign, stand."""

    dtype: np.dtype
    mantissa: int
    smallest: int
    """The exponent of the smallest normal number."""
    sign: int
    """The bit of the sign; 0 for numbers without one."""
    largest: int
    """The code of the largest number, or of infinity."""
    infinite: int | None
    nans: frozenset[int]

    @property
    def offset(self) -> int:
        """What float32 adds to the exponent, less what this format adds."""
        return 127 - (1 - self.smallest)


@functools.lru_cache(None)
def format_of(dtype: np.dtype) -> NarrowFormat:
    """What is known of a narrow float, from its numbers."""
    info = dtypes.finfo(dtype)
    codes = np.arange(1 << info.bits, dtype=CODE)
    values = codes.view(dtype).astype(_FLOAT)
    signed = dtype.name != "float8_e8m0fnu"
    top = (1 << (info.bits - 1)) * signed
    infinite = next((int(c) for c in codes[values == np.inf]), None)
    largest = int(codes[values == np.nanmax(values)][0])
    nans = frozenset(int(c) for c in codes[np.isnan(values)])
    return NarrowFormat(dtype, int(info.nmant), int(info.minexp) if signed else -126, top, largest, infinite, nans)


def computed_in(dtype: DType) -> DType:
    """The type in which each step on numbers of a narrow one is made, before it is rounded."""
    if dtype.name in dtypes.NARROW_INTS:
        return np.dtype("uint8" if dtype.name.startswith("u") else "int8")
    return _FLOAT if dtype.name == "float8_e8m0fnu" else _HALF


def number(code: Any, dtype: DType) -> Any:
    """What codes of ``dtype`` stand for, as float32 or small integers."""
    if dtype.name not in dtypes.NARROW_INTS:
        return _float(code, format_of(dtype))
    if dtype.name.startswith("u"):
        return code
    top = np.uint8(1 << (dtypes.iinfo(dtype).bits - 1))
    return basis.sub(basis.convert(compare.bitwise_xor(code, top), np.dtype("int8")), top.astype("int8"))


def code_of(x: Any, dtype: DType) -> Any:
    """The codes of numbers of any type: floats go to the nearest, integers are taken modulo what the type holds."""
    given = aval_of(x).dtype
    if given in dtypes.COMPLEX:
        return code_of(convert.real(x), dtype)
    if dtype.name not in dtypes.NARROW_INTS:
        return _float_code(basis.convert(x, _FLOAT), format_of(dtype))
    info = dtypes.iinfo(dtype)
    if dtypes.is_float(given):
        wide = elementwise.max(elementwise.min(basis.convert(x, np.dtype("int32")), int(info.max)), int(info.min))
        return code_of(wide, dtype)
    return compare.bitwise_and(basis.convert(x, CODE), np.uint8((1 << info.bits) - 1))


def _float(code: Any, f: NarrowFormat) -> Any:
    word = basis.convert(code, _UINT)
    magnitude = compare.bitwise_and(word, np.uint32(f.sign - 1)) if f.sign else word
    shifted = compare.shift_left(magnitude, np.uint32(23 - f.mantissa))
    normal = _from_bits(basis.add(shifted, np.uint32(f.offset << 23)))
    small = compare.lt(magnitude, np.uint32(1 << f.mantissa))
    if f.sign:
        tiny = basis.mul(basis.convert(magnitude, _FLOAT), np.float32(2.0 ** (f.smallest - f.mantissa)))
    else:
        tiny = basis.full_like(normal, np.float32(2.0**-127))
    value = basis.select_n(small, normal, tiny)
    if f.infinite is not None:
        value = _where(basis.eq(magnitude, np.uint32(f.infinite)), np.inf, value)
    if f.nans:
        beyond = [c for c in f.nans if c != f.sign and not c & f.sign]
        nan = compare.ge(magnitude, np.uint32(min(beyond))) if beyond else basis.eq(word, np.uint32(f.sign))
        value = _where(nan, np.nan, value)
    if not f.sign:
        return value
    sign = compare.shift_left(compare.bitwise_and(word, np.uint32(f.sign)), np.uint32(32 - f.sign.bit_length()))
    return _from_bits(compare.bitwise_or(_bits(value), sign))


def _float_code(x: Any, f: NarrowFormat) -> Any:
    word = _bits(x)
    size = compare.bitwise_and(word, np.uint32(0x7FFFFFFF))
    nan = int(np.asarray(np.nan).astype(f.dtype).view(CODE)) & ~f.sign if f.sign not in f.nans else f.sign
    over = f.largest if f.infinite is not None or not f.nans else nan
    code = _nearest(size, f)
    code = basis.select_n(compare.gt(code, np.uint32(f.largest)), code, basis.full_like(code, over))
    if f.nans:
        code = basis.select_n(compare.gt(size, np.uint32(0x7F800000)), code, basis.full_like(code, nan))
    if not f.sign:
        positive = compare.lt(basis.sub(word, np.uint32(1)), np.uint32(0x7FFFFFFF))
        signed = basis.select_n(positive, basis.full_like(code, nan), code)
    else:
        sign = compare.bitwise_and(word, np.uint32(1 << 31))
        sign = compare.shift_right_logical(sign, np.uint32(32 - f.sign.bit_length()))
        if f.sign in f.nans:  # the code of a zero with a sign
            sign = basis.select_n(basis.eq(code, np.uint32(0)), sign, basis.zeros_like(sign))
        signed = compare.bitwise_or(code, sign)
    if not f.nans:  # a zero with a sign takes the place of NaN
        signed = basis.select_n(compare.gt(size, np.uint32(0x7F800000)), signed, basis.full_like(signed, f.sign))
    return basis.convert(signed, CODE)


def _nearest(size: Any, f: NarrowFormat) -> Any:
    """The code of a positive number, given by the bits of its float32, as if there were enough of them."""
    dropped = 23 - f.mantissa
    if not f.mantissa:  # halves go up
        rounded = compare.shift_right_logical(basis.add(size, np.uint32(1 << 22)), np.uint32(23))
        return basis.select_n(compare.le(size, np.uint32(1 << 22)), rounded, basis.zeros_like(rounded))
    odd = compare.bitwise_and(compare.shift_right_logical(size, np.uint32(dropped)), np.uint32(1))
    rounded = basis.add(basis.add(size, np.uint32((1 << (dropped - 1)) - 1)), odd)
    normal = basis.sub(compare.shift_right_logical(rounded, np.uint32(dropped)), np.uint32(f.offset << f.mantissa))
    scaled = basis.mul(_from_bits(size), np.float32(2.0 ** (f.mantissa - f.smallest)))
    whole = elementwise.round(scaled, elementwise.RoundingMethod.TO_NEAREST_EVEN)
    first = np.uint32((f.smallest + 127) << 23)
    return basis.select_n(compare.lt(size, first), normal, basis.convert(whole, _UINT))


def _where(which: Any, then: float, other: Any) -> Any:
    return basis.select_n(which, other, basis.full_like(other, np.float32(then)))


def _bits(x: Any) -> Any:
    return convert.bitcast_convert_type(x, _UINT)


def _from_bits(x: Any) -> Any:
    return convert.bitcast_convert_type(x, _FLOAT)
