"""Windows and folds of any computation, against loops in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import lax
from polyax_conformance.specs.loops import KNOWN, expected, operand


def test_windows_of_known_and_other_computations(platform: str) -> None:
    x = operand(4, 5)
    params = {"window_dimensions": (2, 3), "window_strides": (1, 2), "padding": ((1, 0), (0, 1))}

    def fun(x: Any) -> Any:
        pooled = [lax.reduce_window(x, init, f, **params) for f, init, _ in KNOWN.values()]
        return [*pooled, lax.reduce_window(x, 1.0, lambda a, b: a * b, **params)]

    folds = [lambda e, f=f, i=i: f([i, *e]) for _, i, f in KNOWN.values()]
    for got, fold in zip(polyax.jit(fun)(x), [*folds, np.prod]):
        np.testing.assert_allclose(got, expected(x.astype(np.float64), fold, params), rtol=1e-5, atol=1e-6)


def test_pooling_has_gradients_on_each_platform(platform: str) -> None:
    x = operand(4, 5)
    weights = operand(3, 2)

    def loss(x: Any) -> Any:
        most = lax.reduce_window(x, -np.inf, lax.max, (2, 3), (1, 2), "VALID")
        return (weights * most).sum()

    want = np.zeros_like(x)
    for i, j in np.ndindex(3, 2):
        window = x[i : i + 2, 2 * j : 2 * j + 3]
        k, m = np.unravel_index(np.argmax(window), window.shape)
        want[i + k, 2 * j + m] += weights[i, j]
    np.testing.assert_allclose(polyax.jit(polyax.grad(loss))(x), want, rtol=1e-6)


@pytest.mark.parametrize("size", (40, 97, 200))
@pytest.mark.parametrize("padding", ("VALID", "SAME"))
def test_large_windows_take_logarithmically_many_steps(size: int, padding: str, platform: str) -> None:
    x = operand(300)
    params = {"window_dimensions": (size,), "padding": padding}
    sums, most = polyax.jit(
        lambda x: (lax.reduce_window(x, 0.0, lax.add, **params), lax.reduce_window(x, -np.inf, lax.max, **params))
    )(x)
    np.testing.assert_allclose(sums, expected(x.astype(np.float64), np.sum, params), rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(most, expected(x, np.max, params).astype(np.float32))


def test_large_windows_have_gradients(platform: str) -> None:
    x = operand(120)
    gradient = polyax.jit(polyax.grad(lambda x: lax.reduce_window(x, -np.inf, lax.max, (100,), (1,), "VALID").sum()))(x)
    want = np.zeros(120)
    for start in range(21):
        want[start + np.argmax(x[start : start + 100])] += 1
    np.testing.assert_allclose(gradient, want)


def test_folds_of_any_computation(platform: str) -> None:
    x = operand(37)
    got = polyax.jit(lambda x: lax.reduce(x, 0.0, lambda a, b: a * b + a + b, (0,)))(x)
    np.testing.assert_allclose(got, np.prod(x.astype(np.float64) + 1) - 1, rtol=1e-4)


def affine(v: Any) -> Any:
    return v * 2 + 1


def applied(x: np.ndarray, places: Any) -> np.ndarray:
    out = x.copy()
    for place in places:
        out[place] = affine(out[place])
    return out


@pytest.mark.parametrize("places", ([0, 0, 1], [3], [], [4, 2, 4, 4]))
def test_as_often_as_the_index_occurs(places: list[int], platform: str) -> None:
    x = np.arange(5, dtype=np.float32)
    got = polyax.jit(lambda x, i: x.at[i].apply(affine))(x, np.array(places, np.int32))
    np.testing.assert_array_equal(got, applied(x, places))


@pytest.mark.parametrize("change", ("add", "multiply"))
@pytest.mark.parametrize("shape", ((3,), (3, 40)), ids=("elements", "rows"))
def test_known_places_beside_the_array(change: str, shape: tuple[int, ...], platform: str) -> None:
    """Nothing is left of the kernel that would have changed them."""
    x = operand(shape[0])[:, *(None,) * (len(shape) - 1)] * np.ones(shape, np.float32)

    def f(x: Any) -> Any:
        return getattr(x.at[jnp.uint8(39)], change)(2.0)

    np.testing.assert_array_equal(polyax.jit(f)(x), x)
    np.testing.assert_array_equal(polyax.jit(polyax.grad(lambda x: f(x).sum()))(x), np.ones(shape))
