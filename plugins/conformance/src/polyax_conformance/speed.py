"""What things take on a platform, in processor time: for comparison, not for judgement."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import polyax
import polyax.numpy as jnp

REPETITIONS = 20


def measure(platform: str) -> dict[str, float]:
    """Microseconds by what was done: minima of many repetitions, of all threads of the process."""
    with polyax.default_device(polyax.devices(platform)[0]):
        return {what: _least(run) for what, run in _programs().items()}


def _programs() -> dict[str, Callable[[], Any]]:
    small, large = jnp.ones(3), jnp.ones(1_000_000)
    square = jnp.ones((256, 256))
    step, wave = polyax.jit(lambda x: x + 1), polyax.jit(lambda x: 0.5 * x + 0.1 * jnp.sin(x))
    turns = polyax.jit(lambda x: polyax.lax.fori_loop(0, 100, lambda i, x: x * 0.5 + 1, x))
    product = polyax.jit(lambda x: x @ x)
    return {
        "x + 1 of three floats": lambda: small + 1,
        "jit(x + 1) of three floats": lambda: step(small),
        "100 turns of a loop": lambda: turns(small),
        "0.5 x + 0.1 sin(x) of a million floats": lambda: wave(large),
        "a product of 256 x 256": lambda: product(square),
    }


def _least(run: Callable[[], Any]) -> float:
    polyax.block_until_ready(run())
    times: list[float] = []
    for _ in range(REPETITIONS):
        began = time.process_time_ns()
        polyax.block_until_ready(run())
        times.append((time.process_time_ns() - began) / 1e3)
    return min(times)
