"""Eigenvectors by products, and direct solutions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from core.experimental.sparse.layouts import close, full, some

import polyax
from polyax.experimental import sparse
from polyax.experimental.sparse import linalg
from polyax.test_util import check_grads


@pytest.mark.parametrize("shift", [0.0, -100.0])
def test_largest_eigenvalues(shift: float) -> None:
    a = full(40, 40)
    a = (a + a.T) / 2 + shift * np.eye(40, dtype=np.float32)
    theta, vectors, _ = linalg.lobpcg_standard(a, full(40, 3), m=60)
    close(theta, np.linalg.eigvalsh(a)[::-1][:3], 1e-3)
    close(vectors.T @ vectors, np.eye(3), 1e-4)
    close(a @ vectors, vectors * theta[None], 2e-2)


def test_of_a_function_and_of_few_directions() -> None:
    mat = sparse.BCOO.fromdense(np.diag(np.arange(30, dtype=np.float32)))
    start = np.repeat(np.ones((30, 1), np.float32), 2, 1)  # of rank one
    theta, _, steps = linalg.lobpcg_standard(lambda x: mat @ x, start + np.eye(30, 2, dtype=np.float32))
    close(theta, [29, 28], 1e-3)
    assert 0 < int(steps) < 100


def test_bad_starts() -> None:
    for x, text in ((full(10, 0), "must have search dim > 0"), (full(10, 2), r"search dim \* 5 < matrix dim")):
        with pytest.raises(ValueError, match=text):
            linalg.lobpcg_standard(np.eye(10, dtype=np.float32), x)
    with pytest.raises(ValueError, match="A, X must have same dtypes"):
        linalg.lobpcg_standard(lambda x: x.astype(np.float16), full(10, 1))
    with pytest.raises(ValueError, match=r"A must be \(10, 10\) matrix A, got output \(3, 1\)"):
        linalg.lobpcg_standard(lambda x: x[:3], full(10, 1))


def test_systems_and_their_derivatives() -> None:
    dense = some(8, 8) + 5 * np.eye(8, dtype=np.float32)
    mat, b = sparse.CSR.fromdense(dense), full(8)
    solve = lambda data, b: linalg.spsolve(data, mat.indices, mat.indptr, b)
    close(solve(mat.data, b), np.linalg.solve(dense, b))
    close(polyax.jit(solve)(mat.data, b), np.linalg.solve(dense, b))
    close(polyax.vmap(solve, in_axes=(None, 0))(mat.data, np.stack([b, -b]))[1], -np.linalg.solve(dense, b))
    check_grads(solve, (mat.data, b), 1, atol=1e-2, rtol=1e-2)


def test_bad_systems() -> None:
    mat = sparse.CSR.fromdense(np.eye(3, dtype=np.float32))

    def solve(**changes: Any) -> Any:
        return linalg.spsolve(**{**dict(zip(("data", "indices", "indptr"), mat._bufs, strict=True)), **changes})

    for changes, text in (
        ({"b": np.ones(3, np.float16)}, "data types do not match"),
        ({"b": np.ones((3, 1), np.float32)}, "Arrays must be one-dimensional"),
        ({"b": np.ones(4, np.float32)}, "Invalid CSR buffer sizes"),
        ({"b": np.ones(3, np.float32), "indices": np.ones(3, np.float32)}, "index arrays must be integer typed"),
        ({"b": np.ones(3, np.float32), "reorder": 7}, "reorder=7 not valid"),
    ):
        with pytest.raises(ValueError, match=text):
            solve(**changes)


@pytest.mark.parametrize("solver", ["cg", "bicgstab", "gmres"])
def test_iterations_with_sparse_arrays(solver: str) -> None:
    """Matrices and preconditioners may be sparse arrays."""
    solve = getattr(polyax.scipy.sparse.linalg, solver)
    dense, b = 2 * np.eye(4, dtype=np.float32) + 0.1 * np.ones((4, 4), np.float32), full(4)
    for kind in (sparse.BCOO, sparse.BCSR, sparse.CSR):
        mat = kind.fromdense(dense)
        close(solve(mat, b)[0], np.linalg.solve(dense, b))
        close(solve(dense, b, M=mat)[0], np.linalg.solve(dense, b))
    with pytest.raises(TypeError, match="linear operator must be either a function or ndarray"):
        solve([[1.0, 0.0], [0.0, 1.0]], b[:2])
