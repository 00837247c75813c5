"""What things take beside NumPy, in one run and in turns: measured, not judged; only the results must be right."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import lax

SECONDS = 0.3
"""How long each is repeated, at most."""

Program = tuple[Callable[[Any], Any], Callable[[np.ndarray], Any], tuple[int, ...]]


def turns(x: np.ndarray) -> np.ndarray:
    for _ in range(100):
        x = x * np.float32(0.5) + 1
    return x


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


PROGRAMS: dict[str, Program] = {
    "x + 1 of three floats": (lambda x: x + 1, lambda x: x + 1, (3,)),
    "jit(x + 1) of three floats": (polyax.jit(lambda x: x + 1), lambda x: x + 1, (3,)),
    "100 turns of a loop": (
        polyax.jit(lambda x: lax.fori_loop(0, 100, lambda _, v: v * 0.5 + 1, x)),
        turns,
        (3,),
    ),
    "0.5 x + 0.1 sin(x) of a million floats": (
        polyax.jit(lambda x: 0.5 * x + 0.1 * jnp.sin(x)),
        lambda x: np.float32(0.5) * x + np.float32(0.1) * np.sin(x),
        (1_000_000,),
    ),
    "softmax of 1000 x 1000": (polyax.jit(lambda x: polyax.nn.softmax(x, 1)), softmax, (1000, 1000)),
    "sums of 1000 x 1000": (polyax.jit(lambda x: x.sum(0)), lambda x: x.sum(0), (1000, 1000)),
    "a product of 256 x 256": (polyax.jit(lambda x: x @ x), lambda x: x @ x, (256, 256)),
}


@pytest.mark.parametrize("what", PROGRAMS)
def test_beside_numpy(what: str, platform: str, record_property: Callable[[str, object], None]) -> None:
    fun, oracle, shape = PROGRAMS[what]
    host = np.random.default_rng(0).uniform(-1, 1, shape).astype(np.float32)
    there = jnp.asarray(host)
    np.testing.assert_allclose(fun(there), oracle(host), rtol=1e-3, atol=1e-3)
    mine, numpys = least(lambda: polyax.block_until_ready(fun(there)), lambda: oracle(host))
    record_property(what, numpys / mine)


def least(*runs: Callable[[], Any]) -> list[float]:
    """The shortest time of each, in turns, so that what else the machine does hits all alike."""
    times: list[list[float]] = [[] for _ in runs]
    end = time.perf_counter() + SECONDS * len(runs)
    while time.perf_counter() < end or len(times[0]) < 3:
        for run, taken in zip(runs, times):
            began = time.perf_counter()
            run()
            taken.append(time.perf_counter() - began)
    return [min(taken) for taken in times]
