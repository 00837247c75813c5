"""The generators ``philox2x32``, ``philox4x32`` and ``threefry4x32``: a hash of a key and of each element's position.

All give the bits that JAX gives: positions are the first words of the counter of bits, the last of that of keys.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyax.ir.prng import PRNGImpl
from polyax.lax import lenient as lax
from polyax.random import hashes, threefry


@dataclass(frozen=True)
class _Generator:
    """The generator of a hash.

    Args:
      mix: the hash, of the words of a key and of a counter.
      words, counter: how many a key and a counter have.
      pairs: of which words the upper and the lower half of numbers of 64 bits are made.
    """

    mix: Callable[..., list[Any]]
    words: int
    counter: int
    pairs: Sequence[Sequence[int]]

    def registered(self, name: str, tag: str) -> PRNGImpl:
        return PRNGImpl(
            name,
            tag,
            self.words,
            seed=self.seed,
            split=self.split,
            fold_in=self.fold_in,
            random_bits=self.random_bits,
        )

    def seed(self, value: Any) -> Any:
        halves = list(threefry.words(threefry.seed(value)))
        zero = lax.full_like(halves[0], 0)
        padded = [*halves, *[zero] * (max(self.words, self.counter) - 2)]
        # The one whose keys are as wide as its counters hashes nothing with the seed as the key.
        if self.words == self.counter:
            return self._as_key(self.mix(padded, [zero] * self.counter))
        return self._as_key(self.mix([zero] * self.words, padded))

    def split(self, key: Any, shape: tuple[int, ...]) -> Any:
        return self._as_key(self._hashed(key, threefry.positions(shape)))

    def fold_in(self, key: Any, data: Any) -> Any:
        return self._as_key(self._hashed(key, [lax.convert_element_type(data, np.uint32)]))

    def random_bits(self, key: Any, width: int, shape: tuple[int, ...]) -> Any:
        first, second = threefry.positions(shape)
        found = self._hashed(key, [first, second, *[lax.full_like(first, 0)] * (self.counter - 2)])
        if width == 64:
            return threefry.join(*(_xor([found[n] for n in pair]) for pair in self.pairs))
        return lax.convert_element_type(_xor(found), threefry.UINTS[width])

    def _hashed(self, key: Any, counts: Sequence[Any]) -> list[Any]:
        """The hash; counters that aren't given whole are filled with zeros in front."""
        zero = lax.full_like(counts[0], 0)
        filled = [zero] * (self.counter - len(counts)) + list(counts)
        return self.mix([lax.broadcast_in_dim(k, zero.shape, ()) for k in _words(key, self.words)], filled)

    def _as_key(self, found: list[Any]) -> Any:
        axis = found[0].ndim
        return lax.concatenate([lax.expand_dims(w, (axis,)) for w in found[: self.words]], axis)


def _words(key: Any, count: int) -> list[Any]:
    return [lax.index_in_dim(key, n, 0, keepdims=False) for n in range(count)]


def _xor(found: Sequence[Any]) -> Any:
    result = found[0]
    for word in found[1:]:
        result = lax.bitwise_xor(result, word)
    return result


PHILOX_2X32 = _Generator(hashes.philox2x32, 1, 2, ((0,), (1,))).registered("philox2x32", "phx2")
PHILOX_4X32 = _Generator(hashes.philox4x32, 2, 4, ((0,), (1,))).registered("philox4x32", "phx4")
THREEFRY_4X32 = _Generator(hashes.threefry4x32, 4, 4, ((0, 2), (1, 3))).registered("threefry4x32", "fry4")
