"""Binomial and multinomial numbers, and gamma numbers by their shape; golden values are JAX's."""

from __future__ import annotations

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import random


@pytest.fixture
def key():
    with polyax.threefry_partitionable(True):
        yield random.key(3)


INF, NAN = np.inf, np.nan


@pytest.mark.parametrize(
    ("n", "p", "shape", "numbers"),
    [
        (10, 0.5, (6,), [9, 7, 5, 5, 2, 5]),
        (1000, 0.3, (6,), [295, 300, 281, 291, 311, 282]),
        ([5.0, 1000, -1, INF, NAN, 20], [0.9, 0.99, 0.5, 0.5, 0.5, -1], None, [5, 990, NAN, INF, NAN, NAN]),
    ],
    ids=["few", "many", "odd"],
)
def test_binomial(key, n, p, shape, numbers):
    found = random.binomial(key, jnp.asarray(n), jnp.asarray(p), shape)
    assert found.dtype == np.float32 and np.array_equal(found, numbers, equal_nan=True)


def test_binomial_moments():
    for n, p in [(8, 0.3), (200, 0.7)]:
        numbers = np.asarray(random.binomial(random.key(1), n, p, (20000,)))
        assert abs(numbers.mean() - n * p) < 0.05 * n**0.5 and abs(numbers.var() / (n * p * (1 - p)) - 1) < 0.05


def test_multinomial(key):
    counts = random.multinomial(key, jnp.array([20.0, 1000.0]), jnp.array([[0.1, 0.2, 0.7], [0.5, 0.5, 0]]))
    assert counts.tolist() == [[1, 3, 16], [500, 500, 0]]
    p = jnp.array([0.1, 0.2, 0.7])
    several = random.multinomial(key, 20, p, shape=(2, 3), dtype=np.int32)
    assert several.shape == (2, 3) and several.dtype == np.int32 and several.sum(-1).tolist() == [20, 20]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: random.binomial(random.key(0), 5, 0.5, dtype=np.int32),
            ValueError,
            "must be a float dtype",
        ),
        (lambda: random.binomial(random.key(0), jnp.ones(3), 0.5, (2,)), ValueError, r"\(3,\)"),
        (lambda: random.binomial(3, 5, 0.5), TypeError, "key"),
        (lambda: random.multinomial(random.key(0), "5", 0.5), TypeError, "multinomial"),
    ],
)
def test_bad_input(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_shapes_are_those_of_the_parameters() -> None:
    key, degrees = random.key(0), np.array([[3.0], [4.0]], np.float32)
    assert random.t(key, degrees).shape == (2, 1) and random.t(key, 3.0).shape == ()
    assert random.t(key, degrees).tolist() == random.t(key, degrees, (2, 1)).tolist()


# --- derivatives by shapes


@pytest.mark.parametrize(
    ("draw", "a", "slope"),
    [
        (lambda k, a: random.gamma(k, a, (4,)), 2.5, 3.68158364),
        (lambda k, a: random.loggamma(k, a, (4,)), 0.3, 32.533596),
        (lambda k, a: random.beta(k, a, 2.0, (4,)), 0.7, 0.97874123),
        (lambda k, a: random.t(k, a, (4,)), 3.0, 0.09544277),
        (lambda k, a: random.chisquare(k, a, (4,)), 3.0, 3.53141785),
    ],
    ids=["gamma", "loggamma", "beta", "t", "chisquare"],
)
def test_derivatives_by_shapes(key, draw, a, slope):
    """Those of JAX."""
    for grad in polyax.grad, polyax.jacfwd:
        assert np.isclose(grad(lambda a: draw(key, a).sum())(a), slope, rtol=1e-5)


def test_gamma_numbers_that_underflow(key):
    slopes = polyax.grad(lambda a: random.loggamma(key, a, (3,)).sum())(1e-3)
    assert np.isfinite(slopes)


def test_gamma_numbers_as_a_primitive(key):
    a = jnp.array([1.0, 2.0])
    (numbers,) = random.random_gamma_p.bind_all(key, a, log_space=False)
    assert numbers.tolist() == random.gamma(key, a).tolist()
    f = lambda a: random.random_gamma_p.bind1(key, a, log_space=True)
    assert polyax.jit(f)(a).tolist() == polyax.vmap(f)(a[None])[0].tolist() == random.loggamma(key, a).tolist()
    assert np.allclose(polyax.jacfwd(f)(a), polyax.jacfwd(lambda a: random.loggamma(key, a))(a))


@pytest.mark.parametrize(
    "draw", [lambda key: random.poisson(key, 1 + 1j), lambda key: random.binomial(key, 1 + 1j, 0.5)]
)
def test_numbers_of_events_are_real(draw):
    with pytest.raises(TypeError, match="takes real parameters, got complex64"):
        draw(random.key(0))
