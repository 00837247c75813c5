"""The generators ``philox2x32``, ``philox4x32`` and ``threefry4x32``: a hash of a key and of each element's position.

All give the bits that JAX gives: positions are the first words of the counter of bits, the last of that of keys.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polyax.ir.prng import PRNGImpl
from polyax.lax import lenient as lax
from polyax.random import hashes, threefry


def _register(
    name: str, tag: str, words: int, counter: int, mix: Callable[..., list[Any]], pairs: Sequence[Sequence[int]]
) -> PRNGImpl:
    """The generator of a hash.

    Args:
      words, counter: how many a key and a counter have.
      pairs: of which words the upper and the lower half of numbers of 64 bits are made.
    """

    def hashed(key: Any, counts: Sequence[Any]) -> list[Any]:
        """The hash; counters that aren't given whole are filled with zeros in front."""
        zero = lax.full_like(counts[0], 0)
        filled = [zero] * (counter - len(counts)) + list(counts)
        return mix([lax.broadcast_in_dim(k, zero.shape, ()) for k in _words(key, words)], filled)

    def as_key(found: list[Any]) -> Any:
        axis = found[0].ndim
        return lax.concatenate([lax.expand_dims(w, (axis,)) for w in found[:words]], axis)

    def seed(value: Any) -> Any:
        halves = list(threefry.words(threefry.seed(value)))
        zero = lax.full_like(halves[0], 0)
        padded = [*halves, *[zero] * (max(words, counter) - 2)]
        # The one whose keys are as wide as its counters hashes nothing with the seed as the key.
        if words == counter:
            return as_key(mix(padded, [zero] * counter))
        return as_key(mix([zero] * words, padded))

    def split(key: Any, shape: tuple[int, ...]) -> Any:
        return as_key(hashed(key, threefry.positions(shape)))

    def fold_in(key: Any, data: Any) -> Any:
        return as_key(hashed(key, [lax.convert_element_type(data, np.uint32)]))

    def random_bits(key: Any, width: int, shape: tuple[int, ...]) -> Any:
        first, second = threefry.positions(shape)
        found = hashed(key, [first, second, *[lax.full_like(first, 0)] * (counter - 2)])
        if width == 64:
            return threefry.join(*(_xor([found[n] for n in pair]) for pair in pairs))
        return lax.convert_element_type(_xor(found), threefry.UINTS[width])

    return PRNGImpl(name, tag, words, seed=seed, split=split, fold_in=fold_in, random_bits=random_bits)


def _words(key: Any, count: int) -> list[Any]:
    return [lax.index_in_dim(key, n, 0, keepdims=False) for n in range(count)]


def _xor(found: Sequence[Any]) -> Any:
    result = found[0]
    for word in found[1:]:
        result = lax.bitwise_xor(result, word)
    return result


PHILOX_2X32 = _register("philox2x32", "phx2", 1, 2, hashes.philox2x32, ((0,), (1,)))
PHILOX_4X32 = _register("philox4x32", "phx4", 2, 4, hashes.philox4x32, ((0,), (1,)))
THREEFRY_4X32 = _register("threefry4x32", "fry4", 4, 4, hashes.threefry4x32, ((0, 2), (1, 3)))
