"""Long programs: tracing, differentiating and compiling 10,000 equations takes ten times as long as 1,000."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

import numpy as np
import pytest

import polyax as jax
import polyax.numpy as jnp

SIZES = (1_000, 5_000, 10_000)
SLACK = 2.0
"""How much more than its share the longest may take: noise of a shared machine, not another power of the size."""


def chain(n: int) -> Callable[[object], object]:
    """n elementwise equations in n // 2 steps that each use the one before, made anew so that no cache knows it."""

    def f(x):
        for i in range(n // 2):
            x = jnp.sin(x) if i % 5 == 0 else x * 0.999
            x = x + 0.001
        return x

    return f


def expected(n: int, x: float) -> float:
    for i in range(n // 2):
        x = np.sin(x) if i % 5 == 0 else x * 0.999
        x = x + 0.001
    return x


def seconds(work: Callable[[], object]) -> float:
    gc.collect()
    start = time.perf_counter()
    jax.block_until_ready(work())
    return time.perf_counter() - start


def assert_linear(measure: Callable[[int], float]) -> None:
    """Per equation, the longest program costs at most ``SLACK`` times what the shortest does; best of two each."""
    measure(100)  # what happens once
    each = [min(measure(n) for _ in range(2)) / n for n in SIZES]
    assert each[-1] < SLACK * each[0], "microseconds per equation: " + ", ".join(f"{1e6 * t:.1f}" for t in each)


@pytest.fixture(autouse=True)
def without_checks():
    """Checks are for finding errors, not for timing; this is what users have."""
    with jax.config.override(checks=False):
        yield


def test_tracing_is_linear() -> None:
    assert_linear(lambda n: seconds(lambda: jax.make_jaxpr(chain(n))(1.0) and None))


def test_tracing_records_each_equation() -> None:
    assert len(jax.make_jaxpr(chain(1_000))(1.0).jaxpr.eqns) == 1_000


def test_differentiating_is_linear() -> None:
    assert_linear(lambda n: seconds(lambda: jax.make_jaxpr(jax.grad(chain(n)))(1.0) and None))


@pytest.mark.slow
def test_compiling_is_linear(platform: str) -> None:
    x = jnp.linspace(0.0, 1.0, 8)
    assert_linear(lambda n: seconds(lambda: jax.jit(chain(n))(x)))


@pytest.mark.slow
def test_compiling_gradients_is_linear(platform: str) -> None:
    x = jnp.linspace(0.0, 1.0, 8)
    assert_linear(lambda n: seconds(lambda: jax.jit(jax.grad(lambda x: jnp.sum(chain(n)(x))))(x)))


@pytest.mark.parametrize("n", SIZES)
def test_long_programs_compute_the_right_thing(n: int, platform: str) -> None:
    f = jax.jit(chain(n))
    np.testing.assert_allclose(f(0.5), expected(n, 0.5), rtol=1e-3)


def test_gradient_of_a_long_program(platform: str) -> None:
    n, step = 10_000, 1e-6
    got = jax.jit(jax.grad(chain(n)))(0.5)
    want = (expected(n, 0.5 + step) - expected(n, 0.5 - step)) / (2 * step)
    np.testing.assert_allclose(got, want, rtol=1e-2, atol=1e-6)


def test_deep_trees_and_nested_calls_do_not_meet_the_recursion_limit() -> None:
    def nested(x, depth):
        return jnp.sin(x) if depth == 0 else jax.jit(lambda y: nested(y, depth - 1))(x) + 1.0

    assert np.isfinite(float(jax.grad(lambda x: nested(x, 20))(0.3)))
