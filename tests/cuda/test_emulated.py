"""CUDA C that runs: whole programs on an emulated GPU, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax_cuda.backend import CudaBackend
from polyax_kernels.gpu import recording

X = np.random.default_rng(0).standard_normal((24, 70)).astype(np.float32)


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "elementwise": (lambda x: jnp.tanh(x) * jnp.exp(-x * x), lambda x: np.tanh(x) * np.exp(-x * x)),
    "rows": (lambda x: polyax.nn.softmax(x, -1), softmax),
    "columns": (lambda x: x.sum(0), lambda x: x.sum(0)),
    "all": (lambda x: jnp.sqrt((x * x).mean()), lambda x: np.sqrt((x * x).mean())),
    "argmax": (lambda x: jnp.argmax(x, 1), lambda x: x.argmax(1)),
    "product": (lambda x: x @ x.T, lambda x: x @ x.T),
    "gradient": (
        polyax.grad(lambda x: jnp.tanh(x @ x.T).sum()),
        lambda x: (g := 1 - np.tanh(x @ x.T) ** 2) @ x + g.T @ x,
    ),
    "scatter": (lambda x: x.at[:, jnp.array([1, 1, 3])].add(2.0), lambda x: x + 2 * np.eye(70)[[1, 1, 3]].sum(0)),
    "narrow": (lambda x: x.astype(jnp.bfloat16).astype(jnp.float16) * 2, lambda x: 2 * x),
    "integers": (lambda x: (x * 100).astype(jnp.int8) // 7, lambda x: np.clip(np.trunc(x * 100), -128, 127) // 7),
    "cumulative": (lambda x: jnp.cumsum(x, 1), lambda x: np.cumsum(x, 1)),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("number", [0, 1])
def test_programs(emulated: CudaBackend, name: str, number: int) -> None:
    fun, oracle = PROGRAMS[name]
    with polyax.default_device(emulated.devices()[number]):
        got = np.asarray(polyax.jit(fun)(X))
    tolerance = 2e-2 if name == "narrow" else 1e-4
    np.testing.assert_allclose(got.astype(float), oracle(X.astype(float)), rtol=tolerance, atol=tolerance)


def test_random_bits_are_the_reference_backends(gpu: CudaBackend) -> None:
    def draw() -> np.ndarray:
        return np.asarray(polyax.random.bits(polyax.random.PRNGKey(7), (33,)))

    here = draw()
    with polyax.default_device("reference"):
        np.testing.assert_array_equal(here, draw())


def test_arrays_move_between_gpus(emulated: CudaBackend) -> None:
    first, second = emulated.devices()
    moved = polyax.device_put(polyax.device_put(X, first), second)
    assert moved.device is second
    np.testing.assert_array_equal(np.asarray(moved + 1), X + 1)


def test_steps_are_recorded_when_they_run_again_on_the_same_memory(
    gpu: CudaBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "FEWEST", 1)
    step = polyax.jit(lambda x: jnp.sin(x) + x[:1])
    runtime: Any = gpu.runtimes[0]
    runtime.replayed = 0
    x = jnp.asarray(X)
    want = np.asarray(step(x))
    for n in range(4):
        np.testing.assert_array_equal(np.asarray(step(x)), want)
        assert runtime.replayed == n + 1
    other = np.asarray(step(x + 1))  # other memory: an ordinary run
    assert runtime.replayed == 4
    np.testing.assert_allclose(other, np.sin(X + 1) + X[:1] + 1, rtol=1e-5, atol=1e-5)
