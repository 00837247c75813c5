"""Random bits from keys of two 32-bit words: seeding, splitting and bits, in both layouts of JAX.

The original layout hashes one running count per key and lays the two output words out in halves; the partitionable one
(``config.threefry_partitionable``) hashes each element's own position. Must not know distributions.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from polyax.ir.config import config
from polyax.ir.dims import is_symbolic_dim
from polyax.lax import lenient as lax
from polyax.ops.bits import threefry2x32

UINTS = {8: np.dtype(np.uint8), 16: np.dtype(np.uint16), 32: np.dtype(np.uint32), 64: np.dtype(np.uint64)}
_MAX_BLOCK = 2**32 - 1


def words(key: Any) -> tuple[Any, Any]:
    """The two halves of a key, as scalars."""
    return lax.index_in_dim(key, 0, 0, keepdims=False), lax.index_in_dim(key, 1, 0, keepdims=False)


def seed(value: Any) -> Any:
    """The key of a traced integer: its upper and lower 32 bits."""
    low = lax.convert_element_type(value, np.uint32)
    if value.dtype.itemsize < 8:
        high = lax.full_like(low, 0)
    else:
        bits = lax.convert_element_type(value, UINTS[64])
        high = lax.convert_element_type(lax.shift_right_logical(bits, UINTS[64].type(32)), np.uint32)
    return lax.concatenate([lax.reshape(high, (1,)), lax.reshape(low, (1,))], 0)


def host_seed(value: int) -> np.ndarray:
    """The key of an integer of 64 bits, with or without a sign; without 64-bit types only its lower 32 bits count."""
    high = (value >> 32) & 0xFFFFFFFF if config.enable_x64 else 0
    return np.array([high, value & 0xFFFFFFFF], np.uint32)


def hash_counts(key: Any, counts: Any) -> Any:
    """The words of one-dimensional ``counts``, which go in as two halves (after a zero if their number is odd)."""
    size = counts.shape[0]
    padded = lax.concatenate([counts, lax.full((1,), 0, np.uint32)], 0) if size % 2 else counts
    half = padded.shape[0] // 2
    first, second = lax.slice_in_dim(padded, 0, half), lax.slice_in_dim(padded, half, 2 * half)
    result = lax.concatenate(threefry2x32(*words(key), first, second), 0)
    return lax.slice_in_dim(result, 0, size) if size % 2 else result


def positions(shape: tuple[int, ...]) -> tuple[Any, Any]:
    """Upper and lower 32 bits of each element's position in row-major order."""
    size = math.prod(shape)
    if size > _MAX_BLOCK:
        raise NotImplementedError(f"partitionable random bits for {size} elements: more than 2**32 are not implemented")
    low = lax.reshape(lax.iota(np.uint32, size), shape)
    return lax.full_like(low, 0), low


def split(key: Any, shape: tuple[int, ...]) -> Any:
    """New keys, as an array of shape (*shape, 2)."""
    if config.threefry_partitionable:
        first, second = threefry2x32(*words(key), *positions(shape))
        return lax.concatenate([lax.expand_dims(w, (len(shape),)) for w in (first, second)], len(shape))
    return lax.reshape(hash_counts(key, lax.iota(np.uint32, 2 * math.prod(shape))), (*shape, 2))


def fold_in(key: Any, data: Any) -> Any:
    """The key of ``key`` and an integer scalar."""
    return hash_counts(key, seed(lax.convert_element_type(data, np.uint32)))


def random_bits(key: Any, width: int, shape: tuple[int, ...]) -> Any:
    """Uniform unsigned integers of 8, 16, 32 or 64 bits."""
    return (_partitionable if config.threefry_partitionable else _original)(key, width, shape)


def _partitionable(key: Any, width: int, shape: tuple[int, ...]) -> Any:
    first, second = threefry2x32(*words(key), *positions(shape))
    if width == 64:
        return join(first, second)
    return lax.convert_element_type(lax.bitwise_xor(first, second), UINTS[width])


def join(high: Any, low: Any) -> Any:
    high, low = (lax.convert_element_type(w, np.uint64) for w in (high, low))
    return lax.bitwise_or(lax.shift_left(high, np.uint64(32)), low)


def _original(key: Any, width: int, shape: tuple[int, ...]) -> Any:
    size = math.prod(shape)
    count = -(-width * size // 32)
    if not is_symbolic_dim(count) and count > _MAX_BLOCK:
        raise NotImplementedError(f"{size} random integers of {width} bits from one key: more than 2**32 words")
    bits = hash_counts(key, lax.iota(np.uint32, count))
    if width == 64:
        bits = join(lax.slice_in_dim(bits, 0, size), lax.slice_in_dim(bits, size, 2 * size))
    elif width < 32:
        bits = _narrow(bits, width, size)
    return lax.reshape(bits, shape)


def _narrow(bits: Any, width: int, size: int) -> Any:
    """Each word gives several numbers, its lowest bits first."""
    parts = 32 // width
    spread = lax.broadcast_in_dim(bits, (bits.shape[0], parts), (0,))
    shift = lax.mul(lax.broadcasted_iota(np.uint32, spread.shape, 1), np.uint32(width))
    numbers = lax.bitwise_and(lax.shift_right_logical(spread, shift), np.uint32(2**width - 1))
    return lax.slice_in_dim(lax.convert_element_type(lax.reshape(numbers, (numbers.size,)), UINTS[width]), 0, size)
