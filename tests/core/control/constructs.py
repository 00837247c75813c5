"""Uses of control flow, each with the Python loop that says what it means: ``(function, oracle)`` of a vector.

The oracle takes and gives NumPy arrays of float64; the function is smooth near ``POINT``.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from typing import Any

import numpy as np

import polyax.numpy as jnp
from polyax import jit, lax, vmap

POINT = np.array([0.7, -0.4, 1.3])
WEIGHTS = np.array([0.5, -1.0, 2.0])

Construct = tuple[Callable[[Any], Any], Callable[[Any], Any]]


def steps(f: Callable[[Any, Any], tuple[Any, Any]], carry: Any, xs: Any) -> tuple[Any, np.ndarray]:
    """What ``scan`` means."""
    ys = []
    for x in xs:
        carry, y = f(carry, x)
        ys.append(y)
    return carry, np.array(ys)


def repeat(f: Callable[[int, Any], Any], count: int, carry: Any) -> Any:
    for i in range(count):
        carry = f(i, carry)
    return carry


def branch(x):
    return lax.cond(x[0] > 0, lambda x: jnp.sin(x) * x[0], lambda x: x * x, x)


def branch_not_taken(x):
    return lax.cond(x[1] > 0, lambda x: jnp.sin(x), lambda x: x * x * x[2], x)


def branch_with_closure(x):
    y = jnp.exp(x)
    return lax.cond(x[1] > 0, lambda: x, lambda: y * WEIGHTS)


def branches(x):
    index = jnp.argmax(x)
    return lax.switch(index, [jnp.sin, jnp.cos, lambda v: v * jnp.tanh(v) * x[1]], x)


def scan_rnn(x):
    h, ys = lax.scan(lambda h, v: (jnp.tanh(h * x[0] + v), h * v), x[1], x * WEIGHTS)
    return h * ys


def scan_rnn_oracle(x):
    h, ys = steps(lambda h, v: (np.tanh(h * x[0] + v), h * v), x[1], x * WEIGHTS)
    return h * ys


def scan_pytree(x):
    def body(carry, v):
        a, b = carry["a"], carry["b"]
        return {"a": b * v, "b": (a + v)}, (a * b, None)

    carry, (ys, _) = lax.scan(body, {"a": x[0], "b": x[1]}, x, reverse=True, unroll=2)
    return ys * carry["a"] + carry["b"]


def scan_pytree_oracle(x):
    (a, b), ys = steps(lambda c, v: ((c[1] * v, c[0] + v), c[0] * c[1]), (x[0], x[1]), x[::-1])
    return ys[::-1] * a + b


def scan_matrix(x):
    return lax.scan(lambda c, _: (jnp.sin(jnp.outer(x, WEIGHTS) @ c), None), x, None, length=3)[0]


def fori_known(x):
    return lax.fori_loop(1, 4, lambda i, c: c * jnp.cos(x) + i, x)


def fori_updates(x):
    return lax.fori_loop(0, 3, lambda i, c: c.at[i].set(c[i - 1] * x[i]), x)


def fori_updates_oracle(x):
    c = x.copy()
    for i in range(3):
        c[i] = c[i - 1] * x[i]
    return c


def nested(x):
    def outer(c, v):
        inner = lax.fori_loop(0, 2, lambda i, d: jnp.sin(d) * v + c, v)
        return lax.cond(inner > 0, lambda u: u * c, lambda u: u + c, inner), inner

    c, ys = lax.scan(outer, x[0], x)
    return ys * c


def nested_oracle(x):
    def outer(c, v):
        inner = repeat(lambda i, d: np.sin(d) * v + c, 2, v)
        return (inner * c if inner > 0 else inner + c), inner

    c, ys = steps(outer, x[0], x)
    return ys * c


def mapped(x):
    return lax.map(lambda v: jnp.sin(v) * v * x[0], x)


def mapped_in_batches(x):
    return lax.map(lambda v: jnp.sin(v) * v * x[0], x, batch_size=2)


def prefix_products(x):
    return lax.associative_scan(jnp.multiply, x)


def suffix_affine(x):
    def combine(a, b):
        return a[0] * b[0], a[1] * b[0] + b[1]

    return lax.associative_scan(combine, (x, jnp.sin(x)), reverse=True)[1]


def suffix_affine_oracle(x):
    pairs = accumulate(zip(x[::-1], np.sin(x[::-1]), strict=True), lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]))
    return np.array([b for _, b in pairs])[::-1]


def scan_of_vmap(x):
    return lax.scan(lambda c, v: (vmap(lambda a: jnp.sin(a * v))(c), c[0]), x, x)[0]


def scan_of_jit(x):
    f = jit(lambda c, v: c * jnp.sin(v))
    return lax.scan(lambda c, v: (f(c, v) + c, c), x[0], x)[1]


def swapped(x):
    a, b = lax.fori_loop(0, 3, lambda i, c: (c[1], c[0] * jnp.sin(c[1])), (x, x * x))
    return a * b


def swapped_oracle(x):
    a, b = repeat(lambda i, c: (c[1], c[0] * np.sin(c[1])), 3, (x, x * x))
    return a * b


def empty(x):
    carry, ys = lax.scan(lambda c, v: (c * v, c + v), x[0], x[:0])
    return x * carry + jnp.sum(ys)


DIFFERENTIABLE: dict[str, Construct] = {
    "branch": (branch, lambda x: np.sin(x) * x[0]),
    "branch_not_taken": (branch_not_taken, lambda x: x * x * x[2]),
    "branch_with_closure": (branch_with_closure, lambda x: np.exp(x) * WEIGHTS),
    "branches": (branches, lambda x: x * np.tanh(x) * x[1]),
    "scan_rnn": (scan_rnn, scan_rnn_oracle),
    "scan_pytree": (scan_pytree, scan_pytree_oracle),
    "scan_matrix": (scan_matrix, lambda x: repeat(lambda i, c: np.sin(np.outer(x, WEIGHTS) @ c), 3, x)),
    "fori_known": (fori_known, lambda x: repeat(lambda i, c: c * np.cos(x) + i + 1, 3, x)),
    "fori_updates": (fori_updates, fori_updates_oracle),
    "nested": (nested, nested_oracle),
    "mapped": (mapped, lambda x: np.sin(x) * x * x[0]),
    "mapped_in_batches": (mapped_in_batches, lambda x: np.sin(x) * x * x[0]),
    "prefix_products": (prefix_products, np.cumprod),
    "suffix_affine": (suffix_affine, suffix_affine_oracle),
    "scan_of_vmap": (scan_of_vmap, lambda x: steps(lambda c, v: (np.sin(c * v), c[0]), x, x)[0]),
    "scan_of_jit": (scan_of_jit, lambda x: steps(lambda c, v: (c * np.sin(v) + c, c), x[0], x)[1]),
    "swapped": (swapped, swapped_oracle),
    "empty": (empty, lambda x: x * x[0]),
}


def while_halving(x):
    return lax.while_loop(lambda c: jnp.sum(c * c) > 0.1, lambda c: jnp.sin(c) * 0.7 * x[2], x)


def while_halving_oracle(x):
    c = x
    while np.sum(c * c) > 0.1:
        c = np.sin(c) * 0.7 * x[2]
    return c


def fori_dynamic(x):
    count = jnp.argmax(x) + 2
    return lax.fori_loop(0, count, lambda i, c: c * jnp.cos(x) + i, x)


FORWARD_ONLY: dict[str, Construct] = {
    "while_halving": (while_halving, while_halving_oracle),
    "fori_dynamic": (fori_dynamic, lambda x: repeat(lambda i, c: c * np.cos(x) + i, 4, x)),
}
"""Loops whose number of steps isn't known: no reverse mode."""

ALL = DIFFERENTIABLE | FORWARD_ONLY
