"""All formats: empty ones, diagonals, products, conversions; random arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from core.experimental.sparse.layouts import close, full, some

import polyax
from polyax import numpy as jnp
from polyax import random
from polyax.experimental import sparse
from polyax.experimental.sparse import BCOO, BCSR, COO, CSC, CSR

X = some(3, 4)


@pytest.mark.parametrize("kind", [COO, CSR, CSC, BCSR, BCOO])
def test_a_matrix_in_each_format(kind: Any) -> None:
    mat = kind.fromdense(X)
    assert repr(mat) == f"{kind.__name__}(float32[3, 4], nse={np.count_nonzero(X)})"
    np.testing.assert_array_equal(mat.todense(), X)
    np.testing.assert_array_equal(polyax.jit(lambda m: m.todense())(mat), X)
    for other in (full(4), full(4, 2)):
        close(mat @ other, X @ other)
        if kind is not BCSR:
            close(mat.T @ full(3, *other.shape[1:]), X.T @ full(3, *other.shape[1:]))
    wanted = polyax.grad(lambda x: ((x @ full(4)) ** 2).sum())(jnp.asarray(X))
    found = sparse.grad(lambda m: ((m @ full(4)) ** 2).sum())(mat)
    close(found.todense(), np.where(X != 0, wanted, 0), 1e-4)
    padded = kind.fromdense(X, nse=9)
    np.testing.assert_array_equal(padded.todense(), X)
    close(padded @ full(4), X @ full(4))


@pytest.mark.parametrize("kind", [COO, CSR, CSC])
def test_what_simple_formats_refuse(kind: Any) -> None:
    mat = kind.fromdense(X)
    with pytest.raises(NotImplementedError, match="matmul between two sparse objects"):
        _ = mat @ mat
    with pytest.raises(NotImplementedError, match=r"matmul with object of shape \(4, 1, 1\)"):
        _ = mat @ full(4, 1, 1)
    with pytest.raises(ValueError, match="needs 4 rows of the same dtype"):
        _ = mat @ full(3)
    with pytest.raises(NotImplementedError, match="__add__"):
        _ = mat + mat
    with pytest.raises(ValueError, match=f"{kind.__name__} must have ndim=2"):
        kind._empty((2, 3, 4))


def test_functions_of_simple_formats() -> None:
    coo, csr = sparse.coo_fromdense(X), sparse.csr_fromdense(X)
    kinds: Any = (
        (sparse.coo_matvec, sparse.coo_matmat, sparse.coo_todense, coo),
        (sparse.csr_matvec, sparse.csr_matmat, sparse.csr_todense, csr),
    )
    for matvec, matmat, todense, mat in kinds:
        close(matvec(mat, full(3), transpose=True), X.T @ full(3))
        close(matmat(mat, full(3, 2), transpose=True), X.T @ full(3, 2))
        close(todense(mat), X)
    assert coo._sort_indices() is coo and coo.T._sort_indices()._rows_sorted


@pytest.mark.parametrize("name", ["bcoo", "bcsr", "coo", "csr", "csc"])
def test_empty_and_diagonal(name: str) -> None:
    nothing = sparse.empty((3, 4), sparse_format=name)
    assert nothing.nse == 0 and type(nothing).__name__ == name.upper()
    np.testing.assert_array_equal(nothing.todense(), np.zeros((3, 4)))
    if name == "bcsr":
        return
    for k in (-4, -1, 0, 2, 5):
        np.testing.assert_array_equal(sparse.eye(3, 4, k, sparse_format=name).todense(), np.eye(3, 4, k))
    assert sparse.eye(3, dtype=int, sparse_format=name).dtype == jnp.arange(0).dtype


def test_layouts_of_empty_and_diagonal() -> None:
    layouts: Any = ({"n_batch": 1}, {"n_dense": 1}, {"n_batch": 2}, {"n_batch": 1, "n_dense": 1})
    for layout in layouts:
        np.testing.assert_array_equal(sparse.eye(3, 4, 1, **layout).todense(), np.eye(3, 4, 1))
    assert sparse.empty((2, 3, 4), nse=2, n_batch=1, n_dense=1).data.shape == (2, 2, 4)
    for shape in ((3,), (2, 3, 4)):
        with pytest.raises(ValueError, match="must have 2 sparse dimensions"):
            sparse.empty(shape, sparse_format="bcsr")
    with pytest.raises(ValueError, match="sparse_format='ell' not recognized; must be one of"):
        sparse.empty((3, 4), sparse_format="ell")
    with pytest.raises(ValueError, match="Invalid inputs: shape="):
        sparse.empty((3, 4), n_batch=2, n_dense=1)


def test_compressed_rows_of_batches_and_blocks() -> None:
    x = some(2, 3, 4, 2)
    for layout in ({"n_batch": 2}, {"n_batch": 1, "n_dense": 1}, {"n_dense": 2}):
        mat = BCSR.fromdense(x, **layout)
        np.testing.assert_array_equal(mat.todense(), x)
        again = BCSR.from_bcoo(mat.to_bcoo())
        np.testing.assert_array_equal(again.indptr, mat.indptr)
        np.testing.assert_array_equal(again.sum_duplicates().todense(), x)
    mapped = BCSR.fromdense(x[..., 0], n_batch=1)
    close(polyax.vmap(lambda m: m.todense())(mapped), x[..., 0])
    with pytest.raises(ValueError, match="must have 2 sparse dimensions"):
        BCSR.fromdense(x)
    with pytest.raises(NotImplementedError, match="Transpose is not implemented"):
        mapped.transpose()
    with pytest.raises(ValueError, match="indptr shape must match the matrix shape plus 1"):
        BCSR((np.ones(1), np.zeros(1, int), np.zeros(3, int)), shape=(3, 4))
    with pytest.raises(NotImplementedError, match="requires n_sparse=2"):
        BCSR.from_bcoo(BCOO.fromdense(x))


def test_random_arrays() -> None:
    key = random.key(0)
    mat = sparse.random_bcoo(key, (3, 5, 6, 2), nse=0.3, n_batch=1, n_dense=1, sorted_indices=True)
    assert (mat.nse, mat.n_batch, mat.n_dense, mat.indices_sorted) == (9, 1, 1, True)
    assert all(len({tuple(i) for i in np.asarray(rows)}) == 9 for rows in mat.indices)
    assert sparse.random_bcoo(key, (4, 4), nse=5, generator=random.normal, dtype=np.float16).dtype == np.float16
    with pytest.raises(ValueError, match="got nse=20, expected to be between 0 and 16"):
        sparse.random_bcoo(key, (4, 4), nse=20)
    with pytest.raises(ValueError, match="Invalid n_batch=2, n_dense=1"):
        sparse.random_bcoo(key, (4, 4), n_batch=2, n_dense=1)
