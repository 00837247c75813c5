"""Places of extrema by two reductions: the first of equal ones, NaN before all, and vectors instead of a chain."""

from __future__ import annotations

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import lax

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def on_the_cpu():
    with polyax.default_device("cpu"):
        yield


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int32", "uint8", "int8", "bool"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_first_of_equal_ones(dtype: str, axis: int) -> None:
    x = RNG.integers(0, 4, (5, 40, 3)).astype("bool" if dtype == "bool" else "int32")
    for name in ("argmax", "argmin"):
        got = getattr(jnp, name)(jnp.asarray(x).astype(dtype), axis)
        np.testing.assert_array_equal(got, getattr(np, name)(x, axis))


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_special_numbers(name: str) -> None:
    nan, inf = np.nan, np.inf
    rows = [
        [0, -0.0, 0],
        [-0.0, 0, 0],
        [1, nan, nan],
        [inf, -inf, nan],
        [-inf] * 3,
        [inf] * 3,
        [nan] * 3,
        [-inf, 0, inf],
    ]
    x = np.array(rows, np.float32)
    np.testing.assert_array_equal(getattr(jnp, name)(x, 1), getattr(np, name)(x, 1))
    np.testing.assert_array_equal(getattr(jnp, name)(x.T.copy(), 0), getattr(np, name)(x, 1))


def test_places_that_their_dtype_can_not_tell_apart() -> None:
    x = np.zeros(100, np.float32)
    x[99] = 1
    assert lax.argmax(x, 0, np.int8) == 99
    assert lax.argmax(np.append(x, [0.0] * 100).astype(np.float32), 0, np.int8) == 99


def test_rows_are_one_kernel_without_a_chain() -> None:
    for axis in (0, 1):
        told = polyax.explain(lambda x, axis=axis: jnp.argmax(x, axis))(np.zeros((300, 200), np.float32))
        (kernel,) = told.report.kernels
        assert {"reduce_max", "reduce_min"} <= set(kernel.primitives)
