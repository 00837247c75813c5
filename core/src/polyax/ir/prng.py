"""The types of random keys: opaque elements, of which only their generator knows the words that they are made of."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyax.ir.dtypes import ExtendedDType, prng_key


@dataclass(frozen=True)
class PRNGImpl:
    """A generator: how many words of 32 bits a key has, and what is made of them. Each function works on one key."""

    name: str
    tag: str
    words: int
    seed: Callable[..., Any]
    """Of an integer scalar."""
    split: Callable[..., Any]
    """``(words, shape)``; the words of each new key are the last dimension."""
    fold_in: Callable[..., Any]
    """``(words, integer scalar)``"""
    random_bits: Callable[..., Any]
    """``(words, bit_width, shape)``"""

    def __str__(self) -> str:
        return self.tag


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
