"""Long and deep bodies: tracing and transforming them is linear work."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import polyax as jax
import polyax.numpy as jnp
from polyax import lax
from polyax.ir.garbage import collection_paused
from support.calls import calls

SLACK = 2.5
"""How many more calls than its share the largest may take. Residuals of inner loops leave through each loop outside of
them, so that each level of the gradient of deep ones takes somewhat more."""
XS = np.ones(3, np.float32)


def long_body(n: int) -> Callable:
    def body(c, x):
        for i in range(n // 2):
            c = jnp.sin(c) if i % 5 == 0 else c * 0.999
            c = c + x
        return c, c

    return lambda x: lax.scan(body, x, XS)[0]


def deep(depth: int) -> Callable:
    def f(x):
        if depth == 0:
            return jnp.sin(x)
        if depth % 3 == 0:
            return lax.cond(x > 0, deep(depth - 1), jnp.cos, x)
        return lax.fori_loop(0, 2, lambda i, c: deep(depth - 1)(c) * 1.1, x)

    return f


TRANSFORMATIONS = {
    "trace": lambda f: jax.make_jaxpr(f)(1.0),
    "grad": lambda f: jax.make_jaxpr(jax.grad(f))(1.0),
    "vmap": lambda f: jax.make_jaxpr(jax.vmap(f))(XS),
}


@pytest.mark.parametrize("name", TRANSFORMATIONS)
@pytest.mark.parametrize("program, sizes", [(long_body, (500, 5_000)), (deep, (10, 50))], ids=["long", "deep"])
def test_linear(name: str, program: Callable, sizes: tuple[int, int]) -> None:
    with jax.config.override(checks=False), collection_paused():  # a collection's calls depend on what others left
        TRANSFORMATIONS[name](program(sizes[0]))  # what happens once
        small, large = (calls(lambda n=n: TRANSFORMATIONS[name](program(n))) / n for n in sizes)
    assert large < SLACK * small, f"{small:.0f} calls each for {sizes[0]}, {large:.0f} for {sizes[1]}"


def test_deep_loops_run() -> None:
    def f(x, depth=4):
        return lax.fori_loop(0, 2, lambda i, c: f(c, depth - 1), x) if depth else x * 1.21

    np.testing.assert_allclose(jax.jit(f)(0.3), 0.3 * 1.21**16, rtol=1e-5)


def test_a_turn_of_a_native_loop_needs_no_python() -> None:
    f = jax.jit(lambda xs: lax.scan(lambda c, x: (c * 0.5 + x, c), 0.0, xs))
    xs = jnp.ones(100_000)
    jax.block_until_ready(f(xs))
    assert calls(lambda: jax.block_until_ready(f(xs))) < 1000
