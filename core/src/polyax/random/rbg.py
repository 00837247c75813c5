"""The generators ``rbg`` and ``unsafe_rbg``: bits by ``lax.rng_bit_generator``, for keys of four words.

The first makes keys of keys as threefry does, of each half for itself; the second makes them of bits. Both give the
bits that JAX gives on the CPU.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from polyax.ir.prng import PRNGImpl
from polyax.lax import lenient as lax
from polyax.lax.generating import rng_bit_generator
from polyax.random import threefry


def _seed(value: Any) -> Any:
    half = threefry.seed(value)
    return lax.concatenate([half, half], 0)


def _halves(key: Any) -> list[Any]:
    return [lax.slice_in_dim(key, n, n + 2) for n in (0, 2)]


def _split(key: Any, shape: tuple[int, ...]) -> Any:
    return lax.concatenate([threefry.split(half, shape) for half in _halves(key)], len(shape))


def _fold_in(key: Any, data: Any) -> Any:
    return lax.concatenate([threefry.fold_in(half, data) for half in _halves(key)], 0)


def _random_bits(key: Any, width: int, shape: tuple[int, ...]) -> Any:
    return rng_bit_generator(key, shape, dtype=np.dtype(f"uint{width}"))[1]


_EVERY = 10
"""Of so many blocks one is a key: what is between them is drawn and dropped."""


def _unsafe_split(key: Any, shape: tuple[int, ...]) -> Any:
    _, rows = rng_bit_generator(key, (_EVERY * math.prod(shape), 4))
    return lax.reshape(lax.slice_in_dim(rows, 0, rows.shape[0], _EVERY), (*shape, 4))


def _unsafe_fold_in(key: Any, data: Any) -> Any:
    _, rows = rng_bit_generator(_seed(lax.convert_element_type(data, np.uint32)), (_EVERY, 4))
    return lax.bitwise_xor(key, lax.index_in_dim(rows, _EVERY - 1, 0, keepdims=False))


RBG = PRNGImpl("rbg", "rbg", 4, seed=_seed, split=_split, fold_in=_fold_in, random_bits=_random_bits)
UNSAFE_RBG = PRNGImpl(
    "unsafe_rbg", "urbg", 4, seed=_seed, split=_unsafe_split, fold_in=_unsafe_fold_in, random_bits=_random_bits
)
