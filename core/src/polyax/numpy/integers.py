"""Integers as what they are made of: common divisors, and bits packed into bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.lax import lenient as lax
from polyax.numpy.broadcast import as_mask, choose
from polyax.numpy.promotion import as_array, canonicalize_axis, convert, ensure_array, promote_args
from polyax.numpy.shapes import moveaxis, ravel

__all__ = ["gcd", "lcm", "packbits", "unpackbits"]

_UINT8 = np.dtype("uint8")


def gcd(x1: Any, x2: Any) -> Any:
    """The greatest common divisor of integers, never negative; 0 of two zeros. Elementwise; shapes broadcast.

    Raises:
      ValueError: an argument isn't of integers.

    >>> gcd(12, -18).item()
    6
    """
    x, y = _integers("gcd", x1, x2)
    shape = np.broadcast_shapes(x.shape, y.shape)
    start = tuple(lax.broadcast_in_dim(v, shape, range(len(shape) - v.ndim, len(shape))) for v in (x, y))

    def step(pair: Any) -> Any:
        """Euclid's, where it isn't through."""
        x, y = pair
        left = lax.ne(y, 0)
        rest = lax.rem(x, choose(left, y, 1))
        return choose(left, y, x), choose(left, rest, 0)

    def unfinished(pair: Any) -> Any:
        return lax.reduce_or(lax.ne(pair[1], 0), tuple(range(len(shape))))

    return lax.while_loop(unfinished, step, start)[0]


def lcm(x1: Any, x2: Any) -> Any:
    """The least common multiple of integers, never negative; 0 beside a zero. Elementwise; shapes broadcast.

    Raises:
      ValueError: an argument isn't of integers.
    """
    x, y = _integers("lcm", x1, x2)
    divisor = gcd(x, y)
    nothing = lax.eq(divisor, 0)
    return choose(nothing, 0, x // choose(nothing, 1, divisor) * y)


def _integers(name: str, *args: Any) -> list[Any]:
    x, y = (as_array(v) for v in promote_args(name, *args))
    if not dtypes.is_integer(x.dtype):
        raise ValueError(f"Arguments to jax.numpy.{name} must be integers.")
    return [v if dtypes.is_unsigned(v.dtype) else lax.abs(v) for v in (x, y)]


def packbits(a: Any, axis: int | None = None, bitorder: str = "big") -> Any:
    """Eight elements, which are bits if they aren't zero, as a byte; the last ones are filled up with zeros.

    Args:
      axis: where bits lie; None for those of the flattened array.
      bitorder: whether the first bit is the highest ("big") or the lowest ("little") of a byte.

    Raises:
      TypeError: elements are neither integers nor booleans.
      ValueError: an unknown ``bitorder``.

    >>> packbits(np.array([1, 0, 1])).tolist()
    [160]
    """
    x = ensure_array("packbits", a)
    if not (dtypes.is_integer(x.dtype) or x.dtype in dtypes.BOOL):
        raise TypeError(f"packbits: Expected an input array of integer or boolean data type, got {x.aval}")
    weights = _weights(bitorder)
    x, axis = (ravel(x), 0) if axis is None else (x, canonicalize_axis(axis, x.ndim))
    bits = moveaxis(convert(as_mask(x), _UINT8), axis, -1)
    *rest, size = bits.shape
    bits = lax.pad(bits, np.uint8(0), [(0, 0, 0)] * len(rest) + [(0, -size % 8, 0)])
    rows = lax.reshape(bits, (*rest, -(-size // 8), 8))
    values = lax.mul(rows, np.broadcast_to(weights, (1,) * len(rest) + (1, 8)))
    return moveaxis(convert(lax.reduce_sum(values, (len(rest) + 1,)), _UINT8), -1, axis)


def unpackbits(a: Any, axis: int | None = None, count: int | None = None, bitorder: str = "big") -> Any:
    """The bits of bytes, as bytes of 0 and 1.

    Args:
      axis: along which bits are to lie; None for those of the flattened array.
      count: how many are wanted: others are cut off, missing ones are zeros. A negative one is cut off at the end.
      bitorder: as ``packbits`` has it.

    Raises:
      TypeError: elements aren't unsigned bytes.
      ValueError: an unknown ``bitorder``.
    """
    x = ensure_array("unpackbits", a)
    if x.dtype != _UINT8:
        raise TypeError(f"unpackbits: Expected an input array of unsigned byte data type, got {x.aval}")
    weights = _weights(bitorder)
    x, axis = (ravel(x), 0) if axis is None else (x, canonicalize_axis(axis, x.ndim))
    x = moveaxis(x, axis, -1)
    spread = lax.broadcast_in_dim(x, (*x.shape, 8), range(x.ndim))
    mask = lax.bitwise_and(spread, np.broadcast_to(weights, (1,) * x.ndim + (8,)) + np.zeros(spread.shape, np.uint8))
    bits = lax.reshape(convert(lax.ne(mask, np.uint8(0)), _UINT8), (*x.shape[:-1], 8 * x.shape[-1]))
    return moveaxis(_counted(bits, count), -1, axis)


def _counted(bits: Any, count: int | None) -> Any:
    if count is None:
        return bits
    more = count - bits.shape[-1] if count >= 0 else count
    return lax.pad(bits, np.uint8(0), [(0, 0, 0)] * (bits.ndim - 1) + [(0, more, 0)])


def _weights(bitorder: str) -> np.ndarray:
    orders: dict[str, Sequence[int]] = {"big": range(7, -1, -1), "little": range(8)}
    if bitorder not in orders:
        raise ValueError(f"'bitorder' must be either 'little' or 'big', got {bitorder!r}")
    return np.array([1 << n for n in orders[bitorder]], np.uint8)
