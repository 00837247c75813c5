"""Products of sparse arrays, against those of dense ones; and their derivatives."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from core.experimental.sparse.layouts import LAYOUTS, close, full, some

import polyax
from polyax import lax
from polyax import numpy as jnp
from polyax.experimental import sparse
from polyax.experimental.sparse import BCOO, BCSR

X = some(2, 3, 4)
DIMS = {
    "matmul": ((((2,), (0,)), ((), ())), (4, 3)),
    "two dimensions": ((((1, 2), (1, 0)), ((), ())), (4, 3)),
    "batched": ((((2,), (1,)), ((0,), (0,))), (2, 4)),
    "over the first": ((((0,), (1,)), ((), ())), (3, 2)),
    "first and last": ((((0, 2), (1, 0)), ((), ())), (4, 2)),
    "outer": ((((), ()), ((), ())), (3,)),
    "batched in another order": ((((2, 0), (2, 1)), ((1,), (0,))), (3, 2, 4)),
}


@pytest.mark.parametrize(("n_batch", "n_dense"), LAYOUTS)
def test_sparse_with_dense_both_ways(n_batch: int, n_dense: int) -> None:
    mat = BCOO.fromdense(X, n_batch=n_batch, n_dense=n_dense)
    done = 0
    for dims, shape in DIMS.values():
        (left, right), (lhs_batch, rhs_batch) = dims
        if any(d >= 3 - n_dense for d in left) or any(d >= n_batch for d in lhs_batch):
            with pytest.raises(NotImplementedError, match="bcoo_dot_general"):
                sparse.bcoo_dot_general(mat, full(*shape), dimension_numbers=dims)
            continue
        y = full(*shape)
        close(sparse.bcoo_dot_general(mat, y, dimension_numbers=dims), lax.dot_general(X, y, dims))
        back = ((right, left), (rhs_batch, lhs_batch))
        close(sparse.bcoo_dot_general(y, mat, dimension_numbers=back), lax.dot_general(y, X, back))
        done += 1
    assert done


@pytest.mark.parametrize(("n_batch", "n_dense"), [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1)])
@pytest.mark.parametrize("case", ["over the first", "outer", "first and last"])
def test_derivatives_of_products(case: str, n_batch: int, n_dense: int) -> None:
    dims, shape = DIMS[case]
    if case == "first and last" and n_dense:
        return
    mat, y = BCOO.fromdense(X, n_batch=n_batch, n_dense=n_dense), full(*shape)

    def sparse_loss(mat: Any, y: Any) -> Any:
        return (sparse.bcoo_dot_general(mat, y, dimension_numbers=dims) ** 2).sum()

    def dense_loss(x: Any, y: Any) -> Any:
        return (lax.dot_general(x, y, dims) ** 2).sum()

    found = polyax.jit(sparse.grad(sparse_loss, argnums=(0, 1)))(mat, y)
    wanted = polyax.grad(dense_loss, argnums=(0, 1))(jnp.asarray(X), y)
    close(found[0].data, sparse.bcoo_extract(mat, wanted[0]).data, 1e-4)
    close(found[1], wanted[1], 1e-4)


@pytest.mark.parametrize(
    ("dims", "a", "b"),
    [
        ((((1,), (0,)), ((), ())), (3, 4), (4, 5)),
        ((((1,), (1,)), ((0,), (0,))), (3, 4), (3, 4, 5)),
        ((((), ()), ((), ())), (3, 4), (5,)),
        ((((2,), (2,)), ((0,), (1,))), (2, 3, 4), (5, 2, 4)),
    ],
)
def test_products_at_some_places(dims: Any, a: tuple[int, ...], b: tuple[int, ...]) -> None:
    x, y = full(*a), full(*b, seed=2)
    whole = lax.dot_general(x, y, dims)
    for n_batch in range(whole.ndim + 1):
        for n_dense in range(min(2, whole.ndim + 1 - n_batch)):
            mat = BCOO.fromdense(some(*whole.shape), n_batch=n_batch, n_dense=n_dense)
            found = sparse.bcoo_dot_general_sampled(x, y, mat.indices, dimension_numbers=dims)
            close(found, sparse.bcoo_extract(mat, whole).data)


@pytest.mark.parametrize(
    ("dims", "a", "b", "batches"),
    [
        ((((1,), (0,)), ((), ())), (3, 4), (4, 5), (0, 0)),
        ((((0, 1), (1, 0)), ((), ())), (3, 4), (4, 3), (0, 0)),
        ((((1,), (1,)), ((0,), (0,))), (3, 4), (3, 4, 5), (1, 1)),
        ((((2,), (2,)), ((0,), (0,))), (2, 3, 4), (2, 5, 4), (2, 1)),
        ((((2,), (2,)), ((0,), (1,))), (2, 3, 4), (5, 2, 4), (2, 2)),
    ],
)
def test_sparse_with_sparse(dims: Any, a: tuple[int, ...], b: tuple[int, ...], batches: tuple[int, int]) -> None:
    x, y = some(*a), some(*b, seed=1)
    lhs, rhs = BCOO.fromdense(x, n_batch=batches[0]), BCOO.fromdense(y, n_batch=batches[1])
    found = sparse.bcoo_dot_general(lhs, rhs, dimension_numbers=dims)
    assert isinstance(found, BCOO)
    close(found.todense(), lax.dot_general(x, y, dims))

    def loss(lhs: BCOO) -> Any:
        return (sparse.bcoo_dot_general(lhs, rhs, dimension_numbers=dims).todense() ** 2).sum()

    wanted = polyax.grad(lambda x: (lax.dot_general(x, y, dims) ** 2).sum())(jnp.asarray(x))
    close(sparse.grad(loss)(lhs).data, sparse.bcoo_extract(lhs, wanted).data, 1e-4)


def test_sparse_with_sparse_refuses_what_it_cannot_do() -> None:
    dims = (((2,), (0,)), ((), ()))
    for layout, match in (({"n_dense": 1}, "with dense dimensions"), ({"n_batch": 3}, "contraction of sparse")):
        with pytest.raises(NotImplementedError, match=match):
            product = partial(sparse.bcoo_dot_general, dimension_numbers=dims)
            product(BCOO.fromdense(X, **layout), BCOO.fromdense(some(4, 5)))
    with pytest.raises(ValueError, match="unused batch dims on rhs with unused sparse dims on lhs"):
        both = (((1,), (1,)), ((), ()))
        sparse.bcoo_dot_general(
            BCOO.fromdense(some(3, 4)), BCOO.fromdense(some(5, 4), n_batch=1), dimension_numbers=both
        )


def test_a_program_shows_the_product_and_vmap_maps_it() -> None:
    mat, y = BCOO.fromdense(X[0]), full(4)
    assert "bcoo_dot_general[" in str(polyax.make_jaxpr(lambda m, v: m @ v)(mat, y))
    ys = full(5, 4)
    close(polyax.vmap(lambda v: mat @ v)(ys), ys @ X[0].T)
    datas = np.stack([mat.data, 2 * mat.data])
    found = polyax.jit(polyax.vmap(lambda d: BCOO((d, mat.indices), shape=mat.shape) @ y))(datas)
    close(found, np.stack([X[0] @ y, 2 * X[0] @ y]))
    turned = polyax.linear_transpose(lambda d: BCOO((d, mat.indices), shape=mat.shape).todense(), mat.data)(X[0])[0]
    close(turned, mat.data)


def test_products_in_a_scan() -> None:
    mat = BCOO.fromdense(some(4, 4, share=0.5))
    last, _ = lax.scan(lambda v, _: (mat @ v, None), full(4), None, length=3)
    close(last, np.linalg.matrix_power(np.asarray(mat.todense()), 3) @ full(4), 1e-4)


def test_compressed_rows() -> None:
    x, y = X[0], full(4, 2)
    mat = BCSR.fromdense(x)
    close(mat @ y, x @ y)
    close(mat @ y[:, 0], x @ y[:, 0])
    batched = BCSR.fromdense(X, n_batch=1)
    close(sparse.bcsr_dot_general(batched, y, dimension_numbers=(((2,), (0,)), ((), ()))), X @ y)
    wanted = polyax.grad(lambda x: ((x @ y) ** 2).sum())(jnp.asarray(x))
    close(sparse.grad(lambda m: ((m @ y) ** 2).sum())(mat).data, sparse.bcsr_extract(mat.indices, mat.indptr, wanted))
    with pytest.raises(NotImplementedError, match="currently implemented for BCSR lhs and ndarray rhs"):
        sparse.bcsr_dot_general(mat, mat, dimension_numbers=(((1,), (0,)), ((), ())))
