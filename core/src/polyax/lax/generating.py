"""Random bits from a state: ``rng_bit_generator``, by counters that Philox or Threefry encrypt, as in XLA on the CPU.

Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polyax.control.callback import pure_callback
from polyax.ir import dtypes
from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.primitive import Primitive, def_rule
from polyax.meshes.resharding import resharded, sharding_for
from polyax.ops.basis import add, convert, iota, move_axis, mul, reshape, shape_tuple, squeeze
from polyax.ops.bits import threefry2x32
from polyax.ops.compare import bitwise_or, bitwise_xor, lt, mulhi_p, shift_left, shift_right_logical
from polyax.ops.define import flat_jvp
from polyax.ops.index import dynamic_update_index_in_dim
from polyax.ops.joining import stack
from polyax.ops.slicing import index_in_dim, slice_in_dim

_WORD, _PAIR = np.dtype(np.uint32), np.dtype(np.uint64)


class RandomAlgorithm(enum.IntEnum):
    """What encrypts counters."""

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2

    def __str__(self) -> str:
        return self.name


rng_bit_generator_p = Primitive("rng_bit_generator", multiple_results=True)
rng_bit_generator_p.jvp = flat_jvp(rng_bit_generator_p)
rng_bit_generator_p.never("transpose", "random bits are integers, which have no cotangents")
rng_bit_generator_p.never("factors", "the bits of a part depend on where it begins: each device makes all of them")


def rng_bit_generator(
    key: Any,
    shape: Sequence[int],
    dtype: Any = np.uint32,
    algorithm: RandomAlgorithm = RandomAlgorithm.RNG_DEFAULT,
    *,
    out_sharding: Any = None,
) -> tuple[Any, Any]:
    """The next state, and random bits.

    Args:
      key: the state: four words of 32 bits, or two of 64: a key, and a counter.
      dtype: an unsigned integer type.
      out_sharding: how the bits are to be cut along explicit axes of a mesh.

    Raises:
      TypeError: the state has another type, or ``dtype`` is no unsigned integer type.

    >>> state, bits = rng_bit_generator(np.uint32([1, 2, 3, 4]), (2,))
    >>> state.tolist(), bits.tolist()
    ([1, 2, 4, 4], [512747620, 1298009047])
    """
    params = {"shape": shape_tuple(shape), "dtype": dtypes.canonicalize(dtype), "algorithm": RandomAlgorithm(algorithm)}
    state, bits = rng_bit_generator_p.bind(key, **params)
    return state, bits if out_sharding is None else resharded(bits, sharding_for(out_sharding))


@def_rule(rng_bit_generator_p, "abstract_eval")
def _abstract_eval(key: ShapedArray, *, shape: tuple[int, ...], dtype: Any, **_: Any) -> list[ShapedArray]:
    if (key.shape, key.dtype) not in (((4,), np.uint32), ((2,), np.uint64)):
        raise TypeError(
            f"rng_bit_generator needs a state of type uint32[4] or uint64[2], got {key.str_short()}. Keys of two words "
            "are for polyax.random."
        )
    if dtype not in (np.uint8, np.uint16, np.uint32, np.uint64):
        raise TypeError(f"rng_bit_generator: unsupported dtype {dtype}")
    return [key.strip_weak_type(), ShapedArray(shape, dtype)]


@def_rule(rng_bit_generator_p, "batch")
def _batch(axis: Any, args: Sequence[Any], dims: Sequence[int | None], *, shape: tuple[int, ...], **params: Any) -> Any:
    """All bits are made from the first state, as in JAX."""
    if dims[0] is None:
        return rng_bit_generator_p.bind(*args, shape=shape, **params), [None, None]
    states = move_axis(args[0], dims[0], 0)
    first = index_in_dim(states, 0, 0, keepdims=False)
    state, bits = rng_bit_generator_p.bind(first, shape=(axis.size, *shape), **params)
    return [dynamic_update_index_in_dim(states, state, 0, 0), bits], [0, 0]


@def_rule(rng_bit_generator_p, "pretty")
def _pretty(**params: Any) -> dict[str, Any]:
    return params | {"out_sharding": None}


@def_rule(rng_bit_generator_p, "decompose")
def _decompose(state: Any, *, shape: tuple[int, ...], dtype: Any, algorithm: RandomAlgorithm) -> list[Any]:
    words = _words(state)
    encrypt, of_one = (_threefry, 2) if algorithm == RandomAlgorithm.RNG_THREE_FRY else (_philox, 4)
    blocks_of = lambda n: encrypt(words[:2], _advanced(words[2:], iota(np.uint32, n)))
    wide = dtype.itemsize == 8
    in_halves = of_one == 2 and not wide
    blocks, bits = _halved(blocks_of, shape) if in_halves else _in_a_row(blocks_of, of_one, shape, wide)
    following = _advanced(words[2:], np.uint32(blocks))
    return [_state(state, [*words[:2], *following]), convert(bits, dtype)]


Blocks = Callable[[int], list[Any]]
"""The words of so many blocks: an array for each word of one."""


def _in_a_row(blocks_of: Blocks, of_one: int, shape: tuple[int, ...], wide: bool) -> tuple[int, Any]:
    """How many blocks of ``of_one`` words were made for ``shape``, and the words, or pairs of them, in their order."""
    size = math.prod(shape)
    blocks = -(-size * (1 + wide) // of_one)
    bits = reshape(stack(blocks_of(blocks), 1), (blocks * of_one,))
    if wide:
        bits = _joined(reshape(bits, (blocks * of_one // 2, 2)))
    return blocks, reshape(slice_in_dim(bits, 0, size), shape)


def _halved(blocks_of: Blocks, shape: tuple[int, ...]) -> tuple[int, Any]:
    """The same for blocks of two words, as XLA lays them: neighbours along the first even dimension, else along the
    longest one, which they overhang by one."""
    if not shape:
        return 1, reshape(blocks_of(1)[0], ())
    even = [d for d, n in enumerate(shape) if n % 2 == 0]
    dim = even[0] if even else shape.index(max(shape))
    half = (*shape[:dim], -(-shape[dim] // 2), *shape[dim + 1 :])
    blocks = math.prod(half)
    pairs = stack([reshape(x, half) for x in blocks_of(blocks)], dim + 1)
    whole = reshape(pairs, (*shape[:dim], 2 * half[dim], *shape[dim + 1 :]))
    return blocks, slice_in_dim(whole, 0, shape[dim], axis=dim)


# --- words of 32 bits


def _words(state: Any) -> list[Any]:
    """The state as four words, the lower one of a pair first."""
    if aval_of(state).dtype == np.uint32:
        return [_at(state, n) for n in range(4)]
    pairs = [_at(state, 0), _at(state, 1)]
    return [convert(x, _WORD) for p in pairs for x in (p, shift_right_logical(p, np.uint64(32)))]


def _at(x: Any, n: int) -> Any:
    return squeeze(slice_in_dim(x, n, n + 1), (0,))


def _state(like: Any, words: Sequence[Any]) -> Any:
    made = stack(words, 0)
    return made if aval_of(like).dtype == np.uint32 else _joined(reshape(made, (2, 2)))


def _joined(pairs: Any) -> Any:
    """Rows of a lower and an upper word as one of 64 bits each."""
    low, high = (convert(index_in_dim(pairs, n, 1, keepdims=False), _PAIR) for n in range(2))
    return bitwise_or(shift_left(high, np.uint64(32)), low)


def _advanced(count: Sequence[Any], by: Any) -> list[Any]:
    """A counter of 64 bits, increased."""
    low = add(count[0], by)
    carry = convert(lt(low, count[0]), _WORD)
    return [low, add(count[1], carry)]


# --- encryption


def _threefry(key: Sequence[Any], counts: Sequence[Any]) -> list[Any]:
    return threefry2x32(*key, *counts)


def _philox(key: Sequence[Any], counts: Sequence[Any]) -> list[Any]:
    """Philox-4x32 of ten rounds; the upper half of each block is the key itself."""
    block: list[Any] = [*counts, *key]
    for n in range(10):
        block = _round(block, [add(k, np.uint32(n * w & 0xFFFFFFFF)) for k, w in zip(key, _WEYL, strict=True)])
    return block


_WEYL = 0x9E3779B9, 0xBB67AE85
_FACTORS = np.uint32(0xD2511F53), np.uint32(0xCD9E8D57)


def _round(block: Sequence[Any], key: Sequence[Any]) -> list[Any]:
    a, b, c, d = block
    f, g = _FACTORS
    left = bitwise_xor(bitwise_xor(mulhi_p.bind1(c, g), b), key[0])
    right = bitwise_xor(bitwise_xor(mulhi_p.bind1(a, f), d), key[1])
    return [left, mul(c, g), right, mul(a, f)]


# --- numbers of no state


rng_uniform_p = Primitive("rng_uniform")
rng_uniform_p.jvp = flat_jvp(rng_uniform_p)
rng_uniform_p.never("transpose", "random numbers have no cotangents")
rng_uniform_p.never("factors", "each device would make numbers of its own")


def rng_uniform(a: Any, b: Any, shape: Sequence[int]) -> Any:
    """Random numbers between ``a`` and ``b``, other ones each time. ``polyax.random`` is what gives the same again.

    Raises:
      ValueError: ``a`` and ``b`` are no scalars of one type.

    >>> rng_uniform(np.float32(0), np.float32(1), (3,)).shape
    (3,)
    """
    return rng_uniform_p.bind1(a, b, shape=shape_tuple(shape))


@def_rule(rng_uniform_p, "abstract_eval")
def _uniform_abstract(a: ShapedArray, b: ShapedArray, *, shape: tuple[int, ...]) -> list[ShapedArray]:
    if a.dtype != b.dtype:
        raise ValueError(f"Arguments to rng_uniform must have identical dtypes, got {a.dtype} and {b.dtype}.")
    if a.shape or b.shape:
        raise ValueError(f"Arguments to rng_uniform must be scalars; got shapes {a.shape} and {b.shape}.")
    return [ShapedArray(shape, a.dtype, a.weak_type and b.weak_type)]


@def_rule(rng_uniform_p, "batch")
def _uniform_batch(axis: Any, args: Sequence[Any], dims: Sequence[int | None], *, shape: tuple[int, ...]) -> Any:
    if any(d is not None for d in dims):
        raise NotImplementedError("vmap of rng_uniform whose bounds differ between examples isn't built")
    return rng_uniform_p.bind_all(*args, shape=(axis.size, *shape)), [0]


@def_rule(rng_uniform_p, "decompose")
def _uniform_decompose(a: Any, b: Any, *, shape: tuple[int, ...]) -> list[Any]:
    aval = ShapedArray(shape, aval_of(a).dtype)

    def numbers(low: Any, high: Any) -> Any:
        if dtypes.is_integer(aval.dtype):
            return _GENERATOR.integers(low, high, shape, dtype=aval.dtype)
        return _GENERATOR.uniform(low, high, shape).astype(aval.dtype)

    return [pure_callback(numbers, aval, a, b)]


_GENERATOR = np.random.default_rng()
