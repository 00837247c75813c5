"""Functions applied at indices, against NumPy loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import lax


def affine(v: Any) -> Any:
    return v * 2 + 1


def by_loop(x: np.ndarray, places: Any) -> np.ndarray:
    out = x.copy()
    for place in places:
        out[place] = affine(out[place])
    return out


@pytest.mark.parametrize("index", (1, slice(1, 4), slice(None, None, -1), slice(0, 5, 2), (Ellipsis,), -1))
def test_static_indices(index: Any) -> None:
    x = np.arange(5, dtype=np.float32)
    want = x.copy()
    want[index] = affine(want[index])
    np.testing.assert_array_equal(jnp.asarray(x).at[index].apply(affine), want)


def test_promised_unique_indices_and_drops() -> None:
    x = jnp.arange(6.0).reshape(3, 2)
    rows = np.array([2, 0])
    np.testing.assert_array_equal(x.at[rows].apply(affine, unique_indices=True), [[1, 3], [2, 3], [9, 11]])
    np.testing.assert_array_equal(x.at[np.array([0, 7])].apply(affine), [[1, 3], [2, 3], [4, 5]])


def test_the_function_is_one_of_scalars() -> None:
    x = jnp.arange(4.0)
    assert x.at[1:3].apply(lambda v: v.sum() + v.ndim).tolist() == [0.0, 1.0, 2.0, 3.0]
    with pytest.raises(TypeError, match="must map float32\\[\\] to one like it; gives int32\\[\\]"):
        x.at[1].apply(lambda v: v.astype(int))


def test_derivatives() -> None:
    x = np.array([1.0, 2.0, 3.0], np.float32)
    once = lambda x: x.at[np.array([1, 2])].apply(jnp.sin, unique_indices=True).sum()
    np.testing.assert_allclose(polyax.grad(once)(x), [1.0, np.cos(2.0), np.cos(3.0)], rtol=1e-6)
    twice = lambda x: x.at[np.array([0, 0])].apply(lambda v: v * v).sum()
    np.testing.assert_allclose(polyax.jvp(twice, (x,), (np.ones(3, np.float32),))[1], 4.0 + 1 + 1, rtol=1e-6)


def test_vmap_is_a_loop() -> None:
    xs, places = jnp.arange(6.0).reshape(2, 3), np.array([[0, 0], [2, 1]])
    got = polyax.vmap(lambda x, i: x.at[i].apply(affine))(xs, places)
    np.testing.assert_array_equal(got, [by_loop(np.asarray(x), i) for x, i in zip(xs, places)])


def test_lax_form() -> None:
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    got = lax.scatter_apply(jnp.arange(5.0), np.array([[0], [0], [9]]), affine, numbers, update_shape=(3,))
    assert got.tolist() == [3.0, 1.0, 2.0, 3.0, 4.0]
