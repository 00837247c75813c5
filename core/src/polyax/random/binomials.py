"""Binomial and multinomial numbers: by counting for few successes, by rejection for many. Bit for bit those of JAX."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyax import numpy as jnp
from polyax.api import jit
from polyax.ir import dtypes
from polyax.lax import lenient as lax
from polyax.numpy.promotion import check_arraylike, convert, unwrap
from polyax.random import generators
from polyax.random.keys import again, check_key
from polyax.random.rejections import until_accepted
from polyax.random.samplers import float_dtype, refuse_complex, sample_shape, two_keys, uniform
from polyax.trace.varying import varying_like

COUNTED = 10
"""The expected number of successes up to which they are counted one by one."""


def binomial(key: Any, n: Any, p: Any, shape: Any = None, dtype: Any = None) -> Any:
    """How many of ``n`` trials succeed, each with the probability ``p``; NaN where that is none, or ``n`` is negative.

    Args:
      n, p: they broadcast to ``shape``; by default that is their common shape.
      dtype: the floating-point type of the result.

    Raises:
      ValueError: ``dtype`` is no floating-point type, or ``n`` and ``p`` don't broadcast to ``shape``.
      TypeError: one of them is complex.

    >>> from polyax import random
    >>> random.binomial(random.PRNGKey(0), 10, 0.5, (2, 3)).shape
    (2, 3)
    """
    key = check_key("binomial", key)
    kind, shape = float_dtype("binomial", dtype), sample_shape("binomial", shape, n, p)
    refuse_complex("binomial", n, p)
    p = jnp.asarray(unwrap(p))
    p = p if dtypes.is_inexact(p.dtype) else convert(p, float_dtype("binomial", None))
    n = jnp.asarray(convert(unwrap(n), p.dtype))
    return _binomial(key, jnp.broadcast_to(n, shape), jnp.broadcast_to(p, shape), kind)


@jit(static_argnames=("dtype",), inline=True)
def _binomial(key: Any, n: Any, p: Any, dtype: Any) -> Any:
    """Of successes or of failures, the rarer ones are counted."""
    rare = p < 0.5
    q = lax.select(rare, p, 1 - p)
    no_count, no_chance = jnp.isnan(n) | (n < 0), jnp.isnan(q) | (q < 0)
    q = lax.select(no_chance, lax.full_like(q, 0.01), q)
    few = no_count | (n * q <= COUNTED)
    trials = lax.floor(n)
    counted = _by_waiting(key, lax.select(few, trials, lax.full_like(n, 0)), q, dtype)
    many = lax.select(few, lax.full_like(n, 1e4), trials)
    rejected = _by_rejection(again(key), many, lax.select(few, lax.full_like(q, 0.5), q), dtype)
    found = lax.select(few, counted, rejected)
    found = jnp.where(no_count | no_chance, np.nan, jnp.where(jnp.isinf(n), np.inf, found))
    as_they_are = rare | no_count | jnp.isnan(q) | jnp.isinf(n)
    return convert(lax.select(as_they_are, found, convert(trials, dtype) - found), dtype)


def _by_waiting(key: Any, n: Any, p: Any, dtype: Any) -> Any:
    """Adds waiting times, which are geometric, until they exceed the trials."""
    shape, kind = p.shape, p.dtype
    log_failure = lax.log1p(-p)

    def step(state: Any) -> Any:
        key, count, waited = state
        own, key = two_keys(key)
        count = lax.select(waited <= n, count + 1, count)
        return key, count, waited + lax.ceil(lax.log(uniform(own, shape, kind)) / log_failure)

    start = varying_like((key, n, p), key, lax.full(shape, 0, kind), lax.full(shape, 0, kind))
    found = lax.while_loop(lambda state: (state[2] <= n).any(), step, start)[1]
    return convert(found - 1, dtype)


def _by_rejection(key: Any, n: Any, p: Any, dtype: Any) -> Any:
    """Transformed rejection with squeeze (Hörmann, 1993: BTRS)."""
    spread = lax.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * p
    v_r = 0.92 - 4.2 / b
    odds = p / (1 - p)
    alpha = (2.83 + 5.1 / b) * spread
    mode = lax.floor((n + 1) * p)

    def log_density(k: Any) -> Any:
        """Up to what doesn't depend on ``k``, that of ``k`` successes over that of the mode."""
        return (
            (mode + 0.5) * lax.log((mode + 1) / (odds * (n - mode + 1)))
            + (n + 1) * lax.log((n - mode + 1) / (n - k + 1))
            + (k + 0.5) * lax.log(odds * (n - k + 1) / (k + 1))
            + _stirling_tail(mode)
            + _stirling_tail(n - mode)
            - _stirling_tail(k)
            - _stirling_tail(n - k)
        )

    def propose(u: Any, v: Any) -> tuple[Any, Any]:
        room = 0.5 - lax.abs(u)
        k = lax.floor((2 * a / room + b) * u + (n * p + 0.5))
        likely = (room >= 0.07) & (v <= v_r)
        log_v = lax.log(v * alpha / (a / (room * room) + b))
        return k, likely | ((k >= 0) & (k <= n) & (log_v <= log_density(k)))

    return convert(until_accepted(propose, key, n, p), dtype)


_TAILS = (
    0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509, 0.0166446911898211,
    0.0138761288230707, 0.0118967099458917, 0.0104112652619720, 0.00925546218271273, 0.00833056343336287,
)  # fmt: skip


def _stirling_tail(k: Any) -> Any:
    """log(k!) less Stirling's formula for it: from a table, or by a series in 1 / (k + 1)."""
    square = (k + 1) * (k + 1)
    series = (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (k + 1)
    place = convert(lax.floor(lax.clamp(np.zeros((), k.dtype), k, k.dtype.type(9))), np.dtype(np.int32))
    return lax.select(k <= 9, jnp.take(jnp.asarray(_TAILS, k.dtype), place, mode="clip"), series)


def multinomial(key: Any, n: Any, p: Any, *, shape: Any = None, dtype: Any = None, unroll: Any = 1) -> Any:
    """How often each of several outcomes turns up in ``n`` trials.

    Args:
      n: the trials, of a shape that broadcasts to that of ``p`` without its last dimension.
      p: the probabilities of the outcomes, along the last dimension.
      shape: that of the result, which ``p`` broadcasts to; by default that of ``p``.
      dtype: that of the result; by default the usual floating-point type.
      unroll: as of ``lax.scan``, which goes from outcome to outcome.

    >>> from polyax import random
    >>> counts = random.multinomial(random.PRNGKey(0), 10, np.array([0.2, 0.3, 0.5], np.float32))
    >>> counts.shape, counts.sum().item()
    ((3,), 10.0)
    """
    key = check_key("multinomial", key)
    check_arraylike("multinomial", n, p)
    n, p = _inexact(n, p)
    shape = p.shape if shape is None else shape
    n, p = jnp.broadcast_to(n, shape[:-1]), jnp.moveaxis(jnp.broadcast_to(p, shape), -1, 0)
    left = lax.cumsum(p, 0, reverse=True)
    chances = p / jnp.where(left == 0, 1, left)

    def outcome(rest: Any, step: Any) -> Any:
        chance, key = step
        count = binomial(key, rest, chance.clip(0, 1), dtype=rest.dtype)
        return rest - count, count

    keys = generators.split(key, (chances.shape[0],))
    _, counts = lax.scan(outcome, n, (chances, keys), unroll=unroll)
    counts = jnp.moveaxis(counts, 0, -1)
    return counts.astype(float_dtype("multinomial", None) if dtype is None else dtype)


def _inexact(*xs: Any) -> list[Any]:
    """Arrays of one floating-point type."""
    arrays = [jnp.asarray(unwrap(x)) for x in xs]
    kind = jnp.result_type(*arrays)
    kind = kind if dtypes.is_inexact(kind) else float_dtype("multinomial", None)
    return [convert(x, kind) for x in arrays]
