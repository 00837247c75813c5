"""Eigenvalues by bisection: as exact as LAPACK's at any scale, and of no matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import polyax
from polyax.scipy import linalg
from polyax.test_util import check_grads

RNG = np.random.default_rng(0)


def dense(d: Any, e: Any) -> Any:
    return np.diag(np.real(d)) + np.diag(e, -1) + np.diag(np.conj(e), 1)


def values(d: Any, e: Any) -> Any:
    return linalg.eigh_tridiagonal(d, e, eigvals_only=True)


MATRICES = {
    "normal": (RNG.normal(size=60), RNG.normal(size=59)),
    "one number": (np.array([3.0]), np.zeros(0)),
    "diagonal": (np.arange(20.0)[::-1], np.zeros(19)),
    "no diagonal": (np.zeros(33), np.ones(32)),
    "equal halves": (np.ones(30), np.where(np.arange(29) == 14, 0, 0.5)),
    "pairs of Wilkinson's": (np.abs(np.arange(-10.0, 11.0)), np.ones(20)),
    "complex": (RNG.normal(size=9), RNG.normal(size=8) + 1j * RNG.normal(size=8)),
    "zero": (np.zeros(5), np.zeros(4)),
}


@pytest.mark.parametrize("scale", [1.0, 1e30, 1e-33])
@pytest.mark.parametrize("name", MATRICES)
def test_they_are_as_exact_as_the_largest(name: str, scale: float) -> None:
    kinds = (np.complex64, np.complex128) if name == "complex" else (np.float32, np.float64)
    for kind in kinds:
        d, e = ((x * scale).astype(kind) for x in MATRICES[name])
        with polyax.enable_x64(True):
            found = np.asarray(values(d, e))
        want = np.linalg.eigvalsh(dense(d, e).astype(kinds[1]))
        assert found.dtype == d.real.dtype
        np.testing.assert_allclose(found, want, rtol=0, atol=16 * np.finfo(kind).eps * np.abs(want).max())


def test_what_is_not_finite() -> None:
    for odd in (np.nan, np.inf):
        assert np.isnan(values(np.float32([1, odd, 2]), np.float32([1, 1]))).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_numbers_are_computed_in_wider_ones(dtype: str) -> None:
    d, e = (polyax.numpy.asarray(x, dtype) for x in (np.arange(12) / 4, np.ones(11)))
    found = values(d, e)
    want = values(d.astype("float32"), e.astype("float32")).astype(dtype)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, want)


def test_no_matrix_is_made() -> None:
    d, e = RNG.normal(size=300), RNG.normal(size=299)
    text = str(polyax.make_jaxpr(values)(d, e))
    assert "eigh" not in text and "300,300" not in text


def test_derivatives_of_complex_numbers() -> None:
    d, e = RNG.normal(size=5), RNG.normal(size=4) + 1j * np.array([0.5, 0, -1, 2])
    of_parts = lambda d, x, y: values(d + 0j, x + 1j * y)
    with polyax.enable_x64(True):
        check_grads(of_parts, (d, e.real, e.imag), 2, rtol=1e-4, atol=1e-4)


def test_several_at_once() -> None:
    d, e = RNG.normal(size=(3, 7)), RNG.normal(size=(3, 6))
    with polyax.enable_x64(True):
        got = polyax.vmap(values)(d, e)
    np.testing.assert_allclose(got, [np.linalg.eigvalsh(dense(*pair)) for pair in zip(d, e, strict=True)], atol=1e-13)
