"""Every construct of control flow under every transformation, against Python loops and finite differences."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from core.control.constructs import ALL, DIFFERENTIABLE, FORWARD_ONLY, POINT, WEIGHTS

import polyax as jax
import polyax.numpy as jnp
from polyax_conformance.specs.oracle import STEP, directional

TANGENT = np.array([0.3, 1.0, -0.7])


@pytest.fixture(autouse=True)
def double() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def objective(name):
    return lambda x: jnp.sum(ALL[name][0](x) * WEIGHTS)


def gradient(name, x):
    """By central differences of the oracle."""
    oracle = ALL[name][1]
    return np.array([directional(lambda v: np.sum(oracle(v) * WEIGHTS), [x], [unit]) for unit in np.eye(3)])


def hessian(name, x):
    """By central differences of the gradient, which other tests compare with the oracle's."""
    grad = jax.jit(jax.grad(objective(name)))
    return np.array([(grad(x + STEP * unit) - grad(x - STEP * unit)) / (2 * STEP) for unit in np.eye(3)])


@pytest.mark.parametrize("name", ALL)
def test_value(name: str) -> None:
    fun, oracle = ALL[name]
    np.testing.assert_allclose(fun(jnp.asarray(POINT)), oracle(POINT), rtol=1e-12)
    np.testing.assert_allclose(jax.jit(fun)(POINT), oracle(POINT), rtol=1e-12)


@pytest.mark.parametrize("name", ALL)
def test_value_without_jit(name: str) -> None:
    fun, oracle = ALL[name]
    if name == "empty":
        pytest.skip("a loop in Python can't know what no step would give")
    with jax.disable_jit():
        np.testing.assert_allclose(fun(jnp.asarray(POINT)), oracle(POINT), rtol=1e-12)


def test_no_steps_without_jit() -> None:
    with jax.disable_jit():
        assert jax.lax.fori_loop(0, 0, lambda i, x: x + i, 1.5) == 1.5
        assert jax.lax.fori_loop(0, -1, lambda i, x: x + i, 1.5) == 1.5


@pytest.mark.parametrize("name", ALL)
def test_jvp(name: str) -> None:
    fun, oracle = ALL[name]
    value, dot = jax.jit(lambda x, t: jax.jvp(fun, (x,), (t,)))(POINT, TANGENT)
    np.testing.assert_allclose(value, oracle(POINT), rtol=1e-12)
    np.testing.assert_allclose(dot, directional(oracle, [POINT], [TANGENT]), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", FORWARD_ONLY)
def test_forward_over_forward(name: str) -> None:
    def dot(x):
        return jax.jvp(ALL[name][0], (x,), (TANGENT,))[1]

    got = jax.jvp(dot, (POINT,), (TANGENT,))[1]
    want = (dot(POINT + STEP * TANGENT) - dot(POINT - STEP * TANGENT)) / (2 * STEP)
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", FORWARD_ONLY)
def test_reverse_mode_says_what_to_do(name: str) -> None:
    with pytest.raises(ValueError, match=r"Reverse-mode differentiation does not work .* Try using lax.scan"):
        jax.jit(jax.grad(objective(name)))(POINT)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradient(name: str) -> None:
    want = gradient(name, POINT)
    np.testing.assert_allclose(jax.grad(objective(name))(POINT), want, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(jax.jit(jax.grad(objective(name)))(POINT), want, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_second_order(name: str) -> None:
    f = objective(name)
    want = hessian(name, POINT)
    for over in (jax.jacfwd(jax.grad(f)), jax.jacrev(jax.grad(f)), jax.jacrev(jax.jacfwd(f))):
        np.testing.assert_allclose(jax.jit(over)(POINT), want, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", ALL)
def test_vmap(name: str) -> None:
    """Examples take different branches and numbers of steps."""
    fun, oracle = ALL[name]
    xs = np.stack([POINT, -POINT, POINT[::-1] * 0.5, np.array([-0.1, 0.2, 0.9])])
    want = np.stack([oracle(x) if name in ORACLE_IS_GENERAL else fun(x) for x in xs])
    np.testing.assert_allclose(jax.vmap(fun)(xs), want, rtol=1e-12)
    np.testing.assert_allclose(jax.jit(jax.vmap(fun, in_axes=1, out_axes=1))(xs.T), want.T, rtol=1e-12)


ORACLE_IS_GENERAL = set(ALL) - {"branch", "branch_not_taken", "branch_with_closure", "branches", "fori_dynamic"}
"""The other oracles know only what happens at ``POINT``."""


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_vmap_of_gradient_and_gradient_of_vmap(name: str) -> None:
    xs = np.stack([POINT, -POINT])
    f = objective(name)
    want = np.stack([jax.grad(f)(x) for x in xs])
    np.testing.assert_allclose(jax.vmap(jax.grad(f))(xs), want, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(jax.grad(lambda v: jnp.sum(jax.vmap(f)(v)))(xs), want, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_checkpointed(name: str) -> None:
    got = jax.grad(jax.checkpoint(objective(name)))(POINT)
    np.testing.assert_allclose(got, gradient(name, POINT), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_linearize_and_transpose(name: str) -> None:
    fun, _ = ALL[name]
    value, linear = jax.linearize(fun, POINT)
    _, pullback = jax.vjp(fun, POINT)
    transposed = jax.linear_transpose(linear, POINT)
    np.testing.assert_allclose(transposed(jnp.asarray(WEIGHTS))[0], pullback(jnp.asarray(WEIGHTS))[0], rtol=1e-9)
    assert value.shape == (3,)
