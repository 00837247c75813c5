"""Determinants of (stacks of) matrices, and their derivatives by the adjugate or the inverse from the same factors."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyax.control.calls.custom_jvp import custom_jvp
from polyax.ir import dtypes
from polyax.lax import lenient as lax
from polyax.lax import linalg as _primitives
from polyax.numpy import diagonals as _diagonals
from polyax.numpy import reductions, shapes, ufuncs
from polyax.numpy.broadcast import choose
from polyax.numpy.decompositions import square_matrix
from polyax.numpy.linalg_results import SlogdetResult
from polyax.numpy.promotion import convert

__all__ = ["det", "slogdet"]


def det(a: Any) -> Any:
    """The determinant of square matrices.

    >>> import polyax.numpy as jnp
    >>> jnp.linalg.det(jnp.array([[2.0, 1.0], [0.0, 4.0]])).item()
    8.0
    """
    a = square_matrix("det", a)
    by_size = {1: _det1, 2: _det2, 3: _det3}
    return by_size.get(a.shape[-1], _det)(a)


def _det1(a: Any) -> Any:
    return a[..., 0, 0]


def _det2(a: Any) -> Any:
    return a[..., 0, 0] * a[..., 1, 1] - a[..., 0, 1] * a[..., 1, 0]


def _det3(a: Any) -> Any:
    """The rule of Sarrus: what is an integer stays one, and singular matrices have derivatives of all orders."""
    x = [[a[..., i, j] for j in range(3)] for i in range(3)]
    along = [x[0][j] * x[1][(j + 1) % 3] * x[2][(j + 2) % 3] for j in range(3)]
    across = [x[0][j] * x[1][(j + 2) % 3] * x[2][(j + 1) % 3] for j in (2, 0, 1)]
    return along[0] + along[1] + along[2] - across[0] - across[1] - across[2]


@custom_jvp
def _det(a: Any) -> Any:
    factors, pivots, _ = _primitives.lu(a)
    return _product(_diagonal(factors), pivots)


@_det.defjvp
def _det_jvp(primals: Any, tangents: Any) -> Any:
    """Jacobi: d det(a) = tr(adj(a) da)."""
    (a,), (t,) = primals, tangents
    factors, pivots, permutation = _primitives.lu(a)
    adjugate = _adjugate(factors, pivots, permutation)
    return _product(_diagonal(factors), pivots), _trace_of_product(adjugate, t)


def _adjugate(factors: Any, pivots: Any, permutation: Any) -> Any:
    """det(a) a^-1; where one diagonal element of U is 0, the limit of that.

    With W for U with 1 in the place k of the element u, and e for the unit vector k,
    u U^-1 = u W^-1 + (1 - u) W^-1 e e' W^-1, of which the last product is left where u is 0. Where several elements are
    0, it is taken as 0.
    """
    diagonal = _diagonal(factors)
    is_zero = lax.eq(diagonal, 0)
    regular = choose(_as_diagonal(is_zero), 1.0, factors)
    inverse, units = _inverse(regular, permutation), lax.expand_dims(convert(is_zero, factors.dtype), (is_zero.ndim,))
    column = _primitives.triangular_solve(regular, units, left_side=True)
    row = reductions.sum(lax.mul(units, inverse), -2, keepdims=True)
    count = reductions.sum(convert(is_zero, np.dtype("int32")), -1)[..., None, None]
    limit = choose(lax.eq(count, 1), ufuncs.multiply(column, row), 0.0)
    product = _product(choose(is_zero, 1.0, diagonal), pivots)[..., None, None]
    return ufuncs.multiply(product, choose(lax.eq(count, 0), inverse, limit))


def _inverse(factors: Any, permutation: Any) -> Any:
    """Of the matrix that they are factors of."""
    shape, last = factors.shape, permutation.ndim
    rows = lax.broadcast_in_dim(permutation, shape, range(last))
    permuted = convert(lax.eq(rows, lax.broadcasted_iota(permutation.dtype, shape, last)), factors.dtype)
    half = _primitives.triangular_solve(factors, permuted, left_side=True, lower=True, unit_diagonal=True)
    return _primitives.triangular_solve(factors, half, left_side=True)


def _trace_of_product(a: Any, b: Any) -> Any:
    return reductions.sum(lax.mul(shapes.matrix_transpose(a), b), (-2, -1))


def _diagonal(factors: Any) -> Any:
    return _diagonals.diagonal(factors, 0, -2, -1)


def _as_diagonal(v: Any) -> Any:
    """Matrices with these on the diagonal, and False elsewhere."""
    shape = (*v.shape, v.shape[-1])
    rows, columns = (lax.broadcasted_iota(np.dtype("int32"), shape, n) for n in (v.ndim - 1, v.ndim))
    return lax.bitwise_and(lax.broadcast_in_dim(v, shape, range(v.ndim)), lax.eq(rows, columns))


def _product(diagonal: Any, pivots: Any) -> Any:
    return lax.mul(_parity(pivots, diagonal.dtype), reductions.prod(diagonal, -1))


def _parity(pivots: Any, dtype: Any) -> Any:
    """-1 to the number of exchanged rows."""
    moved = lax.ne(pivots, lax.broadcasted_iota(pivots.dtype, pivots.shape, pivots.ndim - 1))
    count = lax.reduce_sum(convert(moved, np.dtype("int32")), (pivots.ndim - 1,))
    return convert(lax.sub(1, lax.mul(2, lax.rem(count, 2))), dtype)


# --- sign and logarithm ----------------------------------------------------------------------------------------------


def slogdet(a: Any, *, method: str | None = None) -> SlogdetResult:
    """Sign (or complex phase) and logarithm of the absolute value of the determinant."""
    if method not in (None, "lu", "qr"):
        raise ValueError(f"Unknown slogdet method '{method}'. Supported methods are 'lu' (`None`), and 'qr'.")
    a = square_matrix("slogdet", a)
    return SlogdetResult(*(_by_qr(a) if method == "qr" else _by_lu(a)))


@custom_jvp
def _by_lu(a: Any) -> tuple[Any, Any]:
    factors, pivots, _ = _primitives.lu(a)
    return _sign_and_log(factors, pivots)


@_by_lu.defjvp
def _by_lu_jvp(primals: Any, tangents: Any) -> Any:
    """d log det(a) = tr(a^-1 da), whose imaginary part turns the phase."""
    (a,), (t,) = primals, tangents
    factors, pivots, permutation = _primitives.lu(a)
    sign, log = _sign_and_log(factors, pivots)
    change = _trace_of_product(_inverse(factors, permutation), t)
    if change.dtype not in dtypes.COMPLEX:
        return (sign, log), (lax.full_like(sign, 0), change)
    turn = lax.complex(lax.full_like(log, 0), lax.imag(change))
    return (sign, log), (lax.mul(turn, sign), lax.real(change))


def _sign_and_log(factors: Any, pivots: Any) -> tuple[Any, Any]:
    diagonal = _diagonal(factors)
    return _product(ufuncs.sign(diagonal), pivots), reductions.sum(lax.log(lax.abs(diagonal)), -1)


def _by_qr(a: Any) -> tuple[Any, Any]:
    """Of ``a = Q R``: all of the size and the signs of the diagonal are in ``R``, the rest of the sign in ``Q``."""
    q, r = _primitives.qr(a, full_matrices=False)
    diagonal = _diagonal(r)
    sign = lax.mul(_by_lu(q)[0], reductions.prod(ufuncs.sign(diagonal), -1))
    return sign, reductions.sum(lax.log(lax.abs(diagonal)), -1)
