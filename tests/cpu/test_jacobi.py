"""Eigenvalues and singular values of many small matrices, a lane for each: against NumPy in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import polyax
from polyax import lax
from polyax import numpy as jnp
from polyax.ir.aval import ShapedArray
from polyax.ir.config import config
from polyax_cpu.libraries import interleaved, jacobi

R = np.random.default_rng(5)
COUNT = 61
"""Of matrices: no multiple of a number of lanes, and enough for the largest."""
SIZES = (1, 2, 3, 4, 7, 16, jacobi.ROWS)
SHAPES = (*zip(SIZES, SIZES, strict=True), (3, 2), (2, 3), (5, 1), (1, 5), (24, 4), (4, 24))

pytestmark = pytest.mark.usefixtures("in_64_bits")


def symmetric(n: int) -> np.ndarray:
    x = R.normal(size=(COUNT, n, n))
    return x + x.swapaxes(1, 2)


def of_values(values: np.ndarray, m: int, n: int) -> np.ndarray:
    """Matrices with these singular values, or eigenvalues."""
    left = np.linalg.qr(R.normal(size=(COUNT, m, m)))[0]
    right = left if m == n else np.linalg.qr(R.normal(size=(COUNT, n, n)))[0]
    k = values.shape[-1]
    return (left[..., :k] * values[:, None]) @ right[..., :k].swapaxes(1, 2)


def graded(k: int) -> np.ndarray:
    return 10.0 ** R.uniform(-12, 0, (COUNT, k))


def repeated(k: int) -> np.ndarray:
    """Some are zero, too."""
    return R.integers(0, 3, (COUNT, k)).astype(float)


def tolerance(n: int, dtype: str) -> float:
    return 8 * (n + 1) * float(np.finfo(dtype).eps)


def orthonormal(columns: np.ndarray, dtype: str) -> None:
    assert columns.dtype == dtype
    x = columns.astype(float)
    error = x.swapaxes(-1, -2) @ x - np.eye(x.shape[-1])
    assert np.abs(error).max() <= tolerance(x.shape[-2], dtype)


def near(got: np.ndarray, want: np.ndarray, of: np.ndarray, dtype: str) -> None:
    """But for the rounding of the largest elements of the matrices ``of``."""
    size = np.linalg.norm(of.astype(float), axis=(-2, -1)) + 1e-300
    error = np.abs(got.astype(float) - want).reshape(len(of), -1).max(1) / size
    assert error.max() <= tolerance(max(of.shape[-2:]), dtype)


# --- symmetric matrices ----------------------------------------------------------------------------------------------


def check_eigh(x: np.ndarray, dtype: str) -> None:
    x = x.astype(dtype)
    values, vectors = map(np.asarray, polyax.jit(jnp.linalg.eigh)(x))
    assert values.dtype == dtype
    assert (np.diff(values) >= 0).all()
    orthonormal(vectors, dtype)
    near(values, np.linalg.eigvalsh(x.astype(float)), x, dtype)
    near((vectors.astype(float) * values[:, None]) @ vectors.swapaxes(1, 2), x, x, dtype)
    near(np.asarray(polyax.jit(jnp.linalg.eigvalsh)(x)), values, x, dtype)


@pytest.mark.parametrize("n", SIZES)
def test_eigenvalues(n: int, dtype: str) -> None:
    for x in (symmetric(n), of_values(graded(n), n, n), of_values(repeated(n), n, n), np.zeros((COUNT, n, n))):
        check_eigh((x + x.swapaxes(1, 2)) / 2, dtype)


@pytest.mark.parametrize("scale", [1e30, 1e-30])
def test_no_square_of_an_eigenvalue_overflows(scale: float, dtype: str) -> None:
    check_eigh(symmetric(5) * scale, dtype)


@pytest.mark.parametrize("lower", [False, True])
def test_one_triangle_is_read(lower: bool, dtype: str) -> None:
    x = symmetric(4).astype(dtype)
    is_read = np.tri(4, dtype=bool) if lower else np.tri(4, dtype=bool).T
    found = lax.linalg.eigh(np.where(is_read, x, np.nan).astype(dtype), lower=lower, symmetrize_input=False)[1]
    near(np.asarray(found), np.linalg.eigvalsh(x.astype(float)), x, dtype)


# --- singular values -------------------------------------------------------------------------------------------------


def check_svd(x: np.ndarray, full: bool, dtype: str) -> None:
    x, k = x.astype(dtype), min(x.shape[-2:])
    u, s, vh = map(np.asarray, polyax.jit(lambda x: jnp.linalg.svd(x, full_matrices=full))(x))
    assert s.dtype == dtype
    assert (np.diff(s) <= 0).all()
    orthonormal(u, dtype)
    orthonormal(vh.swapaxes(1, 2), dtype)
    near(s, np.linalg.svd(x.astype(float), compute_uv=False), x, dtype)
    near((u[..., :k].astype(float) * s[:, None]) @ vh[:, :k], x, x, dtype)
    near(np.asarray(polyax.jit(lambda x: jnp.linalg.svd(x, compute_uv=False))(x)), s, x, dtype)


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize(("m", "n"), SHAPES)
def test_singular_values(m: int, n: int, full: bool, dtype: str) -> None:
    k = min(m, n)
    same, none = np.ones((COUNT, m, n)), np.zeros((COUNT, m, n))
    for x in (R.normal(size=(COUNT, m, n)), of_values(graded(k), m, n), of_values(repeated(k), m, n), same, none):
        check_svd(x, full, dtype)


@pytest.mark.parametrize("scale", [1e30, 1e-30])
def test_no_square_of_a_singular_value_overflows(scale: float, dtype: str) -> None:
    check_svd(R.normal(size=(COUNT, 5, 3)) * scale, True, dtype)


# --- both ------------------------------------------------------------------------------------------------------------


def eigh(x: Any) -> Any:
    return jnp.linalg.eigh(x)


def svd(x: Any) -> Any:
    return jnp.linalg.svd(x)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("program", [eigh, svd])
def test_what_is_not_finite_has_no_values_and_its_neighbours_do(program: Any, value: float, dtype: str) -> None:
    x = symmetric(3).astype(dtype)
    x[5, 2, 1] = x[5, 1, 2] = x[-1, 0, 0] = value
    for found in program(x):
        failed = np.isnan(np.asarray(found)).reshape(COUNT, -1)
        np.testing.assert_array_equal(failed.all(1), failed.any(1))
        np.testing.assert_array_equal(failed.any(1), np.isin(np.arange(COUNT), (5, COUNT - 1)))


@pytest.mark.parametrize("program", [eigh, svd])
def test_no_bit_depends_on_the_neighbours(program: Any, dtype: str) -> None:
    """Which lanes turn on, or how threads cut the stack, makes no difference."""
    x = np.concatenate([symmetric(5)] * 50).astype(dtype)
    found = []
    for threads, order in ((1, 1), (2, 1), (3, -1)):
        with config.override(num_threads=threads):
            found.append([np.asarray(y)[::order].tobytes() for y in polyax.jit(program)(x[::order])])
    assert found[0] == found[1] == found[2]


def test_which_stacks_have_a_lane_for_each_matrix() -> None:
    stack = lambda *shape: [ShapedArray(shape, np.dtype("float32"))]
    lanes = interleaved.lanes("s")
    assert jacobi.fits(stack(lanes, 8, 8), "s")
    assert not jacobi.fits(stack(lanes - 1, 2, 2), "s")
    assert not jacobi.fits(stack(lanes, 16, 3), "s")
    assert jacobi.fits(stack(2 * lanes, 16, 3), "s")
    assert not jacobi.fits(stack(99 * lanes, jacobi.ROWS + 1, 3), "s")
