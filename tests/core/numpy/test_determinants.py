"""Determinants and their derivatives: against NumPy in float64, and where matrices are singular."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import config

R = np.random.default_rng(3)
SIZES = (0, 1, 2, 3, 4, 5)


def random(n: int, dtype: str = "float64") -> np.ndarray:
    x = R.uniform(-1, 1, (n, n))
    return (x + 1j * R.uniform(-1, 1, (n, n)) if dtype == "complex128" else x).astype(dtype)


def adjugate(a: np.ndarray) -> np.ndarray:
    """By the determinants of what is left without a row and a column."""
    n = len(a)
    without = lambda i, j: np.delete(np.delete(a, i, 0), j, 1)
    return np.array([[(-1) ** (i + j) * np.linalg.det(without(j, i)) for j in range(n)] for i in range(n)])


def close(got: object, want: object) -> None:
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-9, atol=1e-11)


@pytest.fixture(autouse=True)
def in_double_precision():
    with config.override(enable_x64=True):
        yield


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("n", SIZES)
def test_values_and_derivatives(n: int, dtype: str) -> None:
    a, t = random(n, dtype), random(n, dtype)
    close(jnp.linalg.det(a), np.linalg.det(a))
    value, change = polyax.jvp(jnp.linalg.det, (a,), (t,))
    close(value, np.linalg.det(a))
    close(change, np.trace(adjugate(a) @ t) if n else 0)
    sign, log = np.linalg.slogdet(a)
    (found, found_log), (turn, growth) = polyax.jvp(lambda a: tuple(jnp.linalg.slogdet(a)), (a,), (t,))
    close((found, found_log), (sign, log))
    rate = np.trace(np.linalg.inv(a) @ t)
    close(growth, rate.real)
    close(turn, 1j * rate.imag * sign if dtype == "complex128" else 0)


@pytest.mark.parametrize("n", SIZES[2:])
def test_second_derivatives(n: int) -> None:
    a, inverse = random(n) + 2 * np.eye(n), None
    inverse = np.linalg.inv(a)
    close(polyax.hessian(lambda a: jnp.linalg.slogdet(a)[1])(a), -np.einsum("jk,li->ijkl", inverse, inverse))
    both = np.einsum("ji,lk->ijkl", inverse, inverse) - np.einsum("jk,li->ijkl", inverse, inverse)
    close(polyax.hessian(jnp.linalg.det)(a), np.linalg.det(a) * both)


@pytest.mark.parametrize("n", [2, 3, 4, 6])
@pytest.mark.parametrize("place", [0, 1, -1])
@pytest.mark.parametrize("what", ["column", "row", "diagonal"])
def test_a_singular_matrix_has_a_gradient(n: int, place: int, what: str) -> None:
    """The last element of U is 0, or another one, and no other."""
    a = random(n) if what != "diagonal" else np.diag(np.arange(2.0, n + 2))
    a[:, place] = a[:, place] if what == "row" else 0
    a[place] = a[place] if what == "column" else 0
    assert jnp.linalg.det(a) == 0
    close(polyax.grad(jnp.linalg.det)(a), adjugate(a).T)


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_the_gradient_of_zeros(n: int) -> None:
    close(polyax.grad(jnp.linalg.det)(np.zeros((n, n))), np.ones((1, 1)) if n == 1 else np.zeros((n, n)))


def test_nan_stays_and_stacks_are_apart() -> None:
    a = np.stack([random(4), np.zeros((4, 4)), np.full((4, 4), np.nan), random(4)])
    a[1, :3, :3] = random(3)
    found = np.asarray(polyax.vmap(polyax.grad(jnp.linalg.det))(a))
    assert np.isnan(found[2]).all()
    close(found[[0, 1, 3]], [adjugate(x).T for x in a[[0, 1, 3]]])
    close(polyax.grad(lambda a: jnp.linalg.det(a).sum())(a[[0, 1, 3]]), found[[0, 1, 3]])


def test_what_overflows_is_infinite() -> None:
    a = np.float32(1e12) * R.uniform(1, 2, (4, 4)).astype("float32")
    assert np.isinf(jnp.linalg.det(a))
    np.testing.assert_array_equal(polyax.grad(jnp.linalg.det)(a), np.sign(adjugate(a.astype(float)).T) * np.inf)


@pytest.mark.parametrize("n", [2, 3])
def test_integers_stay_integers(n: int) -> None:
    for order in permutations(range(n)):
        a = (np.arange(n * n).reshape(n, n)[list(order)] ** 2 - 3).astype("float32")
        assert jnp.linalg.det(a) == round(np.linalg.det(a.astype(float)))
