"""Poisson numbers: by counting for small rates, by rejection for large ones. Bit for bit those of JAX."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyax import numpy as jnp
from polyax.api import jit
from polyax.lax import lenient as lax
from polyax.meshes.resharding import with_out_sharding
from polyax.numpy.promotion import convert, unwrap
from polyax.random.generators import THREEFRY, generator, is_typed
from polyax.random.keys import again, check_key
from polyax.random.rejections import until_accepted
from polyax.random.samplers import int_dtype, refuse_complex, sample_shape, two_keys, uniform
from polyax.trace.varying import varying_like

COUNTED = 10
"""The rate up to which exponential waiting times are counted."""


@with_out_sharding
def poisson(key: Any, lam: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """How many events happen in a time in which ``lam`` happen on average; -1 for a rate that is NaN.

    Raises:
      ValueError: the dtype is no integer type.
      TypeError: ``lam`` is complex.
      NotImplementedError: the key isn't one of threefry.

    >>> from polyax import random
    >>> random.poisson(random.PRNGKey(0), 3.0, (2, 3)).shape
    (2, 3)
    """
    key = check_key("poisson", key)
    kind = int_dtype("poisson", dtype)
    own = key.dtype.impl if is_typed(key) else generator()
    if own is not THREEFRY:  # as in JAX
        raise NotImplementedError(f"`poisson` is only implemented for the threefry2x32 RNG, not {own}")
    shape = sample_shape("poisson", shape, lam)
    refuse_complex("poisson", lam)
    rates = convert(jnp.broadcast_to(unwrap(lam), shape), np.dtype(np.float32))
    return _poisson(key, rates, kind)


@jit(static_argnames=("dtype",), inline=True)
def _poisson(key: Any, rates: Any, dtype: Any) -> Any:
    small = jnp.isnan(rates) | (rates < COUNTED)
    counted = _waiting(key, lax.select(small, rates, lax.zeros_like(rates)), dtype)
    rejected = _rejection(again(key), lax.select(small, lax.full_like(rates, 1e5), rates), dtype)
    return jnp.where(rates == 0, 0, lax.select(small, counted, rejected))


def _waiting(key: Any, rates: Any, dtype: Any) -> Any:
    """Adds waiting times until they exceed the rate (Knuth)."""
    shape = rates.shape

    def waits(state: Any) -> Any:
        return (state[2] > -rates).any()

    def step(state: Any) -> Any:
        key, count, log_left = state
        key, own = two_keys(key)
        count = lax.select(log_left > -rates, count + 1, count)
        return key, count, log_left + lax.log(uniform(own, shape, rates.dtype))

    start = varying_like((key, rates), key, lax.full(shape, 0, dtype), lax.full(shape, 0, rates.dtype))
    return lax.while_loop(waits, step, start)[1] - 1


def _rejection(key: Any, rates: Any, dtype: Any) -> Any:
    """Transformed rejection with squeeze (Hörmann, 1993: PTRS)."""
    b = 0.931 + 2.53 * lax.sqrt(rates)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    v_r = 0.9277 - 3.6224 / (b - 2)
    log_rates = lax.log(rates)

    def propose(u: Any, v: Any) -> tuple[Any, Any]:
        room = 0.5 - lax.abs(u)
        k = lax.floor((2 * a / room + b) * u + rates + 0.43)
        likely = (room >= 0.07) & (v <= v_r)
        hopeless = (k < 0) | ((room < 0.013) & (v > room))
        s = lax.log(v * inverse_alpha / (a / (room * room) + b))
        density = -rates + k * log_rates - lax.lgamma(k + 1)
        return k, likely | (~hopeless & (s <= density))

    return convert(until_accepted(propose, key, rates), dtype)
