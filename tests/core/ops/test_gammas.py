"""``lgamma`` and ``digamma`` in terms of others, as engines that have neither run them."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest

import polyax
from polyax import lax
from polyax.control.decomposition import decomposition
from polyax.ops.gammas import derivative_of_log_gamma, log_gamma

X = np.concatenate([np.linspace(0.01, 12, 211), -np.linspace(0.011, 5.03, 97), [1, 2, 1e-5, 1e5, 30]])
LARGE = {"float32": 5e-6, "float64": 1e-14}
"""What results may err by, of themselves or of 1."""


@pytest.mark.parametrize("dtype", LARGE)
@pytest.mark.parametrize(
    "function, exact", [(log_gamma, lambda x: mpmath.re(mpmath.loggamma(x))), (derivative_of_log_gamma, mpmath.digamma)]
)
def test_values(function: Any, exact: Any, dtype: str) -> None:
    with polyax.enable_x64(True), polyax.default_device("reference"):
        x = X.astype(dtype)
        got = np.asarray(polyax.jit(function)(x))
    want = np.array([float(exact(float(v))) for v in x])
    assert got.dtype == dtype
    assert np.max(np.abs(got - want) / np.maximum(np.abs(want), 1)) < LARGE[dtype]


def test_ends() -> None:
    ends = np.array([0, -1, 1, 2, np.inf, -np.inf, np.nan], np.float32)
    with polyax.default_device("reference"):
        np.testing.assert_array_equal(log_gamma(ends), [np.inf, np.inf, 0, 0, np.inf, np.inf, np.nan])


@pytest.mark.parametrize("function", [lax.lgamma, lax.digamma])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_it_is_what_they_are_made_of(function: Any, dtype: str) -> None:
    (eqn,) = polyax.make_jaxpr(function)(np.ones(3, dtype)).eqns
    made = decomposition(eqn)
    assert made.out_avals == [v.aval for v in eqn.outvars]
    assert not {"lgamma", "digamma"} & {e.primitive.name for e in made.eqns}
