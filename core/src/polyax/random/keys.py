"""Keys: making, splitting and folding in. A key is an array of two unsigned 32-bit integers."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from polyax import lax
from polyax.api import jit
from polyax.ir import dtypes
from polyax.numpy.promotion import as_array, concrete_shape, is_arraylike, is_traced, shape_of, unwrap
from polyax.random import threefry
from polyax.runtime.arrays.placing import from_host

_IMPLEMENTATIONS = (None, "threefry2x32")

_seed = jit(threefry.seed, inline=True)
_split = jit(threefry.split, static_argnames=("shape",), inline=True)
_fold_in = jit(threefry.fold_in, inline=True)


def PRNGKey(seed: Any, *, impl: Any = None) -> Any:
    """The key of an integer seed: an array of two uint32 words.

    Raises:
      TypeError: the seed is no integer scalar.

    >>> from polyax import random
    >>> random.PRNGKey(18).tolist()
    [0, 18]
    """
    _check_impl(impl)
    if isinstance(seed, (int, np.integer)) and not isinstance(seed, (bool, np.bool_)):
        return from_host(threefry.host_seed(int(seed)))
    if not is_arraylike(seed):
        raise TypeError(f"PRNG key seed must be an integer; got {seed!r} of type {type(seed)}")
    value = as_array(unwrap(seed))
    if value.shape:
        raise TypeError(
            f"PRNGKey accepts a scalar seed, but was given an array of shape {value.shape} != (). Use jax.vmap for "
            "batching"
        )
    if not dtypes.is_integer(value.dtype):
        raise TypeError(f"PRNG key seed must be an integer; got {value.aval}")
    return _seed(value)


def _check_impl(impl: Any) -> None:
    if impl not in _IMPLEMENTATIONS:
        raise ValueError(f"unrecognized PRNG implementation {impl!r}: 'threefry2x32' is the one that there is")


def check_key(name: str, key: Any) -> Any:
    """``key`` as one key.

    Raises:
      TypeError: it has another dtype or shape.
      ValueError: it is an array of keys.
    """
    if not is_arraylike(key):
        raise TypeError(f"unexpected PRNG key type {type(key)}")
    key = key_data(key)
    if key.shape[-1:] != (2,):
        raise TypeError(
            f"JAX encountered invalid PRNG key data: expected key_data.shape to end with (2,); got shape={key.shape} "
            "for "
            "impl=threefry2x32"
        )
    if key.ndim != 1:
        raise ValueError(
            f"{name} accepts a single key, but was given a key array of shape {key.shape[:-1]} != (). Use jax.vmap "
            "for batching."
        )
    return key


def split(key: Any, num: Any = 2) -> Any:
    """``num`` (a number or a shape) new keys; don't use ``key`` afterwards.

    >>> from polyax import random
    >>> [k.tolist() for k in random.split(random.PRNGKey(18))]
    [[4197003906, 1654466292], [1685972163, 1654824463]]
    """
    shape = concrete_shape(num) if isinstance(num, (tuple, list)) else (operator.index(num),)
    return _split(check_key("split", key), shape)


def fold_in(key: Any, data: Any) -> Any:
    """The key of ``key`` and an integer, such as the number of a step.

    Raises:
      TypeError: ``data`` is no scalar integer.
    """
    key = check_key("fold_in", key)
    if shape_of(data) != ():
        raise TypeError(
            f"fold_in accepts a scalar, but was given an array of shape {shape_of(data)} != (). Use jax.vmap for "
            "batching."
        )
    if not is_traced(data) and isinstance(data, (int, np.integer)):
        data = np.uint32(int(data) & 0xFFFFFFFF)
    return _fold_in(key, as_array(unwrap(data)))


def key_data(keys: Any) -> Any:
    """The words of a key; a key is made of nothing else."""
    keys = as_array(unwrap(keys))
    if keys.dtype != np.dtype(np.uint32):
        raise TypeError(
            f"JAX encountered invalid PRNG key data: expected key_data.dtype = uint32; got dtype={keys.dtype}"
        )
    return keys


def key_impl(keys: Any) -> str:
    """The name of the generator that a key belongs to."""
    key_data(keys)
    return "threefry2x32"


def clone(key: Any) -> Any:
    """``key``, to be used once more on purpose."""
    return lax.copy(as_array(unwrap(key)))
