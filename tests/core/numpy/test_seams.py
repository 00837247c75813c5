"""Derivatives where formulas change: at zero, and where arguments are equal; types, orders and places of results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import lax, nn


def derivative(fun: Any, order: int) -> Any:
    for _ in range(order):
        fun = polyax.grad(fun)
    return fun


@pytest.mark.parametrize(("order", "wanted"), list(enumerate([1, 0, -(np.pi**2) / 3, 0, np.pi**4 / 5])))
def test_sinc_at_zero(order: int, wanted: float) -> None:
    """Of sin(pi x) / (pi x) = 1 - (pi x)^2 / 3! + (pi x)^4 / 5! - ..."""
    np.testing.assert_allclose(derivative(jnp.sinc, order)(0.0), wanted, rtol=1e-6)


@pytest.mark.parametrize(("order", "wanted"), [(1, 1 / 2), (2, 1 / 4), (3, 0), (4, -1 / 8)])
def test_softplus_at_zero(order: int, wanted: float) -> None:
    """The derivative of log(1 + exp(x)) is the logistic function."""
    np.testing.assert_allclose(derivative(nn.softplus, order)(0.0), wanted, atol=1e-6)


def test_logaddexp_of_equals_and_infinities() -> None:
    slopes = polyax.grad(jnp.logaddexp, (0, 1))
    np.testing.assert_allclose(slopes(2.0, 2.0), [0.5, 0.5])
    np.testing.assert_allclose(slopes(-np.inf, 1.0), [0, 1])
    np.testing.assert_allclose(slopes(100.0, -100.0), [1, 0])
    np.testing.assert_allclose(
        polyax.hessian(lambda v: jnp.logaddexp(v[0], v[1]))(np.zeros(2, np.float32)), [[0.25, -0.25], [-0.25, 0.25]]
    )


def test_relu_has_slope_zero_at_zero() -> None:
    assert polyax.grad(nn.relu)(0.0) == 0.0
    assert [polyax.grad(nn.relu6)(x).item() for x in (0.0, 3.0, 6.0)] == [0.0, 1.0, 0.0]


def test_reductions_of_integers_by_functions_of_floats() -> None:
    np.testing.assert_allclose(jnp.logaddexp.reduce(jnp.arange(3)), np.logaddexp.reduce(np.arange(3.0)), rtol=1e-6)
    np.testing.assert_allclose(jnp.logaddexp.accumulate(jnp.arange(3)), [0, 1.3132617, 2.407606], rtol=1e-6)


def test_common_elements_with_their_places() -> None:
    a, b = np.array([[3, 1, 2], [3, 5, 9]]), np.array([5, 3, 7, 3])
    for got, want in zip(
        jnp.intersect1d(a, b, return_indices=True), np.intersect1d(a, b, return_indices=True), strict=True
    ):
        np.testing.assert_array_equal(got, want)
    padded = polyax.jit(lambda x, y: jnp.intersect1d(x, y, return_indices=True, size=4))(a, b)
    assert [x.tolist() for x in padded] == [[3, 5, 3, 3], [0, 4, 6, 6], [1, 0, 4, 4]]
    none = jnp.intersect1d(jnp.array([1]), jnp.array([2]), size=2, return_indices=True)
    assert [x.tolist() for x in none] == [[0, 0], [1, 1], [1, 1]]


def test_order_of_complex_numbers() -> None:
    x, y = np.array([1 + 2j, 0.5, 1, np.nan], np.complex64), np.array([1 + 1j, 2, -1j, 2], np.complex64)
    np.testing.assert_array_equal(jnp.fmax(x, y), np.fmax(x, y))
    np.testing.assert_array_equal(jnp.fmin(x, y), np.fmin(x, y))
    ordered = np.sort(x[:3])
    np.testing.assert_array_equal(jnp.searchsorted(ordered, y), np.searchsorted(ordered, y))


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("size", [0, 1, 2, 3, 7, 8, 9, 64, 100])
def test_places_in_arrays_of_any_length(size: int, side: str) -> None:
    ordered = np.sort(np.random.default_rng(size).integers(0, 20, size).astype(np.float32))
    ordered[size - size // 8 :] = np.nan
    x = np.array([-1, *np.arange(0, 21, 0.5), np.inf, np.nan], np.float32)
    np.testing.assert_array_equal(jnp.searchsorted(ordered, x, side), np.searchsorted(ordered, x, side))


def test_largest_elements_in_total_order() -> None:
    x = np.array([0x7FC00000, 0xFFC00000, 0x3F800000, 0x80000000, 0, 0xFF800000], np.uint32).view(np.float32)
    assert lax.top_k(jnp.asarray(x), 6)[1].tolist() == [0, 2, 4, 3, 5, 1]
    assert lax.top_k(jnp.array([-0.0, 0.0, -0.0, 0.0]), 4)[1].tolist() == [1, 3, 0, 2]
    with pytest.raises(ValueError, match="top_k is not compatible with complex inputs"):
        lax.top_k(jnp.array([1j]), 1)


def test_products_of_mixed_types() -> None:
    numbers = (((1,), (0,)), ((), ()))
    kinds = {
        ("int8", "uint8"): "int8",
        ("int8", "uint32"): "uint32",
        ("int32", "uint32"): "int32",
        ("float16", "bfloat16"): "bfloat16",
        ("int32", "float16"): "float16",
    }
    for (left, right), want in kinds.items():
        for a, b in ((left, right), (right, left)):
            assert lax.dot_general(jnp.ones((2, 3), a), jnp.ones((3, 2), b), numbers).dtype == want


def test_parameters_by_name() -> None:
    assert jnp.trunc(x=-1.5).item() == -1 and jnp.iinfo(int_type="int8").max == 127
