"""Orthogonal factors of many small matrices, a lane for each: against LAPACK's of each alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import polyax
from polyax import lax
from polyax.ir.config import config
from polyax.ops import reflections
from polyax_cpu.libraries import interleaved

R = np.random.default_rng(5)
COUNT = 37
"""Of matrices: no multiple of a number of lanes."""
SIZES = (1, 2, 3, 7, 16, interleaved.ROWS)
SHAPES = (*zip(SIZES, SIZES, strict=True), (5, 3), (3, 5), (1, 6), (6, 1), (32, 4), (4, 32))
TOLERANCE = {"float32": 1e-4, "float64": 1e-11}

pytestmark = pytest.mark.usefixtures("in_64_bits")


def drawn(*shape: int, dtype: str) -> np.ndarray:
    return R.uniform(-1, 1, (COUNT, *shape)).astype(dtype)


def same_as_alone(f: Any, *stacks: np.ndarray) -> list[np.ndarray]:
    """With the same signs."""
    got = [np.asarray(y) for y in polyax.tree.leaves(polyax.jit(f)(*stacks))]
    alone = [polyax.tree.leaves(f(*(x[n] for x in stacks))) for n in (0, 7, COUNT - 1)]
    for n, y in enumerate(got):
        assert y.dtype == stacks[0].dtype
        tolerance = TOLERANCE[y.dtype.name]
        want = np.stack([np.asarray(found[n]) for found in alone])
        np.testing.assert_allclose(y[[0, 7, COUNT - 1]], want, rtol=tolerance, atol=tolerance)
    return got


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize(("m", "n"), SHAPES)
def test_qr(m: int, n: int, full: bool, dtype: str) -> None:
    x = drawn(m, n, dtype=dtype)
    q, r = same_as_alone(lambda x: lax.linalg.qr(x, full_matrices=full), x)
    np.testing.assert_allclose(q @ r, x, atol=TOLERANCE[dtype])
    np.testing.assert_allclose(
        q.swapaxes(1, 2) @ q, np.broadcast_to(np.eye(q.shape[-1]), (COUNT, *q.shape[-1:] * 2)), atol=TOLERANCE[dtype]
    )
    (alone,) = same_as_alone(lambda x: lax.linalg.qr(x, full_matrices=full)[1], x)
    np.testing.assert_array_equal(alone, r)


@pytest.mark.parametrize(("m", "n"), SHAPES)
def test_reflections(m: int, n: int, dtype: str) -> None:
    packed, taus = same_as_alone(reflections.geqrf, drawn(m, n, dtype=dtype))
    if m >= n:
        same_as_alone(lax.linalg.householder_product, packed, taus)
        same_as_alone(lax.linalg.householder_product, packed, taus[:, : n // 2])


@pytest.mark.parametrize("scale", [1e30, 1e-30])
def test_no_square_overflows(scale: float, dtype: str) -> None:
    x = (drawn(4, 3, dtype="float64") * scale).astype(dtype)
    q, r = map(np.asarray, lax.linalg.qr(x))
    np.testing.assert_allclose(q @ (r / scale), x / scale, atol=TOLERANCE[dtype])


def test_columns_of_zeros_have_no_reflection(dtype: str) -> None:
    q, r = map(np.asarray, lax.linalg.qr(np.zeros((COUNT, 3, 3), dtype)))
    np.testing.assert_array_equal(q, np.broadcast_to(np.eye(3), q.shape))
    assert not r.any()


def test_what_is_not_finite_has_no_factors_and_its_neighbours_do(dtype: str) -> None:
    x = drawn(3, 3, dtype=dtype)
    x[5, 1, 1], x[9, 2, 0] = np.nan, np.inf
    for found in lax.linalg.qr(x):
        failed = np.isnan(np.asarray(found)).reshape(COUNT, -1)
        np.testing.assert_array_equal(failed.all(1), np.isin(np.arange(COUNT), (5, 9)))
        np.testing.assert_array_equal(failed.any(1), failed.all(1))


def test_threads_share_a_stack(dtype: str) -> None:
    x, found = R.uniform(-1, 1, (3001, 5, 4)).astype(dtype), []
    for threads in (1, 2, 3):
        with config.override(num_threads=threads):
            found.append([np.asarray(y).tobytes() for y in polyax.jit(lax.linalg.qr)(x)])
    assert found[0] == found[1] == found[2]
