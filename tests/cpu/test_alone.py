"""Factors of one small matrix, whose rows are vectors: against LAPACK's of NumPy, and what is left to LAPACK."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import polyax
from polyax import lax
from polyax import numpy as jnp
from polyax_cpu import machine_code
from polyax_cpu.libraries import alone, lapack

R = np.random.default_rng(11)
SIZES = (1, 2, 3, 7, 8, 9, 16, 17, 31, 40, alone.ROWS)
SHAPES = (*zip(SIZES, SIZES, strict=True), (5, 3), (3, 5), (1, 6), (6, 1), (64, 4), (4, 64), (33, 20))
TOLERANCE = {"float32": 2e-5, "float64": 1e-13}

pytestmark = pytest.mark.usefixtures("in_64_bits", "native")


def drawn(*shape: int, dtype: str) -> np.ndarray:
    return R.uniform(-1, 1, shape).astype(dtype)


def definite(n: int, dtype: str) -> np.ndarray:
    x = R.uniform(-1, 1, (n, n))
    return (x @ x.T / n + np.eye(n)).astype(dtype)


@pytest.mark.parametrize("n", SIZES)
def test_cholesky(n: int, dtype: str) -> None:
    """What is above the diagonal isn't read."""
    x = definite(n, dtype)
    factor = polyax.jit(lambda x: lax.linalg.cholesky(x, symmetrize_input=False))
    got = np.asarray(factor(np.where(np.tri(n, dtype=bool), x, np.nan).astype(dtype)))
    assert got.dtype == dtype
    np.testing.assert_allclose(got, np.linalg.cholesky(x.astype("float64")), atol=TOLERANCE[dtype])
    np.testing.assert_array_equal(got, np.tril(got))


@pytest.mark.parametrize("n", [3, 17])
def test_a_matrix_that_is_not_definite_has_no_factor(n: int, dtype: str) -> None:
    x = definite(n, dtype) - 3 * np.eye(n, dtype=dtype) * (np.arange(n) == n - 2)
    got = np.asarray(polyax.jit(jnp.linalg.cholesky)(x))
    np.testing.assert_array_equal(got, np.where(np.tri(n, dtype=bool), np.nan, 0.0))


def check_qr(x: np.ndarray, full: bool, scale: float = 1.0) -> None:
    q, r = (np.asarray(y) for y in polyax.jit(lambda x: lax.linalg.qr(x, full_matrices=full))(x))
    _, want = np.linalg.qr(x.astype("float64"), "complete" if full else "reduced")
    tolerance = TOLERANCE[x.dtype.name]
    np.testing.assert_allclose(q @ r / scale, x / scale, atol=tolerance)
    np.testing.assert_allclose(q.T @ q, np.eye(q.shape[1]), atol=tolerance)
    np.testing.assert_allclose(r / scale, want / scale, atol=10 * tolerance)
    np.testing.assert_array_equal(r, np.triu(r))


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize(("m", "n"), SHAPES)
def test_qr(m: int, n: int, full: bool, dtype: str) -> None:
    """With LAPACK's signs."""
    check_qr(drawn(m, n, dtype=dtype), full)


@pytest.mark.parametrize("n", [5, 16])
def test_columns_of_zeros_and_triangular_matrices_are_reflected_as_lapack_does(n: int, dtype: str) -> None:
    """That is: not at all, where there is nothing below the diagonal."""
    x = drawn(n, n, dtype=dtype)
    check_qr(np.triu(x), full=False)
    check_qr(np.where(np.arange(n) == 2, 0, x).astype(dtype), full=True)


@pytest.mark.parametrize("power", [-90, 90])
def test_numbers_whose_squares_are_none_are_left_to_lapack(power: int, dtype: str) -> None:
    scale = 2.0 ** (power if dtype == "float32" else 9 * power)
    check_qr((drawn(6, 6, dtype=dtype) * scale).astype(dtype), full=False, scale=scale)
    x = drawn(6, 6, dtype=dtype)
    check_qr((x * np.where(np.arange(6) == 1, 1 / scale if power > 0 else scale, 1)).astype(dtype), full=False)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_has_no_factors(value: float, dtype: str) -> None:
    x = drawn(4, 4, dtype=dtype)
    x[2, 1] = value
    q, _ = polyax.jit(lambda x: lax.linalg.qr(x))(x)
    assert np.isnan(np.asarray(q)).any()


def written(monkeypatch: pytest.MonkeyPatch, f: Any, x: np.ndarray) -> str:
    """The text of the function that computes ``f``."""
    texts, real = list[str](), machine_code.library

    def library(text: str, *args: Any, **how: Any) -> Any:
        texts.append(text)
        return real(text, *args, **how)

    monkeypatch.setattr(machine_code, "library", library)
    lapack._function.cache_clear()
    polyax.jit(f)(x).block_until_ready()
    return next(text for text in texts if "@compute" in text)


@pytest.mark.parametrize(("n", "calls"), [(alone.ROWS, False), (alone.ROWS + 1, True)])
def test_small_matrices_call_no_library(n: int, calls: bool, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ("@LAPACKE" in written(monkeypatch, jnp.linalg.cholesky, definite(n, dtype))) == calls


def test_rows_are_vectors_of_as_many_lanes(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    type = {"float32": "float", "float64": "double"}[dtype]
    text = written(monkeypatch, lambda x: lax.linalg.qr(x)[0], drawn(20, 30, dtype=dtype))
    assert f"<32 x {type}> @llvm.fma" in text and f"<64 x {type}>" not in text
