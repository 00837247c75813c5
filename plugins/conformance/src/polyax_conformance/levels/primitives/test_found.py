"""What random programs have found, each as the smallest program that showed it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import polyax as jax
import polyax.numpy as jnp


@pytest.mark.parametrize("method", ["add", "min", "multiply", "set"])
def test_a_computed_array_is_updated_with_itself(platform: str, method: str) -> None:
    def f(x: Any) -> Any:
        y = x + 1
        return getattr(y.at[jnp.array([1, 2])], method)(y[:2])

    operation = {"add": np.add, "min": np.minimum, "multiply": np.multiply, "set": lambda a, b: b}[method]
    want = np.array([5, 3, 10])
    want[1:] = operation(want[1:], np.array([5, 3]))
    np.testing.assert_array_equal(jax.jit(f)(np.array([4, 2, 9])), want)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 5000), (5000, 0), (2, 0, 5000)])
def test_reductions_with_empty_axes(platform: str, shape: tuple[int, ...]) -> None:
    x = np.zeros(shape, np.float32)
    for axis in (None, *range(len(shape))):
        f = lambda x, axis=axis: jnp.sum(x + 1, axis)
        np.testing.assert_array_equal(f(x), (x + 1).sum(axis))
        np.testing.assert_array_equal(jax.jit(f)(x), (x + 1).sum(axis))


def test_no_rows_of_no_array_have_a_gradient(platform: str) -> None:
    x, none = jnp.zeros((0, 3)), jnp.zeros((0,), int)
    assert jax.grad(lambda x: x[none].sum())(x).shape == (0, 3)
    assert x.at[jnp.array([0, 2])].add(jnp.ones((2, 3))).shape == (0, 3)


@pytest.mark.parametrize("n", [0, 1, 5, 1000])
def test_dlpack_holds_the_elements_alone(platform: str, n: int) -> None:
    """Memory is rounded up; views of it are not."""
    x = jnp.arange(n, dtype=jnp.float32)
    np.testing.assert_array_equal(np.from_dlpack(x), np.arange(n))


@pytest.mark.parametrize("k", [0, 2])
def test_products_of_the_beginning_of_an_array(platform: str, k: int) -> None:
    a, b = np.arange(12, dtype="f4").reshape(3, 4), np.arange(8, dtype="f4").reshape(4, 2)
    np.testing.assert_array_equal(jax.jit(lambda a, b: a[:, :k] @ b[:k])(a, b), a[:, :k] @ b[:k])
