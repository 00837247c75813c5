"""Small programs under each transformation against NumPy in float64, and what a queue of its own means for them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import polyax as jax
import polyax.numpy as jnp
from polyax_conformance.specs.oracle import gradient
from polyax_opencl.backend import OpenCLBackend

RNG = np.random.default_rng(7)
X = RNG.normal(size=(6, 40)).astype(np.float32)
PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "chain": (lambda x: 0.5 * x + 0.1 * jnp.sin(x) * jnp.exp(-x), lambda x: 0.5 * x + 0.1 * np.sin(x) * np.exp(-x)),
    "rows": (
        lambda x: jnp.exp(x - x.max(1, keepdims=True)) / jnp.exp(x - x.max(1, keepdims=True)).sum(1, keepdims=True),
        lambda x: np.exp(x - x.max(1, keepdims=True)) / np.exp(x - x.max(1, keepdims=True)).sum(1, keepdims=True),
    ),
    "columns": (lambda x: (x * x).sum(0), lambda x: (x * x).sum(0)),
    "product": (lambda x: jnp.tanh(x @ x.T), lambda x: np.tanh(x @ x.T)),
    "shapes": (
        lambda x: jnp.concatenate([x[:, ::-2].T, jnp.pad(x[:2, :6], ((1, 1), (0, 0)))[:, :].reshape(4, 6)], 0),
        lambda x: np.concatenate([x[:, ::-2].T, np.pad(x[:2, :6], ((1, 1), (0, 0)))[:, :].reshape(4, 6)], 0),
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_against_numpy(name: str, opencl: OpenCLBackend) -> None:
    fun, wanted = PROGRAMS[name]
    want = wanted(X.astype(np.float64))
    np.testing.assert_allclose(jax.jit(fun)(X), want, rtol=2e-5, atol=2e-6)
    np.testing.assert_allclose(fun(jnp.asarray(X)), want, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients(name: str, opencl: OpenCLBackend) -> None:
    fun, wanted = PROGRAMS[name]
    weights = np.cos(np.arange(np.asarray(wanted(X)).size)).reshape(np.asarray(wanted(X)).shape).astype(np.float32)
    got = jax.jit(jax.grad(lambda x: (fun(x) * weights).sum()))(X)
    want = gradient(lambda x: (wanted(x) * weights).sum(), [X], 0)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def test_vmap_of_grad(opencl: OpenCLBackend) -> None:
    got = jax.jit(jax.vmap(jax.grad(lambda x: (x**3).sum() * x[0])))(X)
    x = X.astype(np.float64)
    want = 3 * x**2 * x[:, :1]
    want[:, 0] += (x**3).sum(1)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "uint32", "float16", "bfloat16", "float32"])
def test_dtypes(dtype: str, opencl: OpenCLBackend) -> None:
    x = np.arange(-3, 9).astype(dtype if dtype != "bfloat16" else jnp.bfloat16)
    y = jax.jit(lambda x: (x + x, x.astype(jnp.float32) * 2, x > x[::-1]))(x)
    np.testing.assert_array_equal(np.asarray(y[0]), x + x)
    np.testing.assert_array_equal(y[1], x.astype(np.float32) * 2)
    np.testing.assert_array_equal(y[2], x > x[::-1])


def test_a_call_returns_before_it_is_done(opencl: OpenCLBackend) -> None:
    x = jnp.full((700, 700), 1e-3)
    f = jax.jit(lambda x: jnp.tanh(x @ x @ x @ x @ x @ x))
    f(x).block_until_ready()
    started = time.perf_counter()
    y = f(x)
    returned = time.perf_counter() - started
    y.block_until_ready()
    assert returned < (time.perf_counter() - started) / 2


def test_donated_memory_is_used_again(opencl: OpenCLBackend) -> None:
    f = jax.jit(lambda x, y: x * 2 + y, donate_argnums=0)
    x, y = jnp.arange(1000.0), jnp.ones(1000)
    memory = x.buffer.memory
    z = f(x, y)
    assert z.buffer.memory is memory and x.is_deleted()
    np.testing.assert_allclose(z, np.arange(1000.0) * 2 + 1)


def test_copies_between_devices(two: OpenCLBackend) -> None:
    first, second = two.devices()
    cpu = jax.devices("cpu")[0]
    x = jax.device_put(X, first)
    y = jax.device_put(jax.jit(jnp.sin)(x), second)
    z = jax.device_put(jax.jit(lambda x: x + 1)(y), cpu)
    assert (y.device, z.device) == (second, cpu)
    np.testing.assert_allclose(jax.device_put(z, first), np.sin(X.astype(np.float64)) + 1, atol=1e-6)


def test_two_devices_compute_at_the_same_time(two: OpenCLBackend) -> None:
    f = jax.jit(lambda x: jnp.tanh(x @ x * 1e-2))
    values = [jax.device_put(np.full((64, 64), i + 1, np.float32), d) for i, d in enumerate(two.devices())]
    for _ in range(3):
        values = [f(v) for v in values]
    want = [np.full((64, 64), i + 1, np.float64) for i in range(2)]
    for _ in range(3):
        want = [np.tanh(w @ w * 1e-2) for w in want]
    for v, w in zip(values, want, strict=True):
        np.testing.assert_allclose(v, w, rtol=1e-5)


def test_results_repeat_bit_for_bit(opencl: OpenCLBackend) -> None:
    x = RNG.normal(size=(300, 1000)).astype(np.float32)
    f = jax.jit(lambda x: (jnp.sin(x).sum(), x.sum(1), x.sum(0)))
    first = [np.asarray(y) for y in f(x)]
    for _ in range(5):
        for a, b in zip(first, f(x), strict=True):
            np.testing.assert_array_equal(a, b)


def test_empty_arrays(opencl: OpenCLBackend) -> None:
    x = jnp.zeros((0, 5))
    assert jax.jit(lambda x: x * 2 + 1)(x).shape == (0, 5)
    np.testing.assert_array_equal(x.sum(0), np.zeros(5))


@pytest.mark.parametrize("columns", [1, 5, 31, 32, 33, 200])
@pytest.mark.parametrize("name", ["max", "min"])
def test_extrema_of_rows(name: str, columns: int, opencl: OpenCLBackend) -> None:
    """NaN wins, and the zeros are ordered, wherever in the row they are."""
    wins, loses = (0.0, -0.0) if name == "max" else (-0.0, 0.0)
    x = np.where(np.eye(40, columns, dtype=bool), wins, loses).astype(np.float32)
    x[1::3] = RNG.normal(size=(len(x[1::3]), columns))
    x[4, -1] = x[7, 0] = np.nan
    got = np.asarray(jax.jit(lambda x: getattr(x, name)(1))(x))
    np.testing.assert_array_equal(got, getattr(x, name)(1))
    zeros = np.arange(40) % 3 != 1
    has_winner = np.arange(40) < columns
    np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(np.where(has_winner, wins, loses)[zeros]))
