"""What solves linear systems: solutions, inverses, pseudoinverses, ranks and least squares."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from polyax.control.calls.custom_jvp import custom_jvp
from polyax.ir import dtypes
from polyax.lax import lenient as lax
from polyax.lax import linalg as _primitives
from polyax.numpy import logic, products, reductions, shapes, ufuncs
from polyax.numpy.broadcast import broadcast_to, choose
from polyax.numpy.decompositions import adjoint, inexact_matrix, largest, square_matrix, svd
from polyax.numpy.fused import fused
from polyax.numpy.promotion import convert, inexact
from polyax.numpy.triangles import eye
from polyax.ops.sort import take_along

__all__ = ["inv", "lstsq", "matrix_rank", "pinv", "solve"]


def solve(a: Any, b: Any) -> Any:
    """``x`` with ``a x = b``; ``b`` is a vector, or a stack of matrices.

    Raises:
      ValueError: the shapes don't fit.

    >>> import polyax.numpy as jnp
    >>> jnp.linalg.solve(jnp.array([[2.0, 0.0], [0.0, 4.0]]), jnp.array([6.0, 8.0])).tolist()
    [3.0, 2.0]
    """
    a, b = inexact("jnp.linalg.solve", a, b)
    if a.ndim < 2:
        raise ValueError(f"left hand array must be at least two dimensional; got {a.shape=}")
    a = square_matrix("solve", a)
    if b.ndim > 1 and a.ndim == b.ndim + 1 and a.shape[-1] == b.shape[-1] != b.shape[-2]:
        raise ValueError(
            f"Invalid shapes for solve: {a.shape}, {b.shape}. b must be one vector, or matrices: "
            "solve(a, b[..., None]).squeeze(-1)."
        )
    if b.ndim == 0 or b.shape[-1 if b.ndim == 1 else -2] != a.shape[-1]:
        raise ValueError(f"solve: the shapes of a and b don't fit: {a.shape} and {b.shape}")
    right = lax.expand_dims(b, (1,)) if b.ndim == 1 else b
    batch = lax.broadcast_shapes(a.shape[:-2], right.shape[:-2])
    x = _solve(broadcast_to(a, (*batch, *a.shape[-2:])), broadcast_to(right, (*batch, *right.shape[-2:])))
    return lax.squeeze(x, (x.ndim - 1,)) if b.ndim == 1 else x


@fused
def _solve(a: Any, b: Any) -> Any:
    """Forward and back substitution in the factors of P a = L U. Derivatives solve systems of the same factors."""
    factors, _, permutation = _primitives.lu(lax.stop_gradient(a))
    substitute = functools.partial(_primitives.triangular_solve, factors, left_side=True)

    def solved(_: Any, b: Any) -> Any:
        y = substitute(_permuted_rows(b, permutation), lower=True, unit_diagonal=True)
        return substitute(y, lower=False)

    def solved_transposed(_: Any, b: Any) -> Any:
        y = substitute(b, lower=False, transpose_a=True)
        y = substitute(y, lower=True, unit_diagonal=True, transpose_a=True)
        return _permuted_rows(y, _inverted(permutation))

    return lax.custom_linear_solve(lambda x: products.matmul(a, x), b, solved, solved_transposed)


def _permuted_rows(b: Any, permutation: Any) -> Any:
    """``b[..., permutation, :]`` of each matrix."""
    return take_along(b, lax.broadcast_in_dim(permutation, b.shape, range(permutation.ndim)), b.ndim - 2)


def _inverted(permutation: Any) -> Any:
    """Where each number is in a permutation: a sum, which fuses, of as many terms as the matrix has elements."""
    dtype, last = permutation.dtype, permutation.ndim
    shape = (*permutation.shape, permutation.shape[-1])
    here = lax.broadcast_in_dim(permutation, shape, (*range(last - 1), last))
    found = lax.eq(here, lax.broadcasted_iota(dtype, shape, last - 1))
    return lax.reduce_sum(lax.mul(convert(found, dtype), lax.broadcasted_iota(dtype, shape, last)), (last,))


def inv(a: Any) -> Any:
    """The inverse of square matrices.

    >>> import polyax.numpy as jnp
    >>> jnp.linalg.inv(jnp.array([[2.0, 0.0], [0.0, 4.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    a = square_matrix("inv", a)
    return solve(a, broadcast_to(eye(a.shape[-1], dtype=a.dtype), a.shape))


def pinv(a: Any, rtol: Any = None, hermitian: bool = False, *, rcond: Any = None) -> Any:
    """The Moore-Penrose inverse; singular values below ``rtol`` times the largest count as zero.

    Args:
      rtol: one number, or one for each matrix.
      hermitian: ``a`` is Hermitian, which takes less.
      rcond: another name of ``rtol``.

    Raises:
      ValueError: both ``rtol`` and ``rcond`` are given.
    """
    if rtol is not None and rcond is not None:
        raise ValueError("pinv: only one of rtol and rcond may be specified.")
    a = inexact_matrix("pinv", a)
    if 0 in a.shape:
        return lax.full((*a.shape[:-2], a.shape[-1], a.shape[-2]), 0, a.dtype)
    rtol = rcond if rtol is None else rtol
    rtol = 10.0 * max(a.shape[-2:]) * float(dtypes.finfo(a.dtype).eps) if rtol is None else rtol
    return _pseudoinverse(hermitian, a, rtol)


@functools.partial(custom_jvp, nondiff_argnums=(0,))
def _pseudoinverse(hermitian: bool, a: Any, rtol: Any) -> Any:
    u, s, vh = svd(a, full_matrices=False, hermitian=hermitian)
    large = _above(s, rtol)
    inverse = convert(choose(large, lax.div(1.0, choose(large, s, 1.0)), 0.0), a.dtype)
    scaled = ufuncs.multiply(adjoint(vh), shapes.expand_dims(inverse, -2))
    return products.matmul(scaled, adjoint(u))


@_pseudoinverse.defjvp
def _pseudoinverse_jvp(hermitian: bool, primals: Any, tangents: Any) -> Any:
    """G. H. Golub, V. Pereyra, 1973: for matrices of the same rank nearby; equal singular values don't matter."""
    (a, rtol), da = primals, tangents[0]
    p = _pseudoinverse(hermitian, a, rtol)
    da_h = adjoint(da)
    left = products.matmul(products.matmul(p, adjoint(p)), da_h)
    right = products.matmul(da_h, products.matmul(adjoint(p), p))
    change = left - products.matmul(products.matmul(left, a), p) + right - products.matmul(p, products.matmul(a, right))
    return p, change - products.matmul(products.matmul(p, da), p)


def matrix_rank(M: Any, rtol: Any = None, *, hermitian: bool = False, tol: Any = None) -> Any:
    """The number of singular values above ``rtol``; of vectors and numbers, 1 but for zeros.

    Args:
      rtol: one number, or one for each matrix, which is compared as it is; by default, some of the dtype's precision
        times the largest singular value.
      hermitian: ``M`` is Hermitian, which takes less.
      tol: another name of ``rtol``.

    Raises:
      ValueError: both ``rtol`` and ``tol`` are given.
    """
    if rtol is not None and tol is not None:
        raise ValueError("matrix_rank: only one of tol or rtol may be specified.")
    if np.ndim(M) < 2:
        return convert(reductions.any(inexact("jnp.linalg.matrix_rank", M)[0] != 0), np.dtype("int32"))
    a = inexact_matrix("matrix_rank", M)
    s = svd(a, compute_uv=False, hermitian=hermitian)
    rtol = tol if rtol is None else rtol
    if rtol is None:
        return reductions.count_nonzero(_above(s, max(a.shape[-2:]) * float(dtypes.finfo(a.dtype).eps)), -1)
    return reductions.count_nonzero(logic.greater(s, shapes.expand_dims(convert(rtol, s.dtype), -1)), -1)


def _above(s: Any, rtol: Any) -> Any:
    """Which singular values are greater than ``rtol``, one or one for each matrix, times the largest."""
    bounds = shapes.expand_dims(convert(rtol, s.dtype), -1)
    return logic.greater(s, ufuncs.multiply(largest(s, -1, keepdims=True), bounds))


def lstsq(a: Any, b: Any, rcond: Any = None, *, numpy_resid: bool = False) -> tuple[Any, Any, Any, Any]:
    """The ``x`` that minimises the norm of ``b - a x``; residuals, rank and singular values of ``a``.

    Args:
      rcond: singular values below this times the largest count as zero; by default, and if it is negative, some of the
        dtype's precision.
      numpy_resid: whether there are no residuals of systems that have several solutions, or are no longer than wide.

    Raises:
      TypeError: ``a`` is no matrix, or ``b`` neither a vector nor a matrix.
      ValueError: both have different lengths.
    """
    a, b = inexact("jnp.linalg.lstsq", a, b)
    if a.shape[:1] != b.shape[:1]:
        raise ValueError("Leading dimensions of input arrays must match")
    if a.ndim != 2:
        raise TypeError(f"{a.ndim}-dimensional array given. Array must be two-dimensional")
    if b.ndim not in (1, 2):
        raise TypeError(f"{b.ndim}-dimensional array given. Array must be one or two-dimensional")
    columns = lax.expand_dims(b, (1,)) if b.ndim == 1 else b
    x, rank, s = _least_squares(a, columns, rcond)
    if numpy_resid and (a.shape[0] <= a.shape[1] or rank < a.shape[1]):
        residuals = lax.full((0,), 0, s.dtype)
    else:
        residuals = reductions.sum(lax.square(lax.abs(lax.sub(columns, products.matmul(a, x)))), 0)
    return lax.squeeze(x, (1,)) if b.ndim == 1 else x, residuals, rank, s


def _least_squares(a: Any, columns: Any, rcond: Any) -> tuple[Any, Any, Any]:
    """The solution, the rank and the singular values."""
    if 0 in a.shape:
        nothing = lax.full((0,), 0, dtypes.finfo(a.dtype).dtype)
        return lax.full((a.shape[1], columns.shape[1]), 0, a.dtype), reductions.sum(nothing != 0), nothing
    eps = float(dtypes.finfo(a.dtype).eps)
    u, s, vh = svd(a, full_matrices=False)
    limit = eps * max(a.shape) if rcond is None else choose(lax.lt(rcond, 0.0), eps, convert(rcond, s.dtype))
    largest = lax.mul(lax.index_in_dim(s, 0, 0), convert(limit, s.dtype))
    large = lax.bitwise_and(lax.gt(s, 0), lax.ge(s, lax.broadcast_in_dim(largest, s.shape, (0,))))
    scale = choose(large, lax.div(1.0, choose(large, s, 1.0)), 0.0)
    coefficients = lax.mul(products.matmul(adjoint(u), columns), lax.expand_dims(convert(scale, a.dtype), (1,)))
    return products.matmul(adjoint(vh), coefficients), reductions.sum(large), s
