"""Sums, slices, gathers, shapes and elementwise products of ``BCOO``, against dense arrays."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from core.experimental.sparse.layouts import LAYOUTS, SHAPE, close, full, some

import polyax
from polyax import lax
from polyax import numpy as jnp
from polyax.experimental import sparse
from polyax.experimental.sparse import BCOO
from polyax.test_util import check_grads

X = some(*SHAPE)
each_layout = pytest.mark.parametrize(("n_batch", "n_dense"), LAYOUTS)


def stored(x: Any, n_batch: int, n_dense: int) -> BCOO:
    """With one element that points nowhere, and isn't 0."""
    mat = BCOO.fromdense(x, n_batch=n_batch, n_dense=n_dense)
    mat = mat.sum_duplicates(nse=mat.nse + 1, remove_zeros=False)
    outside = (np.asarray(mat.indices) >= np.array(x.shape[n_batch : x.ndim - n_dense])).any(-1)
    data = jnp.where(outside.reshape(*outside.shape, *(1,) * n_dense), 7.0 if mat.n_sparse else 0.0, mat.data)
    return BCOO((data, mat.indices), shape=mat.shape)


@each_layout
def test_sums(n_batch: int, n_dense: int) -> None:
    mat = stored(X, n_batch, n_dense)
    for count in range(4):
        for axes in itertools.combinations(range(3), count):
            close(sparse.bcoo_reduce_sum(mat, axes=axes).todense(), X.sum(axes))


@each_layout
def test_reversing_and_slicing(n_batch: int, n_dense: int) -> None:
    mat = stored(X, n_batch, n_dense)
    for dims in ((0,), (1, 2), (0, 1, 2)):
        close(sparse.bcoo_rev(mat, dims).todense(), np.flip(X, dims))
    for starts, limits, strides in [((1, 0, 1), (2, 2, 4), None), ((0, 1, 0), (2, 3, 4), (1, 2, 3))]:
        found = sparse.bcoo_slice(mat, start_indices=starts, limit_indices=limits, strides=strides)
        steps = strides or (1, 1, 1)
        parts = tuple(slice(*s) for s in zip(starts, limits, steps, strict=True))
        close(found.todense(), X[parts])
    sizes = (1, 2, 3)
    cut = polyax.jit(lambda m, i: sparse.bcoo_dynamic_slice(m, i, sizes))
    for start in ((0, 1, 1), (5, 5, 5), (-1, -1, -1)):
        close(cut(mat, start).todense(), lax.dynamic_slice(jnp.asarray(X), start, sizes))


@each_layout
def test_concatenation_and_shapes(n_batch: int, n_dense: int) -> None:
    mat = stored(X, n_batch, n_dense)
    for d in range(3 - n_dense):
        close(sparse.bcoo_concatenate([mat, mat, mat], dimension=d).todense(), np.concatenate([X] * 3, d))
    if n_dense:
        with pytest.raises(NotImplementedError, match="Concatenation along dense dimensions"):
            sparse.bcoo_concatenate([mat, mat], dimension=2)
    new = (*((6,) if n_batch in (0, 2) and not n_dense > 1 else (2, 3)), 2, 2)
    if n_dense != 2 or n_batch == 1:
        close(sparse.bcoo_reshape(mat, new_sizes=new).todense(), X.reshape(new))
    thin = X[:1, :, :1]
    close(sparse.bcoo_squeeze(stored(thin, n_batch, n_dense), dimensions=(0, -1)).todense(), thin[0, :, 0])


def test_broadcasting() -> None:
    for n_batch, n_dense, shape, dims in [
        (0, 0, (6, 2, 3, 4), (1, 2, 3)),
        (1, 0, (2, 5, 3, 4), (0, 2, 3)),
        (0, 1, (2, 3, 1, 4), (0, 1, 3)),
        (0, 0, (2, 1, 3, 4), (0, 2, 3)),
    ]:
        mat = stored(X, n_batch, n_dense)
        found = sparse.bcoo_broadcast_in_dim(mat, shape=shape, broadcast_dimensions=dims)
        close(found.todense(), lax.broadcast_in_dim(X, shape, dims))
    with pytest.raises(NotImplementedError, match="Adding sparse dimensions with lengths != 1"):
        sparse.bcoo_broadcast_in_dim(stored(X, 0, 0), shape=(2, 3, 4, 5), broadcast_dimensions=(0, 1, 2))
    with pytest.raises(ValueError, match="Cannot mix batch and sparse dimensions"):
        sparse.bcoo_broadcast_in_dim(stored(X, 1, 0), shape=(3, 2, 4), broadcast_dimensions=(1, 0, 2))


def test_transposition() -> None:
    for n_batch, n_dense, order in [(0, 0, (2, 0, 1)), (2, 0, (1, 0, 2)), (0, 2, (0, 2, 1)), (1, 0, (0, 2, 1))]:
        mat = sparse.bcoo_transpose(stored(X, n_batch, n_dense), permutation=order)
        close(mat.todense(), X.transpose(order))
    with pytest.raises(NotImplementedError, match="cannot permute batch axes with non-batch axes"):
        stored(X, 1, 0).transpose((1, 0, 2))
    with pytest.raises(NotImplementedError, match="cannot permute dense axes with non-dense axes"):
        stored(X, 0, 1).transpose((2, 0, 1))
    with pytest.raises(TypeError, match="isn't a permutation of operand dimensions"):
        stored(X, 0, 0).transpose((0, 0, 1))


@each_layout
def test_elementwise_products(n_batch: int, n_dense: int) -> None:
    mat = stored(X, n_batch, n_dense)
    for v in (full(*SHAPE), full(4), full(3, 1), full(2, 1, 4), full()):
        found = BCOO((sparse.bcoo_multiply_dense(mat, v), mat.indices), shape=mat.shape)
        close(found.todense(), X * v)
    other = some(*SHAPE, seed=3)
    for k in range(4 - n_dense):
        both = stored(other, k, n_dense)
        wide = [m.update_layout(n_batch=min(n_batch, k)) for m in (mat, both)]
        close(sparse.bcoo_multiply_sparse(*wide).todense(), X * other)


def test_elementwise_products_broadcast_and_refuse() -> None:
    mat, row = stored(X, 0, 0), stored(X[:1, :, :1], 0, 0)
    close(sparse.bcoo_multiply_sparse(mat, row).todense(), X * X[:1, :, :1])
    with pytest.raises(NotImplementedError, match="output shape matches the sparse matrix shape"):
        sparse.bcoo_multiply_dense(row, full(*SHAPE))
    with pytest.raises(TypeError, match="arrays must have same number of dimensions"):
        sparse.bcoo_multiply_sparse(mat, BCOO.fromdense(X[0]))


def test_gathers() -> None:
    mat = BCOO.fromdense(X[0])
    dims = lax.GatherDimensionNumbers(offset_dims=(0,), collapsed_slice_dims=(1,), start_index_map=(1,))
    at = np.array([[2], [0], [3]])
    found = sparse.bcoo_gather(mat, at, dims, (3, 1))
    close(found.todense(), X[0][:, [2, 0, 3]])
    close(mat[np.array([[1, 0], [2, 2]])].todense(), X[0][[[1, 0], [2, 2]]])
    with pytest.raises(NotImplementedError, match="not yet supported"):
        sparse.bcoo_gather(mat, at, dims, (3, 1), mode="fill")


def test_convolution() -> None:
    x, w = some(9), full(3)
    for padding in ([(0, 0)], [(2, 1)], "SAME"):
        dense = lax.conv_general_dilated(x[None, None], w[None, None], (1,), padding)
        for lhs, rhs in (
            (BCOO.fromdense(x[None, None]), w[None, None]),
            (x[None, None], BCOO.fromdense(w[None, None])),
        ):
            found = sparse.bcoo_conv_general_dilated(lhs, rhs, window_strides=(1,), padding=padding)
            close(found.todense(), dense)
    with pytest.raises(NotImplementedError, match="non-unit window_strides"):
        sparse.bcoo_conv_general_dilated(x[None, None], w[None, None], window_strides=(2,), padding=[(0, 0)])


def test_slices_are_checked() -> None:
    mat = BCOO.fromdense(X)
    with pytest.raises(ValueError, match="bcoo_slice: invalid indices"):
        sparse.bcoo_slice(mat, start_indices=(0, 0, 0), limit_indices=(2, 3, 5))
    with pytest.raises(TypeError, match="input should be BCOO array"):
        sparse.bcoo_slice(X, start_indices=(0, 0, 0), limit_indices=(2, 3, 4))
    with pytest.raises(ValueError, match="cannot mix batch and sparse dimensions"):
        sparse.bcoo_reshape(BCOO.fromdense(X, n_batch=1), new_sizes=(3, 8))
    with pytest.raises(ValueError, match="size not equal to one"):
        sparse.bcoo_squeeze(mat, dimensions=(0,))


def test_gradients_flow_to_what_is_stored() -> None:
    mat = BCOO.fromdense(X)
    for fun in (
        lambda m: sparse.bcoo_reduce_sum(m, axes=(1,)).todense(),
        lambda m: sparse.bcoo_reshape(m, new_sizes=(6, 4)).todense(),
        lambda m: sparse.bcoo_slice(m, start_indices=(0, 1, 1), limit_indices=(2, 3, 3)).todense(),
        lambda m: m.sum_duplicates(nse=m.nse, remove_zeros=False).sort_indices().todense(),
        lambda m: sparse.bcoo_concatenate([m, m], dimension=1).todense(),
        lambda m: (m[0] * 2 + m[1]).todense(),
    ):
        loss = lambda data, fun=fun: (fun(BCOO((data, mat.indices), shape=SHAPE)) ** 2).sum()
        check_grads(loss, (mat.data,), 1, atol=1e-2, rtol=1e-2)
