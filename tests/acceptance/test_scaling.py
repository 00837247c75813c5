"""Long programs: tracing, differentiating and compiling 10,000 equations takes ten times as long as 1,000."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

import numpy as np
import pytest

import polyax as jax
import polyax.numpy as jnp
from polyax.runtime.contract.backend import CompileOptions
from support.calls import calls

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


def expected(n: int, x: np.ndarray) -> np.ndarray:
    for i in range(n // 2):
        x = np.sin(x) if i % 5 == 0 else x * 0.999
        x = x + 0.001
    return x


def seconds(work: Callable[[], object]) -> float:
    """Processor time of this process, which a busy machine doesn't lengthen."""
    gc.collect()
    start = time.process_time()
    jax.block_until_ready(work())
    return time.process_time() - start


def assert_as_many_calls_each(work: Callable[[int], object]) -> None:
    """Per equation, the longest program takes as many calls as the shortest."""
    work(100)  # what happens once
    each = [calls(lambda n=n: work(n)) / n for n in SIZES]
    assert each[-1] < 1.1 * each[0], "calls per equation: " + ", ".join(f"{c:.1f}" for c in each)


def assert_linear(measure: Callable[[int], float]) -> None:
    """Per equation, the longest program costs at most ``SLACK`` times what the shortest does."""
    measure(100)  # what happens once
    each = [min(measure(n) for _ in range(2 if n == SIZES[0] else 1)) / n for n in SIZES]
    assert each[-1] < SLACK * each[0], "microseconds per equation: " + ", ".join(f"{1e6 * t:.1f}" for t in each)


@pytest.fixture(autouse=True)
def without_checks():
    """Checks are for finding errors, not for timing; this is what users have."""
    with jax.config.override(checks=False):
        yield


def test_tracing_is_linear() -> None:
    assert_as_many_calls_each(lambda n: jax.make_jaxpr(chain(n))(1.0))


def test_tracing_records_each_equation() -> None:
    assert len(jax.make_jaxpr(chain(1_000))(1.0).jaxpr.eqns) == 1_000


def test_differentiating_is_linear() -> None:
    assert_as_many_calls_each(lambda n: jax.make_jaxpr(jax.grad(chain(n)))(1.0))


@pytest.mark.slow
def test_compiling_is_linear_and_right(platform: str) -> None:
    x = np.linspace(0.0, 1.0, 8, dtype=np.float32)
    results = {}

    def measure(n: int) -> float:
        f = jax.jit(chain(n))
        return seconds(lambda: results.setdefault(n, f(x)))

    assert_linear(measure)
    for n, y in results.items():
        np.testing.assert_allclose(y, expected(n, x.astype(np.float64)), rtol=1e-3)


@pytest.mark.slow
def test_compiling_gradients_is_linear_and_right(platform: str) -> None:
    x, step = np.linspace(0.1, 1.0, 8, dtype=np.float32), 1e-6
    results = {}

    def measure(n: int) -> float:
        f = jax.jit(jax.grad(lambda x: jnp.sum(chain(n)(x))))
        return seconds(lambda: results.setdefault(n, f(x)))

    assert_linear(measure)
    for n, g in results.items():
        high, low = (expected(n, x.astype(np.float64) + sign * step) for sign in (1, -1))
        np.testing.assert_allclose(g, (high - low) / (2 * step), rtol=1e-2, atol=1e-6)


def test_deep_trees_and_nested_calls_do_not_meet_the_recursion_limit() -> None:
    def nested(x, depth):
        return jnp.sin(x) if depth == 0 else jax.jit(lambda y: nested(y, depth - 1))(x) + 1.0

    assert np.isfinite(float(jax.grad(lambda x: nested(x, 20))(0.3)))


@pytest.mark.slow
def test_no_kernel_is_beyond_its_limit() -> None:
    (device, *_) = jax.devices("cpu")
    program = jax.make_jaxpr(chain(10_000))(jnp.ones(8))
    kernels = device.backend.compile(program, CompileOptions(device)).report().kernels
    assert sum(len(k.primitives) for k in kernels) >= 10_000
    assert max(len(k.primitives) for k in kernels) <= device.backend.limits.kernel_nodes
