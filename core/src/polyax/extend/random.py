"""``polyax.extend.random``: generators of random bits that users define."""

from __future__ import annotations

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
      key_shape: ``(n,)``: keys are of n words, uint32.
      seed: ``(integer scalar) -> words``
      split: ``(words, shape) -> words`` of new keys, of shape (*shape, n).
      random_bits: ``(words, bit_width, shape) -> bits``, unsigned integers of 8, 16, 32 or 64 bits.
      fold_in: ``(words, integer scalar) -> words``
      name: by which ``impl`` can also name it; not that of a generator of polyax.
      tag: what stands in its dtype, ``key<tag>``.

    Raises:
      ValueError: the name is taken.
      NotImplementedError: ``key_shape`` hasn't one dimension.

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
    if len(key_shape) != 1:
        raise NotImplementedError(f"key_shape must be that of a vector of words, got {tuple(key_shape)}")
    if generators.is_own(name):
        raise ValueError(f"{name!r} is the name of a generator of polyax; choose another one")
    return PRNGImpl(name, tag, key_shape[0], seed=seed, split=split, fold_in=fold_in, random_bits=random_bits)


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
