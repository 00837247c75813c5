"""Keys: making, splitting and folding in. A key is typed, or an array of two unsigned 32-bit integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyax.api import jit
from polyax.ir import dtypes, prng
from polyax.ir.aval import ShapedArray
from polyax.ir.config import config
from polyax.ir.dims import dim_index
from polyax.ir.prng import PRNGImpl
from polyax.lax import lenient as lax
from polyax.numpy.promotion import as_array, concrete_shape, is_arraylike, is_traced, shape_of, unwrap
from polyax.ops.basis import random_wrap_p
from polyax.ops.keys import random_clone_p, random_seed_p, random_unwrap_p
from polyax.random import generators, threefry
from polyax.random.generators import generator, generator_for, is_typed
from polyax.runtime.arrays.placing import from_host, on_mesh_in_force
from polyax.runtime.contract.tracebacks import warn_user

_seed = jit(threefry.seed, inline=True)
_typed_seed = jit(random_seed_p.bind1, static_argnames=("impl",), inline=True)
_split = jit(generators.split, static_argnames=("shape",), inline=True)
_fold_in = jit(generators.fold_in, inline=True)


def key(seed: Any, *, impl: Any = None, dtype: Any = None) -> Any:
    """The key of an integer seed, typed: an array without dimensions of the dtype ``key<fry>``.

    Args:
      impl: the name of the generator, or the ``key_impl`` of another key; ``config.default_prng_impl``, if None.
      dtype: that of another key, instead of ``impl``.

    Raises:
      TypeError: the seed is no integer scalar.
      ValueError: there is no such generator, or both ``impl`` and ``dtype`` are given.

    >>> from polyax import random
    >>> random.key(18)
    Array((), dtype=key<fry>) overlaying:
    [ 0 18]
    """
    own = generator_for("key", impl, dtype)
    seed = _offset(seed)
    if _is_plain_integer(seed) and own.name in _SEEDED_AT_ONCE:
        return on_mesh_in_force(from_host(_host_words(seed, own), aval=ShapedArray((), prng.key_dtype(own))))
    return _typed_seed(_check_seed("key", seed), impl=own)


_SEEDED_AT_ONCE = frozenset({"threefry2x32", "rbg", "unsafe_rbg"})
"""The generators whose keys are the words of the seed themselves; others hash them."""


def PRNGKey(seed: Any, *, impl: Any = None) -> Any:
    """The key of an integer seed as its words: an array of two uint32. ``key`` gives one that tells what it is.

    Raises:
      TypeError: the seed is no integer scalar.
      ValueError: there is no such generator.

    >>> from polyax import random
    >>> random.PRNGKey(18).tolist()
    [0, 18]
    """
    if config.enable_custom_prng:
        return key(seed, impl=impl)
    own = generator(impl)
    seed = _offset(seed)
    if _is_plain_integer(seed) and own.name in _SEEDED_AT_ONCE:
        return on_mesh_in_force(from_host(_host_words(seed, own)))
    seed = _check_seed("PRNGKey", seed)
    return _seed(seed) if own is generators.THREEFRY else random_unwrap_p.bind1(_typed_seed(seed, impl=own))


def _host_words(seed: Any, own: PRNGImpl) -> np.ndarray:
    """The words of a seed that is known: those of threefry, as often as they fit."""
    return np.tile(threefry.host_seed(int(seed)), own.words // 2)


def _wrapped(seed: int) -> np.generic:
    """A seed as the unsigned integer of the widest type that there is."""
    high, low = (int(w) for w in threefry.host_seed(seed))
    return np.uint64(high << 32 | low) if config.enable_x64 else np.uint32(low)


def _offset(seed: Any) -> Any:
    """The seed, or another one as ``random_seed_offset`` says.

    Raises:
      OverflowError: it is a number of Python's that 64 bits with a sign can't hold.
    """
    if isinstance(seed, int) and not -(2**63) <= seed < 2**63:
        raise OverflowError(f"the seed {seed} does not fit into 64 bits with a sign; numpy.uint64 holds larger ones")
    offset = config.get("random_seed_offset")
    return seed + offset if offset else seed


def _is_plain_integer(seed: Any) -> bool:
    return isinstance(seed, (int, np.integer, np.bool_))


def _check_seed(name: str, seed: Any) -> Any:
    if _is_plain_integer(seed):
        return as_array(_wrapped(int(seed)))
    _refuse_none(seed)
    if not is_arraylike(seed):
        raise TypeError(f"PRNG key seed must be an integer; got {seed!r} of type {type(seed)}")
    value = as_array(unwrap(seed))
    if is_typed(value):
        raise TypeError(f"{name} accepts a scalar seed, but was given a PRNG key.")
    if value.shape:
        raise TypeError(
            f"{name} accepts a scalar seed, but was given an array of shape {value.shape} != (). Use jax.vmap for "
            "batching"
        )
    if not dtypes.is_integer(value.dtype):
        raise TypeError(f"PRNG key seed must be an integer; got {value.aval}")
    return value


def _refuse_none(x: Any) -> None:
    if x is None:
        raise ValueError("None is not a valid value for jnp.array")


def check_key(name: str, key: Any) -> Any:
    """``key`` as one key, typed or in words.

    Raises:
      TypeError: it has another dtype or shape.
      ValueError: it is an array of keys.
    """
    if isinstance(key, (bool, int, float, complex, str)):
        raise TypeError(
            "JAX encountered invalid PRNG key data: expected key_data to have ndim, shape, and dtype attributes. "
            f"Got {key}. Make a key with polyax.random.key."
        )
    if not is_arraylike(key):
        raise TypeError(f"unexpected PRNG key type {type(key)}")
    key = as_array(unwrap(key))
    if not is_typed(key) and config.get("legacy_prng_key") != "allow":
        _refuse_words()
    many = key.shape if is_typed(key) else _check_words(key).shape[:-1]
    if many:
        shape = key.shape
        raise ValueError(
            f"{name} accepts a single key, but was given a key array of shape {shape} != (). Use jax.vmap for batching."
        )
    return key


def _refuse_words() -> None:
    """Warns or raises, as ``legacy_prng_key`` says."""
    text = (
        "Legacy uint32 key array passed as key to jax.random function. Please create keys using jax.random.key(). If "
        'use of a raw key array was intended, set jax_legacy_prng_key="allow".'
    )
    if config.get("legacy_prng_key") == "error":
        raise ValueError(text)
    warn_user(text)


def _check_words(words: Any, impl: PRNGImpl | None = None) -> Any:
    """Raises TypeError unless the array holds words of keys, by default of the default generator."""
    impl = generator() if impl is None else impl
    random_wrap_p.rule("abstract_eval")(words.aval, impl=impl)
    return words


def split(key: Any, num: Any = 2) -> Any:
    """``num`` (a number or a shape) new keys; don't use ``key`` afterwards.

    >>> from polyax import random
    >>> [k.tolist() for k in random.split(random.PRNGKey(18))]
    [[4197003906, 1654466292], [1685972163, 1654824463]]
    """
    shape = concrete_shape(num) if isinstance(num, (tuple, list)) else (dim_index(num),)
    return _split(check_key("split", key), shape)


def fold_in(key: Any, data: Any) -> Any:
    """The key of ``key`` and an integer, such as the number of a step.

    Raises:
      TypeError: ``data`` is no scalar integer.
      OverflowError: it is a number of Python's that 32 bits without a sign can't hold.

    >>> from polyax import random
    >>> key = random.key(0)
    >>> keys = [random.fold_in(key, step) for step in range(2)]
    >>> bool(keys[0] == keys[1])
    False
    """
    key = check_key("fold_in", key)
    _refuse_none(data)
    if shape_of(data) != ():
        raise TypeError(
            f"fold_in accepts a scalar, but was given an array of shape {shape_of(data)} != (). Use jax.vmap for "
            "batching."
        )
    if not is_traced(data) and isinstance(data, (int, np.integer)):
        data = np.uint32(data) if isinstance(data, int) else data.astype(np.uint32)
        return _fold_in(key, data if is_traced(key) else as_array(data))
    return _fold_in(key, as_array(unwrap(data)))


def key_data(keys: Any) -> Any:
    """The words of keys, along last dimensions; keys that are words already as they are.

    >>> from polyax import random
    >>> random.key_data(random.key(18)).tolist()
    [0, 18]
    """
    keys = as_array(unwrap(keys))
    if not is_typed(keys):
        return _check_words(keys)
    words, shape = random_unwrap_p.bind1(keys), keys.dtype.impl.key_shape
    return words if len(shape) == 1 else words.reshape(*keys.shape, *shape)


def wrap_key_data(key_bits_array: Any, *, impl: Any = None, dtype: Any = None) -> Any:
    """The typed keys that these words are; the last dimensions go, for most generators one.

    Args:
      impl, dtype: as for ``key``.

    Raises:
      TypeError: the array isn't of uint32, or has another number of words.
      ValueError: there is no such generator, or both ``impl`` and ``dtype`` are given.

    >>> from polyax import random
    >>> random.wrap_key_data(random.PRNGKey(18)).shape
    ()
    """
    own = generator_for("wrap_key_data", impl, dtype)
    words = as_array(unwrap(key_bits_array))
    if is_typed(words):
        raise TypeError(f"wrap_key_data takes the words of keys, got keys: {words.aval}")
    return random_wrap_p.bind1(_in_vectors(words, own), impl=own)


def _in_vectors(words: Any, own: PRNGImpl) -> Any:
    """Words of keys, which users see in ``own.key_shape``, along one dimension."""
    count = len(own.key_shape)
    if count == 1:
        return words
    if words.shape[-count:] != own.key_shape:
        raise TypeError(
            "JAX encountered invalid PRNG key data: expected key_data.shape to end with "
            f"{own.key_shape}; got shape={words.shape} for impl={own.name}"
        )
    return words.reshape(*words.shape[:-count], own.words)


def key_impl(keys: Any) -> str | PRNGImpl:
    """The name of the generator that a key belongs to; for one that users defined, the generator.

    >>> from polyax import random
    >>> random.key_impl(random.key(18))
    'threefry2x32'
    """
    keys = as_array(unwrap(keys))
    if is_typed(keys):
        own: PRNGImpl = keys.dtype.impl
        return own.name if generators.is_own(own.name) else own
    _check_words(keys)
    return generator().name


def again(key: Any) -> Any:
    """``key``, where a function uses it twice of which only one use counts."""
    return random_clone_p.bind1(key) if is_typed(key) else key


def clone(key: Any) -> Any:
    """``key``, to be used once more on purpose."""
    key = as_array(unwrap(key))
    return random_clone_p.bind1(key) if is_typed(key) else lax.copy(key)


def key_dtype(impl_spec: Any = None) -> Any:
    """The dtype of keys of a generator, by default of ``config.default_prng_impl``.

    Raises:
      ValueError: there is no such generator.

    >>> key_dtype("rbg")
    key<rbg>
    """
    return prng.key_dtype(generator(impl_spec))
