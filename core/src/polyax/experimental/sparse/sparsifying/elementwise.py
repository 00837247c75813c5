"""Rules of elementwise primitives: those that keep zeros, sums, products, quotients."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyax import numpy as jnp
from polyax.experimental.sparse.arithmetic import bcoo_multiply_dense, bcoo_multiply_sparse
from polyax.experimental.sparse.bcoo import BCOO
from polyax.experimental.sparse.sparsifying.table import is_sparse, same_places, sparse_rule, with_data
from polyax.extend.core import primitives as p
from polyax.ir.primitive import Primitive
from polyax.lax import lenient as lax
from polyax.lax.special.bessel import bessel_i1e_p

_LINEAR = (p.conj_p, p.copy_p, p.imag_p, p.neg_p, p.real_p)
_KEEPING_ZEROS = (
    *(p.abs_p, p.asin_p, p.asinh_p, p.atan_p, p.atanh_p, bessel_i1e_p, p.expm1_p, p.log1p_p),
    *(p.sign_p, p.sin_p, p.sinh_p, p.sqrt_p, p.square_p, p.tan_p, p.tanh_p, p.convert_element_type_p),
)


def _of_data(primitive: Primitive, linear: bool) -> Any:
    """Elements with equal indices are added up before what isn't linear."""

    def rule(x: Any, **params: Any) -> list[Any]:
        if not linear and not x.unique_indices:
            x = x.sum_duplicates(nse=x.nse, remove_zeros=False)
        return [with_data(x, primitive.bind1(x.data, **params))]

    return rule


for _p in _LINEAR:
    sparse_rule(_p, bcsr=True)(_of_data(_p, linear=True))
for _p in _KEEPING_ZEROS:
    sparse_rule(_p, bcsr=True)(_of_data(_p, linear=False))


@sparse_rule(p.integer_pow_p, bcsr=True)
def _integer_pow(x: Any, *, y: int) -> list[Any]:
    if y <= 0:
        raise NotImplementedError(
            f"sparse rule for {p.integer_pow_p} with non-positive exponent {y} is not implemented because it would "
            "result in dense output. If this is your intent, use sparse.todense() to convert your argument to a dense "
            "array."
        )
    return _of_data(p.integer_pow_p, linear=False)(x, y=y)


@sparse_rule(p.add_p)
def _add(x: Any, y: Any) -> list[Any]:
    if is_sparse(x) and is_sparse(y):
        return [_sum(x, y)]
    x, y = (x, y) if is_sparse(x) else (y, x)
    if jnp.shape(y) != np.broadcast_shapes(x.shape, jnp.shape(y)):
        raise NotImplementedError(
            "Addition between a sparse array X and a dense array Y is not implemented when the output shape is larger "
            "than Y.shape. This is to prevent silent densification of a large sparse array. If this is your intent, "
            "you can explicitly cast the sparse array to a dense matrix."
        )
    return [x.todense() + y]


def _sum(x: BCOO, y: BCOO) -> BCOO:
    if x.shape != y.shape:
        raise NotImplementedError("Addition between sparse matrices of different shapes.")
    if same_places(x, y):
        return with_data(x, x.data + y.data)
    if (x.n_batch, x.n_dense) != (y.n_batch, y.n_dense):
        raise NotImplementedError("Addition between sparse matrices with different batch/dense dimensions.")
    bufs = [lax.concatenate(_alike(pair, x.n_batch), x.n_batch) for pair in zip(x._bufs, y._bufs, strict=True)]
    return BCOO(bufs, shape=x.shape)


def _alike(pair: Any, n_batch: int) -> list[Any]:
    """Two arrays with the same batch sizes."""
    sizes = np.broadcast_shapes(*(x.shape[:n_batch] for x in pair))
    return [jnp.broadcast_to(x, (*sizes, *x.shape[n_batch:])) for x in pair]


@sparse_rule(p.sub_p)
def _sub(x: Any, y: Any) -> list[Any]:
    if not (is_sparse(x) and is_sparse(y)):
        raise NotImplementedError("Subtraction between sparse and dense array.")
    return [_sum(x, with_data(y, -y.data))]


@sparse_rule(p.mul_p)
def _mul(x: Any, y: Any, **_: Any) -> list[Any]:
    if is_sparse(x) and is_sparse(y):
        if same_places(x, y) and x.unique_indices:
            return [with_data(x, x.data * y.data)]
        return [bcoo_multiply_sparse(x, y)]
    x, y = (x, y) if is_sparse(x) else (y, x)
    return [with_data(x, bcoo_multiply_dense(x, y))]


@sparse_rule(p.div_p)
def _div(x: Any, y: Any) -> list[Any]:
    if is_sparse(y):
        raise NotImplementedError(
            "Division by a sparse array is not implemented because it would result in dense output. If this is your "
            "intent, use sparse.todense() to convert your arguments to a dense array."
        )
    return [with_data(x, bcoo_multiply_dense(x, 1.0 / jnp.asarray(y)))]
