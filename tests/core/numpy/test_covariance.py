"""Covariance and correlation against NumPy's, their types, and what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import polyax.numpy as jnp

X = np.random.default_rng(5).standard_normal((3, 5)).astype(np.float32)
COUNTS, SHARES = np.array([1, 2, 0, 1, 3]), np.array([0.5, 1.0, 2.0, 0.0, 1.0], np.float32)


@pytest.mark.parametrize("options", ({}, {"bias": True}, {"ddof": 2}, {"rowvar": False}))
@pytest.mark.parametrize("y", (None, X * 2 + 1))
def test_agrees_with_numpy(options: dict[str, Any], y: Any) -> None:
    np.testing.assert_allclose(jnp.cov(X, y, **options), np.cov(X, y, **options), rtol=1e-4, atol=1e-5)


def test_more_is_subtracted_than_there_are_observations() -> None:
    np.testing.assert_allclose(jnp.cov(X, ddof=7), np.cov(X) * 4 / -2, rtol=1e-4)


def test_weights_count_without_their_signs() -> None:
    want = np.cov(X, fweights=COUNTS, aweights=SHARES)
    np.testing.assert_allclose(jnp.cov(X, fweights=-COUNTS, aweights=-SHARES), want, rtol=1e-4)


def test_both_are_promoted_to_one_type() -> None:
    assert jnp.cov(X[0], X[1] * 1j).dtype == np.complex64
    np.testing.assert_allclose(jnp.cov(X[0], X[1] * 1j), np.cov(X[0], X[1] * 1j), rtol=1e-4)
    assert jnp.cov(np.arange(5), np.arange(5, dtype=np.float16)).dtype == np.float16
    assert jnp.cov(X, dtype="float16").dtype == np.float16
    assert jnp.corrcoef(X, dtype=jnp.bfloat16).dtype == jnp.bfloat16


def test_no_variables_have_no_covariances() -> None:
    assert jnp.cov(X[:0]).shape == (0, 0)


def test_covariances_of_no_observations_are_unknown() -> None:
    assert np.isnan(jnp.cov(X[:, :0])).all() and np.isnan(jnp.cov(X[0, :0]))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    (
        (lambda: jnp.cov(X[None]), ValueError, "m has more than 2 dimensions"),
        (lambda: jnp.cov(X, X[None]), ValueError, "y has more than 2 dimensions"),
        (lambda: jnp.cov(X, fweights=SHARES), TypeError, "fweights must be integer"),
        (lambda: jnp.cov(X, fweights=COUNTS[:2]), RuntimeError, "incompatible numbers of samples and fweights"),
        (lambda: jnp.cov(X, aweights=X), RuntimeError, "cannot handle multidimensional aweights"),
        (lambda: jnp.cov(X, dtype=int), ValueError, "dtype must be a subclass of float or complex"),
        (lambda: jnp.corrcoef(X, dtype=int), ValueError, "dtype must be a subclass of float or complex"),
    ),
)
def test_bad_input(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()
