"""Python functions called from programs, loops and branches."""

from __future__ import annotations

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import lax
from polyax.experimental import io_callback
from polyax_conformance.specs.callbacks import SCALAR, Log, X, pure


@pytest.fixture
def log():
    return Log()


def failing(_):
    raise LookupError("no such thing")


@pytest.mark.sample
def test_values_come_back_on_all_platforms(platform, log):
    def f(x):
        y = pure(jnp.sin(x))
        log_number = io_callback(log.number, SCALAR, y.sum())
        polyax.debug.callback(log, x[0])
        return y + log_number

    for n, g in enumerate((f, polyax.jit(f))):
        np.testing.assert_allclose(g(X), 2 * np.sin(X) + 2 * n + 1, 1e-5)
        polyax.effects_barrier()


@pytest.mark.sample
def test_in_loops_and_branches_on_all_platforms(platform, log):
    def f(x):
        def step(c, row):
            lax.cond(row > 1, lambda: polyax.debug.callback(log, row, ordered=True), lambda: None)
            return c + pure(row), c

        total, _ = lax.scan(step, jnp.float32(0), x)
        return lax.while_loop(lambda c: c < 20, lambda c: pure(c), total)

    assert float(polyax.jit(f)(X)) == 24
    assert log.take() == [2, 3]


@pytest.mark.sample
def test_errors_of_programs_without_results_are_not_lost(platform):
    def f(x):
        y = lax.fori_loop(0, 50, lambda _, v: jnp.sin(v @ v), x)
        polyax.debug.callback(failing, y[0, 0])

    x = np.ones((100, 100), np.float32)
    with pytest.raises(polyax.errors.JaxRuntimeError, match="LookupError: no such thing") as caught:
        polyax.jit(f)(x)
        polyax.effects_barrier()
    assert "in the callback failing" in caught.value.__notes__[0]
    polyax.effects_barrier()  # told once


@pytest.mark.sample
def test_callbacks_may_compute_with_polyax(platform):
    @polyax.jit
    def inner(x):
        return lax.cond(x.sum() > 0, lambda: jnp.sort(x) @ x, lambda: jnp.float32(0))

    def host(x):
        return np.float32(inner(jnp.asarray(x)) + polyax.jit(jnp.sum)(jnp.asarray(x) + 1))

    def f(x):
        x = lax.fori_loop(0, 3, lambda _, v: v * 2, x)
        return polyax.pure_callback(host, SCALAR, x) + 1

    x = X * 8
    assert float(polyax.jit(f)(X)) == np.sort(x) @ x + (x + 1).sum() + 1
