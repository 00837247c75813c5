"""What random programs have found, each as the smallest program that showed it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fuzz.rules import own_jvp, own_vjp

import polyax as jax
import polyax.numpy as jnp


@pytest.mark.parametrize("wrap", [jax.jit, lambda f: f, lambda f: lambda x: jax.lax.cond(True, f, f, x)])
def test_rules_get_no_tangents_of_integers(wrap: Any) -> None:
    @jax.custom_jvp
    def g(n: Any, x: Any) -> Any:
        return n, n * x

    g.defjvp(lambda primals, tangents: jax.jvp(lambda n, x: (n, n * x), primals, tangents))
    n, x = jnp.full((2, 2), 3), jnp.ones((2, 2))
    f = wrap(lambda x: g(n, x)[1])
    np.testing.assert_array_equal(jax.linearize(f, x)[1](x), np.full((2, 2), 3.0))
    np.testing.assert_array_equal(jax.grad(lambda x: f(x).sum())(x), np.full((2, 2), 3.0))


@pytest.mark.parametrize("own", [own_jvp(jax), own_vjp(jax)])
def test_mapped_rules_of_functions_with_constants(own: Any) -> None:
    f = own(lambda x: x * np.arange(3, dtype="f4"))
    total = lambda xs: jnp.sum(jax.vmap(jax.checkpoint(f))(xs))
    np.testing.assert_array_equal(jax.grad(total)(jnp.ones((2, 3))), [[0, 1, 2], [0, 1, 2]])
