"""The generators that keys are of, and what is made of a key: of a typed one by primitives that name its generator, of
words, which are of the default generator, at once."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.ir.config import config
from polyax.ir.prng import GENERATORS, KeyDType, PRNGImpl
from polyax.lax import lenient as lax
from polyax.ops.keys import random_bits_p, random_fold_in_p, random_split_p
from polyax.random import threefry

THREEFRY = PRNGImpl(
    "threefry2x32",
    "fry",
    2,
    seed=threefry.seed,
    split=threefry.split,
    fold_in=threefry.fold_in,
    random_bits=threefry.random_bits,
)

_ELSEWHERE = {
    "rbg": "polyax.random.rbg",
    "unsafe_rbg": "polyax.random.rbg",
    "philox2x32": "polyax.random.counters",
    "philox4x32": "polyax.random.counters",
    "threefry4x32": "polyax.random.counters",
}
"""Where the generators that few programs need are."""


def generator(name: Any = None) -> PRNGImpl:
    """The generator of this name, by default that of ``config.default_prng_impl``.

    Raises:
      ValueError: there is none.
      TypeError: ``name`` is no string.
    """
    name = config.default_prng_impl if name is None else name
    if isinstance(name, PRNGImpl):
        return name
    if not isinstance(name, str):
        raise TypeError(f"unrecognized type {type(name)} for specifying PRNG implementation.")
    if name not in GENERATORS and name in _ELSEWHERE:
        importlib.import_module(_ELSEWHERE[name])  # which registers it
    if name not in GENERATORS:
        there = ", ".join(f'"{n}"' for n in ("threefry2x32", *_ELSEWHERE))
        raise ValueError(f'unrecognized PRNG implementation "{name}". Did you mean one of: {there}?')
    return GENERATORS[name]


def is_own(name: str) -> bool:
    """Whether it is the name of a generator of polyax."""
    return name == THREEFRY.name or name in _ELSEWHERE


def generator_for(function: str, impl: Any, dtype: Any) -> PRNGImpl:
    """The one that the parameters ``impl`` or ``dtype`` of a function name.

    Raises:
      ValueError: both are given, or there is none of this name.
      TypeError: the name is no string, or the dtype isn't one of keys.
    """
    if dtype is None:
        return generator(impl)
    if impl is not None:
        raise ValueError(f"Cannot specify both `impl` and `dtype` arguments to polyax.random.{function}")
    return dtype.impl if isinstance(dtype, KeyDType) else generator(dtype)


def is_typed(key: Any) -> bool:
    return dtypes.is_extended(key.dtype)


def split(key: Any, shape: tuple[int, ...]) -> Any:
    """New keys, an array of this shape; of words, with one more dimension."""
    if is_typed(key):
        return random_split_p.bind1(key, shape=shape, partitionable=config.threefry_partitionable)
    return generator().split(key, shape)


def fold_in(key: Any, data: Any) -> Any:
    """The key of ``key`` and an integer scalar."""
    if is_typed(key):
        return random_fold_in_p.bind1(key, lax.convert_element_type(data, np.uint32))
    return generator().fold_in(key, data)


def random_bits(key: Any, width: int, shape: tuple[int, ...]) -> Any:
    """Uniform unsigned integers of 8, 16, 32 or 64 bits."""
    if is_typed(key):
        layout = config.threefry_partitionable
        return random_bits_p.bind1(key, bit_width=width, shape=shape, partitionable=layout)
    return generator().random_bits(key, width, shape)
