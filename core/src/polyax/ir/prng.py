"""The types of random keys: opaque elements, of which only their generator knows the words that they are made of."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from polyax.ir.dtypes import ExtendedDType, prng_key


class PRNGImpl:
    """A generator, known by its name: how many words of 32 bits a key has, and what is made of the words of one key.

    Args:
      tag: what jaxprs print.
      seed: ``(integer scalar) -> words``
      split: ``(words, shape) -> words`` of new keys, along a last dimension.
      fold_in: ``(words, integer scalar) -> words``
      random_bits: ``(words, bit_width, shape) -> bits``
      key_shape: the shape in which users see the words of a key.
    """

    def __init__(
        self,
        name: str,
        tag: str,
        words: int,
        *,
        seed: Callable[..., Any],
        split: Callable[..., Any],
        fold_in: Callable[..., Any],
        random_bits: Callable[..., Any],
        key_shape: tuple[int, ...] | None = None,
    ) -> None:
        self.name, self.tag, self.words, self.key_shape = name, tag, words, key_shape or (words,)
        self.seed, self.split, self.fold_in, self.random_bits = seed, split, fold_in, random_bits
        GENERATORS[name] = self

    def __str__(self) -> str:
        return self.tag

    def __repr__(self) -> str:
        return f"PRNGSpec({self.name!r})"

    def __reduce__(self) -> Any:
        return _named, (self.name,)


GENERATORS: dict[str, PRNGImpl] = {}
"""By their names."""


def _named(name: str) -> PRNGImpl:
    return GENERATORS[name]


class KeyDType(ExtendedDType):
    """``key<fry>``: the dtype of keys of one generator. Made by ``key_dtype``, once for each."""

    type = prng_key
    physical = np.dtype(np.uint32)

    def __init__(self, impl: PRNGImpl) -> None:
        self.impl = impl
        self.name = self.short = f"key<{impl.tag}>"
        self.element_shape = (impl.words,)
        self.itemsize = impl.words * self.physical.itemsize

    def __reduce__(self) -> Any:
        return key_dtype, (self.impl,)


@functools.cache
def key_dtype(impl: PRNGImpl) -> KeyDType:
    return KeyDType(impl)
