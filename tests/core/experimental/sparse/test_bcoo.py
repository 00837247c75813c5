"""``BCOO``: storing, printing, ordering, other layouts, and what is refused."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from core.experimental.sparse.layouts import LAYOUTS, SHAPE, close, some

import polyax
from polyax import numpy as jnp
from polyax.experimental import sparse
from polyax.experimental.sparse import BCOO
from polyax.tree_util import tree_leaves, tree_map

X = some(*SHAPE)


def stored(n_batch: int, n_dense: int, more: int = 2) -> BCOO:
    """The array with elements that point nowhere behind those that it needs."""
    return BCOO.fromdense(X, n_batch=n_batch, n_dense=n_dense).sum_duplicates(
        nse=BCOO.fromdense(X, n_batch=n_batch, n_dense=n_dense).nse + more
    )


@pytest.mark.parametrize(("n_batch", "n_dense"), LAYOUTS)
def test_storing_and_ordering_keep_the_array(n_batch: int, n_dense: int) -> None:
    mat = stored(n_batch, n_dense)
    assert (mat.n_batch, mat.n_sparse, mat.n_dense) == (n_batch, 3 - n_batch - n_dense, n_dense)
    for same in (mat, mat.sort_indices(), mat.sum_duplicates(), mat.sum_duplicates(nse=mat.nse, remove_zeros=False)):
        np.testing.assert_array_equal(same.todense(), X)
    assert mat.sum_duplicates().nse == BCOO.fromdense(X, n_batch=n_batch, n_dense=n_dense).nse


@pytest.mark.parametrize(("n_batch", "n_dense"), LAYOUTS)
def test_other_layouts_keep_the_array(n_batch: int, n_dense: int) -> None:
    mat = stored(n_batch, n_dense)
    for to_batch, to_dense in [(0, 0), (1, 1), (0, 2)]:
        other = mat.update_layout(n_batch=to_batch, n_dense=to_dense, on_inefficient=None)
        assert (other.n_batch, other.n_dense) == (to_batch, to_dense)
        np.testing.assert_array_equal(other.todense(), X)


def test_printing() -> None:
    assert repr(stored(0, 0, 0)) == f"BCOO(float32[2, 3, 4], nse={np.count_nonzero(X)})"
    assert repr(stored(1, 1, 0)).endswith(", n_batch=1, n_dense=1)")
    shown = []
    polyax.jit(lambda m: shown.append(repr(m)) or m.data)(stored(0, 0, 0))
    assert shown[0].startswith("DynamicJaxprTracer[BCOO(float32[2, 3, 4], nse=")
    assert repr(tree_map(lambda _: None, stored(0, 0))) == "BCOO(<invalid>)"


def test_duplicates_are_added_and_what_is_outside_is_not() -> None:
    indices = np.array([[0, 1], [2, 2], [0, 1], [1, 1], [2, 0]], np.int32)
    mat = BCOO((np.arange(1.0, 6.0, dtype=np.float32), indices), shape=(2, 3))
    np.testing.assert_array_equal(mat.todense(), [[0, 4, 0], [0, 4, 0]])
    once = mat.sum_duplicates()
    assert once.nse == 2 and once.unique_indices and once.indices_sorted
    np.testing.assert_array_equal(once.indices, [[0, 1], [1, 1]])
    np.testing.assert_array_equal(once.data, [4, 4])
    padded = polyax.jit(lambda m: m.sum_duplicates(nse=4))(mat)
    np.testing.assert_array_equal(padded.indices, [[0, 1], [1, 1], [2, 3], [2, 3]])
    np.testing.assert_array_equal(mat.sum_duplicates(nse=1).todense(), [[0, 4, 0], [0, 0, 0]])
    np.testing.assert_array_equal(mat.sort_indices().indices, [[0, 1], [0, 1], [1, 1], [2, 0], [2, 2]])


def test_explicit_zeros_go_if_asked_to() -> None:
    mat = BCOO((np.array([0.0, 2.0], np.float32), np.array([[0], [1]], np.int32)), shape=(3,))
    assert (mat.sum_duplicates().nse, mat.sum_duplicates(remove_zeros=False).nse) == (1, 2)


def test_extract_reads_duplicates_once() -> None:
    mat = BCOO((np.ones(3, np.float32), np.array([[1], [0], [1]], np.int32)), shape=(2,))
    arr = np.array([5.0, 7.0], np.float32)
    assert sparse.bcoo_extract(mat, arr).data.tolist() == [7.0, 5.0, 0.0]
    assert sparse.bcoo_extract(mat, arr, assume_unique=True).data.tolist() == [7.0, 5.0, 7.0]
    with pytest.raises(TypeError, match="First argument to bcoo_extract should be a BCOO array"):
        sparse.bcoo_extract(arr, arr)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="shape mismatch"):
        sparse.bcoo_extract(mat, np.ones(3, np.float32))


def test_it_is_a_pytree() -> None:
    mat = stored(0, 0)
    assert [x.shape for x in tree_leaves(mat)] == [mat.data.shape, mat.indices.shape]
    doubled = polyax.jit(lambda m: tree_map(lambda x: x, m))(mat)
    assert isinstance(doubled, BCOO) and doubled.shape == mat.shape
    assert mat.block_until_ready() is mat and len(mat) == 2 and mat.size == 24


def test_scipy_matrices() -> None:
    scipy_sparse = pytest.importorskip("scipy.sparse")
    for kind in (BCOO, sparse.BCSR):
        mat = kind.from_scipy_sparse(scipy_sparse.csr_matrix(X[0]))
        np.testing.assert_array_equal(mat.todense(), X[0])
        assert mat.indices.dtype == np.int32


def test_vmap_takes_batch_dimensions() -> None:
    mat = stored(2, 0)
    close(polyax.vmap(lambda m: m.todense() * 2)(mat), X * 2)
    close(polyax.vmap(lambda m: m.todense(), in_axes=1, out_axes=1)(mat), X)
    again = polyax.vmap(lambda x: BCOO.fromdense(x, nse=12))(X)
    assert (again.shape, again.n_batch) == (SHAPE, 1)
    close(again.todense(), X)
    inner = polyax.vmap(lambda m, x: (m, m @ x), in_axes=(0, None), out_axes=(0, 0))(stored(1, 0), X[0, 0])
    close(inner[0].todense(), X)
    close(inner[1], X @ X[0, 0])
    with pytest.raises(ValueError, match=r"Cannot map in_axis=0 for BCOO array with n_batch=0"):
        polyax.vmap(lambda m: m.todense())(stored(0, 0))
    with pytest.raises(ValueError, match=r"BCOO: cannot add out_axis=1 for BCOO array with n_batch=0"):
        polyax.vmap(lambda m: m, out_axes=1)(stored(1, 0))


def test_what_does_not_fit_is_refused() -> None:
    data, indices = np.ones(3, np.float32), np.zeros((3, 2), np.int32)
    with pytest.raises(ValueError, match=r"Invalid data.shape=\(3,\) for nse=3, n_batch=0, n_dense=1"):
        BCOO((data, indices), shape=(2, 2, 5))
    with pytest.raises(ValueError, match="data batch dimensions not compatible"):
        BCOO((np.ones((2, 3), np.float32), indices[None]), shape=(5, 2, 2))
    with pytest.raises(ValueError, match="indices batch dimensions not compatible"):
        BCOO((data[None], np.zeros((2, 3, 2), np.int32)), shape=(5, 2, 2))
    with pytest.raises(ValueError, match="nse must be specified"):
        polyax.jit(lambda m: m.sum_duplicates(remove_zeros=False))(stored(0, 0))
    with pytest.raises(polyax.errors.ConcretizationTypeError, match="nse argument of bcoo_fromdense"):
        polyax.jit(BCOO.fromdense)(X)
    with pytest.raises(TypeError, match=r"dot requires ndarray or scalar arguments, got <class .*BCOO'> at position 0"):
        jnp.dot(stored(0, 0), X)


def test_inefficient_layouts_are_refused() -> None:
    mat = stored(0, 0)
    with pytest.raises(sparse.SparseEfficiencyError, match="increasing n_batch from 0 to 1 results in inefficient"):
        mat.update_layout(n_batch=1)
    with pytest.warns(sparse.SparseEfficiencyWarning, match="increasing n_dense from 0 to 1"):
        mat.update_layout(n_dense=1, on_inefficient="warn")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        BCOO.fromdense(X[:1]).update_layout(n_batch=1)
    with pytest.raises(ValueError, match="cannot be larger than mat.ndim=3"):
        mat.update_layout(n_batch=2, n_dense=2)
    with pytest.raises(ValueError, match="n_dense must be non-negative; got -1"):
        mat.update_layout(n_dense=-1)
    with pytest.raises(ValueError, match="on_inefficient='never'"):
        mat.update_layout(n_batch=1, on_inefficient="never")


def test_dimensions_are_not_counted_twice():
    with pytest.raises(ValueError, match="n_batch=2 and n_dense=1 of an array with 2 dimensions"):
        sparse.BCOO.fromdense(np.ones((2, 2)), n_batch=2, n_dense=1)
