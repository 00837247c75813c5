"""``polyax.extend.random``: generators of random bits that users define."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from polyax import numpy as jnp
from polyax.ir.prng import PRNGImpl
from polyax.ops.bits import threefry2x32_p as threefry2x32_p
from polyax.ops.keys import random_seed_p
from polyax.random import generators, rbg, threefry

__all__ = [
    "define_prng_impl", "random_seed", "rbg_prng_impl", "seed_with_impl", "threefry2x32_p", "threefry_2x32",
    "threefry_prng_impl", "unsafe_rbg_prng_impl",
]  # fmt: skip

threefry_prng_impl = generators.THREEFRY
rbg_prng_impl, unsafe_rbg_prng_impl = rbg.RBG, rbg.UNSAFE_RBG


def define_prng_impl(
    *,
    key_shape: tuple[int, ...],
    seed: Callable[..., Any],
    split: Callable[..., Any],
    random_bits: Callable[..., Any],
    fold_in: Callable[..., Any],
    name: str = "<unnamed>",
    tag: str = "?",
) -> PRNGImpl:
    """A generator of one's own, for the parameter ``impl`` of ``polyax.random.key``.

    Args:
      key_shape: that of the words of a key, uint32.
      seed: ``(integer scalar) -> words``
      split: ``(words, shape) -> words`` of new keys, of shape (*shape, *key_shape).
      random_bits: ``(words, bit_width, shape) -> bits``, unsigned integers of 8, 16, 32 or 64 bits.
      fold_in: ``(words, integer scalar) -> words``
      name: by which ``impl`` can also name it; not that of a generator of polyax.
      tag: what stands in its dtype, ``key<tag>``.

    Raises:
      ValueError: the name is taken.

    >>> import polyax, polyax.numpy as jnp
    >>> counting = define_prng_impl(
    ...     key_shape=(1,),
    ...     seed=lambda s: jnp.asarray(s, "uint32")[None],
    ...     split=lambda k, shape: k + 1 + jnp.arange(shape[0], dtype="uint32")[:, None],
    ...     random_bits=lambda k, width, shape: jnp.full(shape, k[0], f"uint{width}"),
    ...     fold_in=lambda k, data: k + data,
    ...     name="counting",
    ...     tag="cnt",
    ... )
    >>> key = polyax.random.key(3, impl=counting)
    >>> key.dtype, polyax.random.bits(key, (2,)).tolist()
    (key<cnt>, [3, 3])
    """
    if generators.is_own(name):
        raise ValueError(f"{name!r} is the name of a generator of polyax; choose another one")
    key_shape = tuple(key_shape)
    rules = _Flat(key_shape, seed, split, random_bits, fold_in)
    return PRNGImpl(
        name, tag, rules.count, seed=rules.seed, split=rules.split, fold_in=rules.fold_in,
        random_bits=rules.random_bits, key_shape=key_shape,
    )  # fmt: skip


class _Flat:
    """A generator's functions of words in a vector, made of those of words in the shape of its keys."""

    def __init__(self, key_shape: tuple[int, ...], seed: Any, split: Any, random_bits: Any, fold_in: Any) -> None:
        self.key_shape, self.count = key_shape, math.prod(key_shape)
        self._rules = seed, split, random_bits, fold_in

    def seed(self, seed: Any) -> Any:
        return self._rules[0](seed).reshape(self.count)

    def split(self, words: Any, shape: tuple[int, ...]) -> Any:
        return self._rules[1](words.reshape(self.key_shape), shape).reshape(*shape, self.count)

    def random_bits(self, words: Any, bit_width: int, shape: tuple[int, ...]) -> Any:
        return self._rules[2](words.reshape(self.key_shape), bit_width, shape)

    def fold_in(self, words: Any, data: Any) -> Any:
        return self._rules[3](words.reshape(self.key_shape), data).reshape(self.count)


def random_seed(seeds: Any, impl: Any) -> Any:
    """The keys of integer seeds, which may be an array of them, of the generator ``impl``."""
    return random_seed_p.bind1(jnp.asarray(seeds), impl=generators.generator(impl))


def seed_with_impl(impl: Any, seed: Any) -> Any:
    """``random_seed``, with its arguments in the other order."""
    return random_seed(seed, impl)


def threefry_2x32(keypair: Any, count: Any) -> Any:
    """The words of threefry2x32 for ``count``, an array of uint32 whose halves are the two words that are hashed.

    Raises:
      TypeError: the arguments aren't of uint32.
    """
    first, second = keypair
    count = jnp.asarray(count)
    if any(x.dtype != np.uint32 for x in (first, second, count)):
        found = [str(x.dtype) for x in (first, second, count)]
        raise TypeError(f"threefry_2x32 requires uint32 arguments, got {found}")
    return threefry.hash_counts(jnp.stack([first, second]), count.ravel()).reshape(count.shape)
