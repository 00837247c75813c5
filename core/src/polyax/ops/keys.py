"""Primitives on random keys, named and printed as in JAX: ``random_seed random_split random_fold_in random_bits`` are a
generator's, ``random_wrap random_unwrap random_clone`` change no more than the type.

Keys are elements as numbers are: each primitive works on arrays of them, of any shape. What they are in terms of words
is said here by functions of the words; ``control.elaboration`` puts that in their place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from polyax.ir import dtypes
from polyax.ir.aval import ShapedArray
from polyax.ir.config import config
from polyax.ir.primitive import Primitive
from polyax.ir.prng import PRNGImpl, key_dtype
from polyax.meshes.factors import Factors, leading
from polyax.ops.basis import random_wrap_p
from polyax.ops.define import flat_jvp, materialize

Words = Callable[..., Any]
"""``(impl, *operands, **params) -> result``, for one key, whose words stand for it."""

ON_WORDS: dict[Primitive, Words] = {}


def _primitive(name: str | Primitive, typed: Callable[..., ShapedArray], on_words: Words) -> Primitive:
    """A primitive of one result that is made from each element of its operands, of one shape, for itself."""
    p = Primitive(name) if isinstance(name, str) else name
    p.abstract_eval = lambda *avals, **params: [typed(*avals, **params)]
    p.jvp = flat_jvp(p)
    p.never("transpose", "keys and random bits have no cotangents")
    p.factors = lambda *avals, **params: _along_elements(avals, typed(*avals, **params))
    p.batch = lambda axis, args, dims, **params: (p.bind_all(*materialize(axis, args, dims), **params), [0])
    ON_WORDS[p] = on_words
    return p


def _along_elements(avals: Sequence[ShapedArray], out: ShapedArray) -> Factors:
    return leading(min(a.ndim for a in (*avals, out)), avals, [out])


def _impl(name: str, keys: ShapedArray) -> PRNGImpl:
    if not dtypes.issubdtype(keys.dtype, dtypes.prng_key):
        raise TypeError(f"{name} takes an array of keys, got {keys}")
    return keys.dtype.impl


def _seeded(seeds: ShapedArray, *, impl: PRNGImpl) -> ShapedArray:
    return ShapedArray(seeds.shape, key_dtype(impl))


_INVALID = "JAX encountered invalid PRNG key data: expected key_data"


def _wrapped(words: ShapedArray, *, impl: PRNGImpl) -> ShapedArray:
    dtype = key_dtype(impl)
    if words.dtype != dtype.physical:
        raise TypeError(f"{_INVALID}.dtype = uint32; got dtype={words.dtype}")
    if not words.ndim:
        raise TypeError(f"{_INVALID}.ndim >= 1; got ndim=0")
    if words.shape[-1:] != dtype.element_shape:
        found = f"shape={words.shape} for impl={impl.name}"
        raise TypeError(f"{_INVALID}.shape to end with {dtype.element_shape}; got {found}")
    return ShapedArray(words.shape[:-1], dtype)


def _unwrapped(keys: ShapedArray) -> ShapedArray:
    _impl("random_unwrap", keys)
    return keys.physical


def _split(keys: ShapedArray, *, shape: tuple[int, ...], partitionable: bool | None = None) -> ShapedArray:
    _impl("random_split", keys)
    return ShapedArray((*keys.shape, *shape), keys.dtype)


def _folded(keys: ShapedArray, data: ShapedArray) -> ShapedArray:
    _impl("random_fold_in", keys)
    if keys.shape != data.shape:
        raise TypeError(f"random_fold_in: as many numbers as keys are needed, got {keys} and {data}")
    return ShapedArray(keys.shape, keys.dtype)


def _bits(
    keys: ShapedArray, *, bit_width: int, shape: tuple[int, ...], partitionable: bool | None = None
) -> ShapedArray:
    _impl("random_bits", keys)
    return ShapedArray((*keys.shape, *shape), dtypes.as_dtype(f"uint{bit_width}"))


def _cloned(keys: ShapedArray) -> ShapedArray:
    _impl("random_clone", keys)
    return keys


def _consumed(keys: ShapedArray) -> ShapedArray:
    _impl("consume", keys)
    return keys


def _asserted(keys: ShapedArray, *, value: Any) -> ShapedArray:
    _impl("assert_consumed_value", keys)
    return keys


def _same(own: PRNGImpl, words: Any, **_: Any) -> Any:
    return words


def _as_asked(on_words: Words) -> Words:
    """In the layout that was in force where a user asked, which may be another one where the program is compiled."""

    def laid_out(own: PRNGImpl, words: Any, *, partitionable: bool | None = None, **params: Any) -> Any:
        if partitionable is None:
            return on_words(own, words, **params)
        with config.override(threefry_partitionable=partitionable):
            return on_words(own, words, **params)

    return laid_out


random_seed_p = _primitive("random_seed", _seeded, lambda own, seed, *, impl: impl.seed(seed))
_primitive(random_wrap_p, _wrapped, _same)
random_unwrap_p = _primitive("random_unwrap", _unwrapped, _same)
random_clone_p = _primitive("random_clone", _cloned, _same)
consume_p = _primitive("consume", _consumed, _same)
assert_consumed_value_p = _primitive("assert_consumed_value", _asserted, _same)
random_split_p = _primitive("random_split", _split, _as_asked(lambda own, words, *, shape: own.split(words, shape)))
random_fold_in_p = _primitive("random_fold_in", _folded, lambda own, words, data: own.fold_in(words, data))
random_bits_p = _primitive(
    "random_bits",
    _bits,
    _as_asked(lambda own, words, *, bit_width, shape: own.random_bits(words, bit_width, shape)),
)
for _p in (random_split_p, random_bits_p):
    _p.pretty = lambda partitionable=None, **params: params
