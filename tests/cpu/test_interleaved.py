"""Factors of many small matrices, a lane for each: against NumPy in float64, and against LAPACK where they fail."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import polyax
from polyax import lax
from polyax import numpy as jnp
from polyax.ir.aval import ShapedArray
from polyax.ir.config import config
from polyax_cpu.libraries import interleaved

R = np.random.default_rng(5)
TOLERANCE = {"float32": 1e-4, "float64": 1e-12}
SIZES = (1, 2, 3, 4, 7, 16, interleaved.ROWS)
COUNTS = (16, 37)
"""Of matrices: as many as there are lanes, or twice as many, and some more."""
FLAGS = ("left_side", "lower", "transpose_a", "conjugate_a", "unit_diagonal")


pytestmark = pytest.mark.usefixtures("in_64_bits")


def random(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return R.uniform(-1, 1, shape).astype(dtype)


def cholesky(x: Any) -> Any:
    return lax.linalg.cholesky(x, symmetrize_input=False)


def close(got: Any, want: np.ndarray, dtype: str) -> None:
    got = np.asarray(got)
    assert got.dtype == dtype
    np.testing.assert_allclose(got, want, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


def alone(f: Any, x: np.ndarray) -> list[np.ndarray]:
    """What LAPACK says of each matrix."""
    told = [polyax.tree.leaves(f(item)) for item in x]
    return [np.stack(list(map(np.asarray, column))) for column in zip(*told, strict=True)]


def same_as_alone(f: Any, x: np.ndarray) -> None:
    """What isn't finite in the same places, and as large as there."""
    for got, want in zip(polyax.tree.leaves(f(x)), alone(f, x), strict=True):
        tolerance = TOLERANCE[x.dtype.name]
        np.testing.assert_allclose(np.asarray(got), want, rtol=tolerance, atol=tolerance)


# --- values ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("n", SIZES)
def test_cholesky(n: int, count: int, dtype: str) -> None:
    x = random((count, n, n), "float64")
    x = (x @ np.swapaxes(x, -1, -2) + np.eye(n)).astype(dtype)
    found = np.asarray(cholesky(np.where(np.tri(n, dtype=bool), x, np.nan).astype(dtype)))
    close(found, np.linalg.cholesky(x.astype(float)), dtype)
    assert not np.triu(found, 1).any()


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize(("m", "n"), [*zip(SIZES, SIZES, strict=True), (3, 5), (5, 3), (1, 32), (32, 2)])
def test_lu(m: int, n: int, count: int, dtype: str) -> None:
    x, k = random((count, m, n), dtype), min(m, n)
    packed, pivots, permutation = map(np.asarray, lax.linalg.lu(x))
    unit = np.tril(packed[..., :k].astype(float), -1) + np.eye(m, k)
    assert np.abs(unit).max() <= 1
    close((unit @ np.triu(packed[..., :k, :])).astype(dtype), np.take_along_axis(x, permutation[..., None], -2), dtype)
    for exchanges, order in zip(pivots, permutation, strict=True):
        rows = np.arange(m)
        for here, there in enumerate(exchanges):
            rows[[here, there]] = rows[[there, here]]
        np.testing.assert_array_equal(order, rows)


@pytest.mark.parametrize("values", list(product((False, True), repeat=5)), ids=str)
@pytest.mark.parametrize(("n", "columns"), [(1, 1), (2, 3), (4, 1), (5, 5), (32, 32)])
def test_triangular_solve(n: int, columns: int, values: tuple[bool, ...], dtype: str) -> None:
    flags = dict(zip(FLAGS, values, strict=True))
    turned, lower, left, unit = (flags[k] for k in ("transpose_a", "lower", "left_side", "unit_diagonal"))
    a, b = random((2, 9, n, n), dtype) / n + 2 * np.eye(n, dtype=dtype), random((2, 9, n, columns), dtype)
    unread = (np.triu if lower else np.tril)(np.ones((n, n)), 1 if lower else -1).astype(bool)
    unread |= unit & np.eye(n, dtype=bool)
    op = np.where(unread, np.eye(n), a.astype(float))
    op = np.swapaxes(op, -1, -2) if turned else op
    b = b if left else np.swapaxes(b, -1, -2)
    want = np.linalg.solve(op, b) if left else b @ np.linalg.inv(op)
    close(lax.linalg.triangular_solve(np.where(unread, np.nan, a).astype(dtype), b, **flags), want, dtype)


# --- what fails ------------------------------------------------------------------------------------------------------


def test_indefinite_matrices_have_no_factors_and_their_neighbours_do(dtype: str) -> None:
    x = np.stack([np.diag([4.0, 9.0, 1.0])] * 20).astype(dtype)
    x[3], x[7, 1, 1], x[11, 2, 2], x[19, 0, 0] = -x[3], 0, -1, np.nan
    found, bad = np.asarray(cholesky(x)), [3, 7, 11, 19]
    for factor in found[bad]:
        np.testing.assert_array_equal(np.isnan(factor), np.tri(3, dtype=bool))
        assert not np.triu(factor, 1).any()
    good = np.delete(np.arange(20), bad)
    np.testing.assert_array_equal(found[good], np.sqrt(x[good]))


def lu(x: Any) -> Any:
    return list(lax.linalg.lu(x))


@pytest.mark.parametrize("n", [2, 3, 4])
def test_the_first_of_equal_pivots_is_taken(n: int, dtype: str) -> None:
    """Of these numbers many are equal, many matrices are singular, and nothing is rounded before the last pivot."""
    same_as_alone(lu, R.integers(-1, 2, (100, n, n)).astype(dtype))


def test_singular_matrices_have_factors_and_no_solution(dtype: str) -> None:
    x = random((20, 3, 3), dtype) + 3 * np.eye(3, dtype=dtype)
    x[1], x[2, :, 0], x[3, 1] = 0, 0, 0
    same_as_alone(lu, x)
    same_as_alone(jnp.linalg.det, x)
    found = np.asarray(jnp.linalg.inv(x))
    assert [n for n in range(20) if not np.isfinite(found[n]).all()] == [1, 2, 3]


@pytest.mark.parametrize("place", [(0, 0), (2, 1), (2, 2)])
def test_nan_stays_in_its_matrix(place: tuple[int, int], dtype: str) -> None:
    x = random((20, 3, 3), dtype) + 3 * np.eye(3, dtype=dtype)
    x = x @ np.swapaxes(x, -1, -2)
    x[(5, *place)] = np.nan
    for f in (cholesky, lambda x: lu(x)[0], jnp.linalg.inv):
        found = np.isnan(np.asarray(f(x))).any((-2, -1))
        np.testing.assert_array_equal(found, np.arange(20) == 5)


# --- which, and by whom ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["cholesky", "lu", "solve"])
def test_threads_share_a_stack(name: str, dtype: str) -> None:
    """In parts of any size, with the same bits."""
    program = {"cholesky": cholesky, "lu": lu, "solve": lambda x: jnp.linalg.solve(x, x[..., :1])}[name]
    x = random((3001, 5, 5), dtype)
    x = x @ np.swapaxes(x, -1, -2) + np.eye(5, dtype=dtype)
    found = []
    for threads in (1, 2, 3):
        with config.override(num_threads=threads):
            found.append([np.asarray(y).tobytes() for y in polyax.tree.leaves(polyax.jit(program)(x))])
    assert found[0] == found[1] == found[2]


def test_which_stacks_are_interleaved() -> None:
    stack = lambda *shape: [ShapedArray(shape, np.dtype("float32"))]
    lanes, most = interleaved.lanes("s"), interleaved.ROWS
    assert interleaved.lanes("d") == lanes // 2
    assert interleaved.fits(stack(lanes, most, most), "s")
    assert interleaved.fits(stack(lanes // 2, 2, 4, 3), "s")
    assert not interleaved.fits(stack(lanes - 1, 4, 4), "s")
    assert not interleaved.fits(stack(lanes, 4, most + 1), "s")
    assert not interleaved.fits(stack(lanes, 4, 4) + stack(lanes, 4, most * most), "s")
    assert not interleaved.fits(stack(lanes, 4, 4), "c")


def test_loops_call_it() -> None:
    x = random((4, 20, 5, 5), "float64")
    x = x @ np.swapaxes(x, -1, -2) + np.eye(5)
    found = polyax.jit(lambda xs: lax.map(jnp.linalg.cholesky, xs))(x)
    close(found, np.linalg.cholesky(x), "float64")


def test_results_may_take_the_place_of_operands() -> None:
    x = random((100, 6, 6), "float64")
    x = x @ np.swapaxes(x, -1, -2) + np.eye(6)
    program = lambda x: lax.linalg.triangular_solve(cholesky(x), x, left_side=True, lower=True)
    found = np.asarray(polyax.jit(program, donate_argnums=0)(jnp.asarray(x)))
    close(found, np.swapaxes(np.linalg.cholesky(x), -1, -2), "float64")
