"""Derivatives where formulas change: at zero, and where arguments are equal. Of any order, those of the function."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import nn


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
