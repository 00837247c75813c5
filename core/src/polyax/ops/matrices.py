"""What the rules of linear algebra share: products, transposes and triangles of the last two dimensions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.dtypes import full_name
from polyax.ir.primitive import Primitive
from polyax.meshes.factors import Factors, leading
from polyax.ops.basis import broadcast_in_dim, broadcasted_iota, eq, full_like, reduce_sum, select_n, sub, transpose
from polyax.ops.compare import ge, le
from polyax.ops.contract import batch_matmul
from polyax.ops.convert import conj
from polyax.ops.define import materialize
from polyax.ops.precision import Precision


def matmul(x: Any, y: Any) -> Any:
    """The matrix product, as accurate as the dtype allows."""
    return batch_matmul(x, y, Precision.HIGHEST)


def transposed(x: Any) -> Any:
    ndim = np.ndim(x)
    return transpose(x, (*range(ndim - 2), ndim - 1, ndim - 2))


def conjugate(x: Any) -> Any:
    """The complex conjugate; real matrices stay real."""
    return conj(x) if dtypes.is_complex(aval_of(x).dtype) else x


def adjoint(x: Any) -> Any:
    """The conjugate transpose."""
    return transposed(conjugate(x))


def _indices(x: Any) -> tuple[Any, Any]:
    shape, ndim = np.shape(x), np.ndim(x)
    return broadcasted_iota(np.int32, shape, ndim - 2), broadcasted_iota(np.int32, shape, ndim - 1)


def lower(x: Any, k: int = 0) -> Any:
    """``x`` with zeros above diagonal ``k``."""
    rows, columns = _indices(x)
    return select_n(ge(rows, sub(columns, k)), full_like(x, 0), x)


def upper(x: Any, k: int = 0) -> Any:
    """``x`` with zeros below diagonal ``k``."""
    rows, columns = _indices(x)
    return select_n(le(rows, sub(columns, k)), full_like(x, 0), x)


def on_diagonal(x: Any) -> Any:
    """Whether each element of ``x`` is on the diagonal of its matrix."""
    return eq(*_indices(x))


def diagonal(x: Any) -> Any:
    """The diagonals of square matrices."""
    return reduce_sum(select_n(on_diagonal(x), full_like(x, 0), x), (np.ndim(x) - 1,))


def rows_of(v: Any, like: Any) -> Any:
    """Matrices of the shape of ``like`` whose rows are all ``v``."""
    ndim = np.ndim(like)
    return broadcast_in_dim(v, np.shape(like), (*range(ndim - 2), ndim - 1))


def columns_of(v: Any, like: Any) -> Any:
    """Matrices of the shape of ``like`` whose columns are all ``v``."""
    return broadcast_in_dim(v, np.shape(like), range(np.ndim(like) - 1))


def check_matrix(name: str, x: ShapedArray, square: bool = False, what: str = "") -> None:
    """Raises unless ``x`` holds inexact matrices, square ones if so asked."""
    if not dtypes.is_inexact(x.dtype):
        raise TypeError(
            f"{name} does not accept dtype {full_name(x.dtype)}. "
            "Accepted dtypes are subtypes of floating, complexfloating."
        )
    if x.ndim < 2:
        raise TypeError(f"Input 0 to {name} must have rank at least 2, but got shape={x.shape}")
    if square and x.shape[-1] != x.shape[-2]:
        raise ValueError(f"{what or f'The input to {name} must be a square matrix. Got'} shape {x.shape}")


def leading_factors(p: Primitive) -> Callable[..., Factors]:
    """The rule ``factors`` of primitives that act on matrices and take any number of dimensions before them."""

    def rule(*avals: ShapedArray, **params: Any) -> Factors:
        return leading(avals[0].ndim - 2, avals, p.rule("abstract_eval")(*avals, **params))

    return rule


def leading_batch(p: Primitive) -> Callable[..., Any]:
    """The batch rule of primitives that act on the last dimensions and take any number of others before them."""

    def batch(axis: Any, args: Any, dims: Any, **params: Any) -> Any:
        outs = p.bind_all(*materialize(axis, args, dims), **params)
        return outs, [0] * len(outs)

    return batch
