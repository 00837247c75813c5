"""Complex numbers in random programs: made of two real arrays, changed in a few steps, and real again."""

from __future__ import annotations

from typing import Any

import numpy as np
from fuzz.operations import static_index
from fuzz.pool import Context, Value

LARGE = 30.0
"""A bound from which on numbers are multiplied no more."""
Bounded = tuple[Any, float]


def complex_numbers(c: Context) -> Value | None:
    v = c.choose(lambda v: v.kind == "f" and v.x.ndim and v.x.size)
    if v is None:
        return None
    w = c.choose(lambda w: w.x.dtype == v.x.dtype and w.x.shape == v.x.shape) or v
    z, bound = c.lax.complex(v.x, w.x), v.bound + w.bound
    for _ in range(c.random.randint(1, 4)):
        z, bound = c.random.choice(STEPS if bound < LARGE else MOVES)(c, z, bound)
    return Value(getattr(c.np, c.random.choice(("real", "imag")))(z), False, bound)


def reordered(c: Context, z: Any, bound: float) -> Bounded:
    np_, axis, n = c.np, c.random.randrange(z.ndim), c.random.randint(-3, 3)
    ways = (
        lambda: z.transpose(c.random.sample(range(z.ndim), z.ndim)),
        lambda: z.reshape(z.shape[::-1]),
        lambda: np_.flip(z, axis),
        lambda: np_.roll(z, n, axis),
        lambda: np_.repeat(z, 2, axis),
        lambda: z[tuple(slice(0, max(1, n - 1)) for n in z.shape)],
    )
    return c.random.choice(ways)(), bound


def joined(c: Context, z: Any, bound: float) -> Bounded:
    other, axis = c.np.conj(z), c.random.randrange(z.ndim)
    join = c.np.stack if c.chance(0.4) and z.ndim < 4 else c.np.concatenate
    return join([z, other], axis), bound


def padded(c: Context, z: Any, bound: float) -> Bounded:
    widths = [(c.random.randint(0, 2), c.random.randint(0, 2)) for _ in z.shape]
    return c.np.pad(z, widths, mode=c.random.choice(("constant", "edge", "wrap"))), bound


def chosen(c: Context, z: Any, bound: float) -> Bounded:
    even = np.arange(z.shape[-1]) % 2 == 0
    return c.np.where(even, z, c.np.conj(z)), bound


def updated(c: Context, z: Any, bound: float) -> Bounded:
    at, name = z.at[static_index(c, z.shape)], c.random.choice(("set", "add"))
    return getattr(at, name)(z[(0,) * z.ndim] * 2), 3 * bound


def multiplied(c: Context, z: Any, bound: float) -> Bounded:
    other = c.np.flip(z, c.random.randrange(z.ndim))
    return c.random.choice((lambda: z * other, lambda: z / (1 + other * c.np.conj(other))))(), bound**2


def added_up(c: Context, z: Any, bound: float) -> Bounded:
    axis = c.random.randrange(z.ndim)
    total = c.np.cumsum(z, axis) if c.chance(0.5) else z + c.np.sum(z, axis, keepdims=True)
    return total, bound * (1 + z.shape[axis])


def product(c: Context, z: Any, bound: float) -> Bounded:
    if z.ndim < 2:
        return c.np.outer(z, c.np.conj(z)), bound**2
    other = c.np.swapaxes(z, -1, -2)
    return z @ (c.np.conj(other) if c.chance(0.5) else other), bound**2 * z.shape[-1]


MOVES = (reordered, reordered, joined, padded, chosen)
STEPS = (*MOVES, updated, multiplied, added_up, product)
