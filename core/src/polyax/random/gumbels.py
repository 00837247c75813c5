"""Numbers of the standard Gumbel distribution, in three resolutions of its tail."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyax.api import jit
from polyax.ir import dtypes
from polyax.ir.config import config
from polyax.lax import lenient as lax
from polyax.meshes.resharding import with_out_sharding
from polyax.numpy.promotion import concrete_shape
from polyax.random.generators import random_bits
from polyax.random.keys import check_key
from polyax.random.samplers import float_dtype, uniform_between


@with_out_sharding
def gumbel(key: Any, shape: Any = (), dtype: Any = None, mode: str | None = None, *, out_sharding: Any = None) -> Any:
    """Numbers of the standard Gumbel distribution.

    Args:
      mode: how finely the tail is resolved. In float32 the largest number is about 16 with 'low', 32 with 'high' and 45
        with 'highest', which is 'high' in other dtypes. By default as ``config.high_dynamic_range_gumbel`` says.

    Raises:
      ValueError: an unknown mode.

    >>> from polyax import random
    >>> random.gumbel(random.key(0), (2, 3), mode="highest").shape
    (2, 3)
    """
    kind = float_dtype("gumbel", dtype)
    if mode not in (None, "low", "high", "highest"):
        raise ValueError(f"Must provide valid mode for gumbel got: {mode}")
    return _gumbel(check_key("gumbel", key), concrete_shape(shape), kind, mode or _usual_mode())


def _usual_mode() -> str:
    return "high" if config.get("high_dynamic_range_gumbel") else "low"


@jit(static_argnames=("shape", "dtype", "mode"), inline=True)
def _gumbel(key: Any, shape: tuple[int, ...], dtype: Any, mode: str) -> Any:
    if mode == "low":
        u = uniform_between(key, dtype.type(dtypes.finfo(dtype).tiny), 1.0, shape, dtype)
        return lax.neg(lax.log(lax.neg(lax.log(u))))
    if mode == "highest" and dtype == np.float32:
        return _of_64_bits(random_bits(key, 32, (2, *shape)))
    return _of_two_uniforms(uniform_between(key, 0.0, 1.0, (2, *shape), dtype), dtypes.finfo(dtype))


def _rows(pair: Any) -> tuple[Any, Any]:
    first, second = (lax.index_in_dim(pair, i, 0, keepdims=False) for i in (0, 1))
    return first, second


def _of_two_uniforms(both: Any, info: Any) -> Any:
    """The second number fills in below the last bit of the first, where that is small."""
    high, low = _rows(both)
    fine = lax.add(lax.add(high, lax.mul(low, float(2.0**-info.nmant))), info.dtype.type(info.tiny))
    x = lax.select(lax.ge(high, 0.5), high, fine)
    return lax.neg(lax.log(lax.neg(lax.log1p(lax.neg(x)))))


def _of_64_bits(words: Any) -> Any:
    """-log(-log(1 - u)) for u of 64 bits: where u is at least a half, 1 - u is made of the bits, and not rounded."""
    high, low = _rows(words)
    lower_half = lax.lt(high, np.uint32(1 << 31))
    carry = lax.convert_element_type(lax.eq(low, np.uint32(0)), np.uint32)
    flipped = lax.add(lax.bitwise_not(high), carry), lax.neg(low)
    x = _unit_of(*(lax.select(lower_half, a, b) for a, b in zip((high, low), flipped, strict=True)))
    inner = lax.select(lower_half, lax.log1p(lax.neg(x)), lax.log(x))
    return lax.neg(lax.log(lax.neg(inner)))


def _unit_of(high: Any, low: Any) -> Any:
    """high / 2**32 + low / 2**64 as float32, cut to its 24 first bits: never zero."""
    zeros, empty = lax.clz(high), lax.eq(high, np.uint32(0))
    rest = lax.shift_right_logical(low, lax.sub(np.uint32(32), zeros))
    first = lax.select(empty, lax.shift_left(low, lax.clz(low)), lax.bitwise_or(lax.shift_left(high, zeros), rest))
    leading = lax.select(empty, lax.add(lax.clz(low), np.uint32(32)), zeros)
    mantissa = lax.bitwise_and(lax.shift_right_logical(first, np.uint32(8)), np.uint32((1 << 23) - 1))
    exponent = lax.shift_left(lax.sub(np.uint32(126), leading), np.uint32(23))
    return lax.bitcast_convert_type(lax.bitwise_or(exponent, mantissa), np.float32)
