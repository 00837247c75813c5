"""Random order and random choice: permutations, samples from arrays and from categories."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from polyax import numpy as jnp
from polyax.api import jit
from polyax.ir import dtypes
from polyax.lax import lenient as lax
from polyax.meshes.resharding import with_out_sharding
from polyax.numpy.promotion import (
    as_array,
    canonicalize_axis,
    check_arraylike,
    concrete_shape,
    convert,
    inexact,
    refuse_traced,
    unwrap,
)
from polyax.random.generators import random_bits
from polyax.random.gumbels import gumbel
from polyax.random.keys import check_key
from polyax.random.samplers import randint, sample_shape, two_keys, uniform


@with_out_sharding
def permutation(key: Any, x: Any, axis: int = 0, independent: bool = False, *, out_sharding: Any = None) -> Any:
    """``x``, or ``arange(x)``, in random order along ``axis``; each line on its own if ``independent``.

    Raises:
      TypeError: ``x`` is a scalar but no integer.

    >>> from polyax import random
    >>> sorted(random.permutation(random.key(0), 4).tolist())
    [0, 1, 2, 3]
    """
    check_arraylike("permutation", x)
    key, x = check_key("permutation", key), unwrap(x)
    if not np.ndim(x):
        refuse_traced(x, "argument x of jax.random.permutation()")
        if not dtypes.is_integer(as_array(x).dtype):
            raise TypeError("x must be an integer or at least 1-dimensional")
        canonicalize_axis(axis, 1)
        return _shuffled_range(key, max(int(x), 0))
    x = as_array(x)
    return _permutation(key, x, canonicalize_axis(axis, x.ndim), independent)


@jit(static_argnames=("size",), inline=True)
def _shuffled_range(key: Any, size: int) -> Any:
    return shuffle(key, lax.iota(dtypes.default_int(), size), 0)


@jit(static_argnames=("axis", "independent"), inline=True)
def _permutation(key: Any, x: Any, axis: int, independent: bool) -> Any:
    if independent or x.ndim == 1:
        return shuffle(key, x, axis)
    order = shuffle(key, lax.iota(dtypes.default_int(), x.shape[axis]), 0)
    return jnp.take(x, order, axis, mode="clip", unique_indices=True)


def shuffle(key: Any, x: Any, axis: int) -> Any:
    """``x`` sorted by random 32-bit numbers, often enough that equal numbers don't matter."""
    rounds = math.ceil(3 * math.log(max(1, x.size)) / math.log(2**32 - 1))
    for _ in range(rounds):
        key, fresh = two_keys(key)
        x = lax.sort((random_bits(fresh, 32, x.shape), x), dimension=axis, num_keys=1)[1]
    return x


def choice(
    key: Any, a: Any, shape: Any = (), replace: bool = True, p: Any = None, axis: int = 0, mode: str | None = None
) -> Any:
    """Elements of ``a`` along ``axis``, or of ``arange(a)``, with probabilities ``p`` (equal by default).

    Raises:
      ValueError: more elements than there are, without ``replace``; or ``p`` has another length.

    >>> from polyax import random
    >>> import polyax.numpy as jnp
    >>> random.choice(random.key(0), 5, (2, 3)).shape
    (2, 3)
    """
    if not isinstance(shape, Sequence):
        raise TypeError(f"shape argument of jax.random.choice must be a sequence, got {shape}")
    key, shape = check_key("choice", key), concrete_shape(shape)
    check_arraylike("choice", a)
    a = unwrap(a)
    array = as_array(a)
    if array.ndim == 0:
        refuse_traced(a, "The error occurred in jax.random.choice()")
        count = int(a)
    else:
        axis = canonicalize_axis(axis, array.ndim)
        count = array.shape[axis]
    draws = math.prod(shape)
    if draws == 0:
        return jnp.zeros(shape, array.dtype)
    _check_draws(count, draws, replace)
    return _choice(key, array, shape, replace, p, axis, mode, count)


def _check_draws(count: int, draws: int, replace: bool) -> None:
    if count <= 0:
        raise ValueError("a must be greater than 0 unless no samples are taken")
    if not replace and draws > count:
        raise ValueError(
            f"Cannot take a larger sample (size {draws}) than population (size {count}) when 'replace=False'"
        )


def _choice(key: Any, array: Any, shape: Any, replace: bool, p: Any, axis: int, mode: str | None, count: int) -> Any:
    draws = math.prod(shape)
    final = shape if array.ndim == 0 else array.shape[:axis] + shape + array.shape[axis + 1 :]
    if p is None and not replace:
        shuffled = permutation(key, count if array.ndim == 0 else array, axis)
        return jnp.reshape(lax.slice_in_dim(shuffled, 0, draws, axis=axis if array.ndim else 0), final)
    if p is None:
        chosen = randint(key, shape, 0, count)
    else:
        chosen = _weighted(key, p, shape, replace, count, mode)
    return jnp.reshape(chosen if array.ndim == 0 else jnp.take(array, chosen, axis, mode="clip"), final)


def _weighted(key: Any, p: Any, shape: tuple[int, ...], replace: bool, count: int, mode: str | None) -> Any:
    """With replacement by bisection of the running sums, without by the largest of log p plus Gumbel noise."""
    (p,) = inexact("choice", p)
    if p.shape != (count,):
        raise ValueError(
            "p must be None or a 1D vector with the same size as a.shape[axis]. "
            f"p has shape {p.shape} and a.shape[axis] is {count}."
        )
    if replace:
        sums = lax.cumsum(p, 0)
        r = lax.mul(lax.index_in_dim(sums, -1, 0, keepdims=False), lax.sub(1.0, uniform(key, shape, p.dtype)))
        return jnp.searchsorted(sums, r)
    noise = gumbel(key, (count,), p.dtype, mode)
    return lax.top_k(lax.add(noise, lax.log(p)), math.prod(shape))[1]


@with_out_sharding
def categorical(
    key: Any, logits: Any, axis: int = -1, shape: Any = None, replace: bool = True, mode: str | None = None, *,
    out_sharding: Any = None,
) -> Any:  # fmt: skip
    """Categories with unnormalised log-probabilities ``logits`` along ``axis``.

    Args:
      shape: shape of the result, whose last dimensions are those of ``logits`` without ``axis``.
      replace: whether a category may be drawn again along the leading dimensions.

    >>> from polyax import random
    >>> import polyax.numpy as jnp
    >>> random.categorical(random.key(0), jnp.array([-jnp.inf, 0.0]), shape=(3,)).tolist()
    [1, 1, 1]
    """
    key = check_key("categorical", key)
    (logits,) = inexact("categorical", logits)
    axis = canonicalize_axis(axis, logits.ndim)
    batch = logits.shape[:axis] + logits.shape[axis + 1 :]
    shape = batch if shape is None else sample_shape("categorical", shape, np.broadcast_to(np.float32(0), batch))
    prefix = shape[: len(shape) - len(batch)]
    if replace:
        own = list(shape[len(prefix) :])
        own.insert(axis, logits.shape[axis])
        noise = gumbel(key, (*prefix, *own), logits.dtype, mode)
        return jnp.argmax(jnp.add(noise, lax.expand_dims(logits, tuple(range(len(prefix))))), axis=axis + len(prefix))
    return _distinct_categories(key, logits, axis, prefix, mode)


def _distinct_categories(key: Any, logits: Any, axis: int, prefix: tuple[int, ...], mode: str | None) -> Any:
    count = math.prod(prefix)
    if count > logits.shape[axis]:
        raise ValueError(
            f"Number of samples without replacement ({count}) cannot exceed number of categories "
            f"({logits.shape[axis]})."
        )
    noisy = lax.add(logits, gumbel(key, logits.shape, logits.dtype, mode))
    best = lax.top_k(jnp.moveaxis(noisy, axis, -1), count)[1]
    best = jnp.moveaxis(best, -1, 0)
    return convert(lax.reshape(best, (*prefix, *best.shape[1:])), best.dtype)
