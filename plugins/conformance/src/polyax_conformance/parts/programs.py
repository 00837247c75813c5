"""Programs in which there is much to fuse, and much that must not be: for checks of fusers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import polyax
import polyax.numpy as jnp
from polyax import lax
from polyax_conformance.specs.callbacks import SCALAR, Log

X = (np.arange(35, dtype=np.float32).reshape(5, 7) * 0.37) % 2 - 0.9
ROW = np.linspace(-1, 1, 7, dtype=np.float32)


def softmax(x: Any) -> Any:
    e = jnp.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def normalized(x: Any, scale: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-5) * scale


def network(x: Any, w: Any) -> Any:
    return (jnp.tanh(x @ w) ** 2).sum() + jnp.abs(x).max()


def siblings(x: Any) -> Any:
    """Reductions of one array, in several directions, and what is made of them."""
    return x.sum(0), x.max(0), x.sum(1), (x * x).sum(), jnp.argmax(x, 1)


def chain(x: Any) -> Any:
    for n in range(12):
        x = jnp.sin(x) * 1.1 + n
    return x, x[::-1], x.T + 1


def diamond(x: Any, y: Any) -> Any:
    """What both ways need is needed after them as well."""
    shared = jnp.exp(x)
    total = (shared + y).sum(0)
    return shared - total, shared * y, total


def placed(x: Any, row: Any) -> Any:
    """Updates of memory that is read before and after."""
    y = x.at[1].set(row).at[3, 2:4].add(row[2:4])
    return y, x + 1, jnp.concatenate([y[:2], x[2:]]) * 2


def turned(x: Any) -> Any:
    def turn(carry: Any, row: Any) -> Any:
        carry = jnp.cos(carry) + row
        return carry, (carry * 2, carry.sum())

    return lax.scan(turn, x[0], x)


def branched(x: Any) -> Any:
    up, down = lambda x: (jnp.exp(x), x.sum()), lambda x: (-x, x.max())
    return lax.cond(x[0, 0] > 0, up, down, x), lax.while_loop(
        lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * 2), (0, x)
    )


def called(x: Any) -> Any:
    """Library calls between kernels."""
    return jnp.sort(x * 2, axis=1) + 1, jnp.linalg.cholesky(x @ x.T + 9 * jnp.eye(5)).sum(), jnp.fft.fft(x[0])


def noted(log: Log) -> Callable[..., Any]:
    """Effects in order, between what can be fused."""

    def program(x: Any) -> Any:
        y = jnp.floor(x * 4)  # whole: sums are the same in any order
        polyax.debug.callback(log, y[0, 0], ordered=True)
        z = polyax.experimental.io_callback(log.number, SCALAR, y[0, 1], ordered=True)
        polyax.debug.callback(log, (y * 2).sum(), ordered=True)
        return y + z, jnp.cos(y)

    return program


def programs(log: Log) -> Mapping[str, tuple[Callable[..., Any], Sequence[np.ndarray]]]:
    """By name: functions and their arguments. ``log`` gets what one of them tells."""
    w = np.linspace(-0.5, 0.5, 21, dtype=np.float32).reshape(7, 3)
    return {
        "softmax": (softmax, [X]),
        "normalized": (normalized, [X, ROW]),
        "gradient of normalized": (polyax.grad(lambda x, s: (normalized(x, s) ** 2).sum(), (0, 1)), [X, ROW]),
        "gradient of a network": (polyax.grad(network, (0, 1)), [X, w]),
        "siblings": (siblings, [X]),
        "siblings of integers": (siblings, [(X * 50).astype(np.int32)]),
        "a long chain": (chain, [X]),
        "a diamond": (diamond, [X, X[::-1].copy()]),
        "updates": (placed, [X, ROW]),
        "a scan": (turned, [X]),
        "branches": (branched, [X]),
        "library calls": (called, [X]),
        "complex numbers": (lambda x: (lax.complex(x, x * x) * (1 + 2j)).sum(0), [X]),
        "nothing": (lambda x: (jnp.exp(x[:0]) * 2, x[:0].sum()), [X]),
        "effects": (noted(log), [X]),
    }
