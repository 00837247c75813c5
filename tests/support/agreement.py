"""Small programs of the kinds that users run; each gives the same on every platform, within rounding.

A program is a function without arguments that makes its own inputs, so that it runs wherever the default device is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import polyax as jax
import polyax.numpy as jnp

PROGRAMS: dict[str, Callable[[], Any]] = {}


def program(fun: Callable[[], Any]) -> Callable[[], Any]:
    PROGRAMS[fun.__name__] = fun
    return fun


def normal(seed: int, *shape: int) -> Any:
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape), dtype=jnp.float32)


@program
def sine_steps() -> Any:
    def f(x: Any) -> Any:
        for _ in range(10):
            x = 0.5 * x + 0.1 * jnp.sin(x)
        return x

    return jax.jit(f)(normal(0, 60, 70))


@program
def standardize() -> Any:
    return jax.jit(lambda x: (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True))(normal(1, 40, 130))


@program
def squared_error() -> Any:
    return jax.jit(lambda a, b: jnp.sum((a - b) ** 2))(normal(2, 300, 200), normal(3, 300, 200))


@program
def layers_step() -> Any:
    """A step of gradient descent on a network of two layers, written for one example and batched."""

    def loss(params: Any, images: Any, labels: Any) -> Any:
        def scores(image: Any) -> Any:
            (w, b), (v, c) = params
            return jax.nn.log_softmax(v @ jax.nn.relu(w @ image + b) + c)

        return -jnp.mean(jax.vmap(scores)(images) * jax.nn.one_hot(labels, 5))

    params = [(0.3 * normal(4, 16, 12), normal(5, 16)), (0.3 * normal(6, 5, 16), normal(7, 5))]
    grads = jax.jit(jax.grad(loss))(params, normal(8, 20, 12), jnp.arange(20) % 5)
    return jax.tree_util.tree_map(lambda p, g: p - 0.1 * g, params, grads)


@program
def layer_norm_gradient() -> Any:
    def loss(x: Any, scale: Any) -> Any:
        centred = x - x.mean(-1, keepdims=True)
        y = scale * centred / jnp.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
        return jnp.sum(jnp.tanh(y))

    return jax.jit(jax.value_and_grad(loss, (0, 1)))(normal(9, 12, 48), normal(10, 48))


@program
def attention() -> Any:
    def f(q: Any, k: Any, v: Any) -> Any:
        return jnp.einsum("bqk,bkd->bqd", jax.nn.softmax(jnp.einsum("bqd,bkd->bqk", q, k)), v)

    return jax.jit(f)(normal(11, 2, 9, 8), normal(12, 2, 7, 8), normal(13, 2, 7, 8))


@program
def normal_samples() -> Any:
    return jax.jit(lambda key: jax.random.normal(key, (333,)))(jax.random.PRNGKey(7))


@program
def random_bits() -> Any:
    return jax.random.bits(jax.random.PRNGKey(3), (65,)), jax.random.permutation(jax.random.PRNGKey(4), 31)


@program
def tiles() -> Any:
    return jax.jit(lambda x: jnp.tile(x, (3, 2)).T[::-1])(normal(14, 5, 7))


@program
def hessian() -> Any:
    return jax.jit(jax.hessian(lambda x: jnp.sum(jnp.sin(x) * x[::-1] ** 2)))(normal(15, 9))


@program
def convolution() -> Any:
    def loss(w: Any, x: Any) -> Any:
        return jnp.sum(jnp.sin(jax.lax.conv(x, w, (1, 1), "SAME")))

    return jax.jit(jax.grad(loss))(normal(16, 4, 3, 3, 3), normal(17, 2, 3, 8, 8))


@program
def rows_taken_and_added() -> Any:
    where = jnp.asarray([3, 1, 3, 0, 9])
    return jax.jit(lambda t, i: (t[i], jnp.zeros_like(t).at[i].add(t[i])))(normal(18, 10, 4), where)


@program
def running_sums() -> Any:
    return jax.jit(lambda x: (jnp.cumsum(x, 1), jnp.argmax(x, 0), jnp.sort(x, 1)))(normal(19, 6, 33))


@program
def integers() -> Any:
    x = jnp.arange(-40, 40, dtype=jnp.int32)
    return jax.jit(lambda x: (x // 7, x % 7, x << 3, x ^ 85, x > 3, (x * 2**28) >> 5))(x)


@program
def linear_system() -> Any:
    a = normal(20, 6, 6)
    return jnp.linalg.solve(a @ a.T + 6 * jnp.eye(6), normal(21, 6))


@program
def halves() -> Any:
    return jax.jit(lambda x: (x.astype(jnp.bfloat16) * 3, x.astype(jnp.float16) + 1))(jnp.arange(9.0) / 4)
