"""The programs that are timed: each takes a JAX-style module and returns a function and its arguments."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

Case = Callable[[Any], tuple[Callable[..., Any], tuple[Any, ...]]]


def normal(m: Any, *shape: int) -> Any:
    return m.numpy.asarray(np.random.default_rng(0).standard_normal(shape).astype(np.float32))


def scalar(m: Any) -> Any:
    """Next to nothing: what a call costs."""
    return (lambda x: x + 1), (m.numpy.float32(1) * 1,)


def tree(m: Any) -> Any:
    """A dictionary of 50 small arrays in and out: what arguments cost."""
    arrays = {f"p{i}": m.numpy.ones(4) * i for i in range(50)}
    return (lambda t: m.tree_util.tree_map(lambda x: x + 1, t)), (arrays,)


def elementwise(m: Any) -> Any:
    """Twenty elementwise operations on a million numbers: one pass over memory, if fused."""

    def f(x: Any) -> Any:
        for _ in range(5):
            x = 0.5 * x + 0.1 * m.numpy.sin(x)
        return x

    return f, (normal(m, 1000, 1000),)


def reduction(m: Any) -> Any:
    """A sum of squared differences."""
    return (lambda a, b: m.numpy.sum((a - b) ** 2)), (normal(m, 500, 500), normal(m, 500, 500) + 1)


def softmax(m: Any) -> Any:
    """Row-wise, with its maximum and sum."""
    return (lambda x: m.nn.softmax(x, axis=-1)), (normal(m, 1000, 1000),)


def product(m: Any) -> Any:
    """One product of square matrices."""
    return (lambda x: x @ x), (normal(m, 512, 512),)


def training_step(m: Any) -> Any:
    """A step of stochastic gradient descent on a perceptron with two hidden layers."""
    jnp = m.numpy
    sizes = [64, 512, 512, 10]
    params = [(0.1 * normal(m, o, i), jnp.zeros(o)) for i, o in pairwise(sizes)]

    def predict(params: Any, x: Any) -> Any:
        for w, b in params[:-1]:
            x = m.nn.relu(jnp.dot(w, x) + b)
        w, b = params[-1]
        logits = jnp.dot(w, x) + b
        return logits - m.nn.logsumexp(logits)

    def loss(params: Any, images: Any, targets: Any) -> Any:
        return -jnp.mean(m.vmap(predict, in_axes=(None, 0))(params, images) * targets)

    def step(params: Any, images: Any, targets: Any) -> Any:
        grads = m.grad(loss)(params, images, targets)
        return m.tree_util.tree_map(lambda p, g: p - 0.5 * g, params, grads)

    return step, (params, normal(m, 128, 64), m.nn.one_hot(jnp.arange(128) % 10, 10))


def long_chain(m: Any) -> Any:
    """Two thousand operations on eight numbers: what the compiler costs."""

    def f(x: Any) -> Any:
        for _ in range(1000):
            x = m.numpy.sin(x) + 0.001
        return x

    return f, (normal(m, 8),)


PROGRAMS: tuple[Case, ...] = (scalar, tree, elementwise, reduction, softmax, product, training_step, long_chain)
