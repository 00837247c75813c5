"""How many kernels programs of the public API become on the cpu, and that they compute what they should."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import polyax as jax
import polyax.numpy as jnp
from polyax.runtime.contract.backend import CompileOptions
from polyax.runtime.contract.report import KernelReport

pytest.importorskip("polyax_cpu")
RNG = np.random.default_rng(6)
ROWS = RNG.standard_normal((256, 512)).astype("f4")
CUBE = RNG.standard_normal((8, 32, 64)).astype("f4")
GAIN, SHIFT = (RNG.standard_normal(512).astype("f4") for _ in range(2))


def kernels(fun: Callable[..., Any], *args: Any) -> list[KernelReport]:
    """What a program consists of on the cpu, as its report says."""
    (device, *_) = jax.devices("cpu")
    program = jax.make_jaxpr(fun)(*args)
    return device.backend.compile(program, CompileOptions(device)).report().kernels


def gradient(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Of a function of one array, for a given cotangent."""
    return lambda x, ct: jax.vjp(fun, x)[1](ct)


def sine_chain(x):
    for _ in range(10):
        x = 0.5 * x + 0.1 * jnp.sin(x)
    return x


def standardize(x):
    return (x - x.mean(1)[:, None]) / x.std(1)[:, None]


def layer_norm(x, gain, shift):
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) / jnp.sqrt(variance + 1e-5) * gain + shift


def cross_entropy(logits, targets):
    return -jnp.mean(jnp.sum(jax.nn.log_softmax(logits) * targets, axis=-1))


ONE_KERNEL = {
    "sine chain": (sine_chain, ROWS),
    "softmax": (jax.nn.softmax, ROWS),
    "softmax of a cube": (jax.nn.softmax, CUBE),
    "log-softmax": (jax.nn.log_softmax, ROWS),
    "log-sum-exp": (lambda x: jax.nn.logsumexp(x, axis=-1), ROWS),
    "standardize": (standardize, ROWS),
    "layer norm": (layer_norm, ROWS, GAIN, SHIFT),
    "gradient of softmax": (gradient(jax.nn.softmax), ROWS, ROWS),
    "gradient of log-softmax": (gradient(jax.nn.log_softmax), ROWS, ROWS),
    "gradient of log-sum-exp": (gradient(lambda x: jax.nn.logsumexp(x, axis=-1)), ROWS, ROWS[:, 0].copy()),
    "gradient of standardize": (gradient(standardize), ROWS, ROWS),
    "gradient of cross-entropy": (jax.grad(cross_entropy), ROWS, jax.nn.softmax(ROWS)),
}


@pytest.mark.parametrize("name", ONE_KERNEL)
def test_row_wise_programs_are_one_kernel(name: str) -> None:
    fun, *args = ONE_KERNEL[name]
    assert len(kernels(fun, *args)) == 1


@pytest.mark.parametrize("name", ONE_KERNEL)
def test_they_compute_what_their_equations_do(name: str) -> None:
    fun, *args = ONE_KERNEL[name]
    with jax.default_device(jax.devices("reference")[0]):
        wanted = jax.tree_util.tree_leaves(fun(*args))
    with jax.default_device(jax.devices("cpu")[0]):
        found = jax.tree_util.tree_leaves(jax.jit(lambda *args: fun(*args))(*args))
    for x, y in zip(found, wanted, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-3, atol=1e-5)


def test_each_element_is_read_and_written_once() -> None:
    for name in ("softmax", "log-softmax", "standardize"):
        fun, x = ONE_KERNEL[name]
        assert sum(k.bytes_moved for k in kernels(fun, x)) == 2 * x.nbytes


def test_cross_entropy_is_at_most_the_rows_and_their_mean() -> None:
    assert len(kernels(cross_entropy, ROWS, ROWS)) <= 2
    assert len(kernels(cross_entropy, ROWS[:, :10], ROWS[:, :10])) == 1  # so small that one thread does all


def test_the_gradient_of_layer_norm_is_the_rows_and_the_columns() -> None:
    loss = lambda x, gain, shift: (layer_norm(x, gain, shift) ** 2).sum()
    assert len(kernels(jax.grad(loss, (0, 1, 2)), ROWS, GAIN, SHIFT)) <= 3
    pullback = lambda x, gain, shift, ct: jax.vjp(layer_norm, x, gain, shift)[1](ct)
    assert len(kernels(pullback, ROWS, GAIN, SHIFT, ROWS)) <= 3


def test_few_columns_of_many_rows_are_left_to_all_threads() -> None:
    """Mean and variance of columns are a kernel each: one of both would have a thread or two for all rows."""
    images = RNG.standard_normal((32, 28, 28, 32)).astype("f4")
    variance = lambda x: ((x - x.mean((0, 1, 2))) ** 2).mean((0, 1, 2))
    assert len(kernels(variance, images)) == 2
    assert len(kernels(variance, images[:2, :4, :4])) == 1  # so few that one thread does all


def test_an_adam_step_is_about_one_kernel_per_array() -> None:
    shapes = [(64,), (64, 64), (3, 3, 16, 16), (10, 64), (100,)]
    arrays = [RNG.standard_normal(shapes[n % 5]).astype("f4") for n in range(100)]

    def adam(extra: int) -> Callable[..., Any]:
        """One step, with so many more elementwise operations written."""

        def one(p, g, m, v, t):
            m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
            update = m / (1 - 0.9**t) / (jnp.sqrt(v / (1 - 0.999**t)) + 1e-8)
            for _ in range(extra):
                update = update * 0.99 + 1e-9
            return p - 0.001 * update, m, v

        return lambda ps, gs, ms, vs, t: [one(*each, t) for each in zip(ps, gs, ms, vs, strict=True)]

    counts = [len(kernels(adam(n), arrays, arrays, arrays, arrays, np.float32(3))) for n in (0, 5)]
    assert counts[0] == counts[1] <= 101


def test_a_step_of_a_small_network_is_no_more_kernels_than_its_products_and_layers_need() -> None:
    sizes = [784, 512, 512, 10]
    params = [(np.ones((m, n), "f4"), np.ones(n, "f4")) for m, n in pairwise(sizes)]

    def loss(params, x, y):
        for w, b in params[:-1]:
            x = jax.nn.relu(x @ w + b)
        w, b = params[-1]
        return cross_entropy(x @ w + b, y)

    def step(params, x, y):
        return jax.tree_util.tree_map(lambda p, g: p - 0.01 * g, params, jax.grad(loss)(params, x, y))

    found = kernels(step, params, np.ones((128, 784), "f4"), np.ones((128, 10), "f4"))
    assert sum(k.kind == "call" for k in found) == 8
    assert len(found) <= 19
