"""Linear algebra: decompositions, solutions and norms of (stacks of) matrices."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from polyax.control.calls.custom_jvp import custom_jvp
from polyax.ir import dtypes
from polyax.lax import lenient as lax
from polyax.lax import linalg as _primitives
from polyax.numpy import diagonals as _diagonals
from polyax.numpy import logic, products, reductions, shapes, ufuncs
from polyax.numpy.axes import reduction_axes
from polyax.numpy.broadcast import broadcast_to, choose
from polyax.numpy.fused import fused
from polyax.numpy.promotion import as_array, canonicalize_axis, convert, ensure_array, ensure_arrays, inexact
from polyax.numpy.shapes import matrix_transpose as matrix_transpose
from polyax.numpy.triangles import eye
from polyax.ops.sort import take_along

if TYPE_CHECKING:
    from polyax.numpy.decompositions import EighResult, EigResult

__all__ = [
    "cholesky", "cond", "cross", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "lstsq", "matmul",
    "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "multi_dot", "norm", "outer", "pinv", "qr",
    "solve", "svd", "svdvals", "tensordot", "tensorinv", "tensorsolve", "trace", "vecdot", "vector_norm",
]  # fmt: skip


def named_result(kind: str, *parts: Any) -> Any:
    """The parts of a result, with names. The types are made when they are first asked for."""
    from polyax.numpy import decompositions

    return getattr(decompositions, kind)(*parts)


def inexact_matrix(name: str, a: Any) -> Any:
    """``a`` as an inexact (stack of) matrices, whose shape the primitive that takes it checks."""
    return inexact(f"jnp.linalg.{name}", a)[0]


def square_matrix(name: str, a: Any) -> Any:
    """``a`` as an inexact (stack of) square matrices.

    Raises:
      ValueError: it has fewer than two axes, or the last two differ.
    """
    a = inexact_matrix(name, a)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(f"Argument to {name}() must have shape [..., n, n], got {a.shape}")
    return a


def _adjoint(a: Any) -> Any:
    return ufuncs.conj(shapes.swapaxes(a, -1, -2))


# --- decompositions ---------------------------------------------------------------------------------------------------


def cholesky(a: Any, *, upper: bool = False, symmetrize_input: bool = True) -> Any:
    """The lower triangular ``L`` with ``L L^H = a`` (or upper ``U`` with ``U^H U = a``); else NaN.

    >>> import polyax.numpy as jnp
    >>> jnp.linalg.cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]])).tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    lower = _primitives.cholesky(inexact_matrix("cholesky", a), symmetrize_input=symmetrize_input)
    return _adjoint(lower) if upper else lower


def qr(a: Any, mode: str = "reduced") -> Any:
    """``(Q, R)`` with orthonormal columns in ``Q`` and ``Q R = a``; mode 'r' gives ``R`` alone.

    Mode 'raw' gives the transposes of LAPACK's reflections with ``R`` above them, and their scales.

    >>> import polyax.numpy as jnp
    >>> q, r = jnp.linalg.qr(jnp.ones((4, 2)))
    >>> q.shape, r.shape
    ((4, 2), (2, 2))
    """
    if mode == "raw":
        packed, taus = _primitives.geqrf(inexact_matrix("qr", a))
        return named_result("QRResult", shapes.swapaxes(packed, -1, -2), taus)
    if mode not in ("reduced", "r", "full", "complete"):
        raise ValueError(f"Unsupported QR decomposition mode '{mode}'")
    q, r = _primitives.qr(inexact_matrix("qr", a), full_matrices=mode == "complete")
    return r if mode == "r" else named_result("QRResult", q, r)


def svd(
    a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False, subset_by_index: Any = None
) -> Any:
    """``(U, s, V^H)`` with ``U diag(s) V^H = a`` and decreasing ``s >= 0``; ``s`` alone unless ``compute_uv``.

    Args:
      hermitian: ``a`` is Hermitian: what it takes are its eigenvalues.

    >>> import polyax.numpy as jnp
    >>> svd(jnp.array([[0.0, 3.0], [3.0, 8.0]]), compute_uv=False, hermitian=True).tolist()
    [9.0, 1.0]
    """
    if hermitian:
        if subset_by_index is not None:
            raise NotImplementedError("svd: subset_by_index isn't supported with hermitian=True")
        return _svd_of_hermitian(square_matrix("svd", a), compute_uv)
    found = _primitives.svd(
        inexact_matrix("svd", a), full_matrices=full_matrices, compute_uv=compute_uv, subset_by_index=subset_by_index
    )
    return named_result("SVDResult", *found) if compute_uv else found


def _svd_of_hermitian(a: Any, compute_uv: bool) -> Any:
    """Of ``a = V diag(w) V^H``: the absolute values of ``w``, whose signs go into ``V^H``."""
    vectors, values = _primitives.eigh(a)
    last = values.ndim - 1
    _, order = lax.sort((lax.neg(lax.abs(values)), lax.broadcasted_iota(np.int32, values.shape, last)), num_keys=1)
    values = take_along(values, order, last)
    if not compute_uv:
        return lax.abs(values)
    vectors = take_along(vectors, broadcast_to(lax.expand_dims(order, (last,)), vectors.shape), last + 1)
    signs = convert(choose(lax.lt(values, 0.0), -1.0, 1.0), a.dtype)
    right = lax.mul(_adjoint(vectors), lax.expand_dims(signs, (values.ndim,)))
    return named_result("SVDResult", vectors, lax.abs(values), right)


def svdvals(x: Any, /) -> Any:
    """The singular values, in decreasing order."""
    return svd(x, compute_uv=False)


def eigh(a: Any, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:
    """Increasing eigenvalues and orthonormal eigenvectors (columns) of Hermitian matrices.

    Raises:
      ValueError: ``UPLO`` is not 'L' or 'U'.

    >>> import polyax.numpy as jnp
    >>> values, vectors = jnp.linalg.eigh(jnp.array([[2.0, 0.0], [0.0, 1.0]]))
    >>> values.tolist()
    [1.0, 2.0]
    """
    if UPLO not in (None, "L", "U"):
        raise ValueError(f"UPLO must be one of None, 'L', or 'U', got {UPLO}")
    vectors, values = _primitives.eigh(inexact_matrix("eigh", a), lower=UPLO != "U", symmetrize_input=symmetrize_input)
    return named_result("EighResult", values, vectors)


def eigvalsh(a: Any, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Any:
    """The eigenvalues of Hermitian matrices, in increasing order."""
    return eigh(a, UPLO, symmetrize_input)[0]


def eig(a: Any) -> EigResult:
    """Complex eigenvalues and right eigenvectors (columns) of square matrices."""
    return named_result("EigResult", *_primitives.eig(inexact_matrix("eig", a), compute_left_eigenvectors=False))


def eigvals(a: Any) -> Any:
    """The complex eigenvalues of square matrices."""
    return _primitives.eig(
        inexact_matrix("eigvals", a), compute_left_eigenvectors=False, compute_right_eigenvectors=False
    )[0]


# --- solutions --------------------------------------------------------------------------------------------------------


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
    scaled = ufuncs.multiply(_adjoint(vh), shapes.expand_dims(inverse, -2))
    return products.matmul(scaled, _adjoint(u))


@_pseudoinverse.defjvp
def _pseudoinverse_jvp(hermitian: bool, primals: Any, tangents: Any) -> Any:
    """G. H. Golub, V. Pereyra, 1973: for matrices of the same rank nearby; equal singular values don't matter."""
    (a, rtol), da = primals, tangents[0]
    p = _pseudoinverse(hermitian, a, rtol)
    adjoint = _adjoint(da)
    left = products.matmul(products.matmul(p, _adjoint(p)), adjoint)
    right = products.matmul(adjoint, products.matmul(_adjoint(p), p))
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
        return convert(reductions.any(inexact("jnp.linalg.matrix_rank", M)[0] != 0), dtypes.default_int())
    a = inexact_matrix("matrix_rank", M)
    s = svd(a, compute_uv=False, hermitian=hermitian)
    rtol = tol if rtol is None else rtol
    if rtol is None:
        return reductions.count_nonzero(_above(s, max(a.shape[-2:]) * float(dtypes.finfo(a.dtype).eps)), -1)
    return reductions.count_nonzero(logic.greater(s, shapes.expand_dims(convert(rtol, s.dtype), -1)), -1)


def _above(s: Any, rtol: Any) -> Any:
    """Which singular values are greater than ``rtol``, one or one for each matrix, times the largest."""
    bounds = shapes.expand_dims(convert(rtol, s.dtype), -1)
    return logic.greater(s, ufuncs.multiply(_largest(s, -1, keepdims=True), bounds))


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
    coefficients = lax.mul(products.matmul(_adjoint(u), columns), lax.expand_dims(convert(scale, a.dtype), (1,)))
    return products.matmul(_adjoint(vh), coefficients), reductions.sum(large), s


# --- powers and products ----------------------------------------------------------------------------------------------


def matrix_power(a: Any, n: int) -> Any:
    """The ``n``-th power of square matrices; of the inverse if ``n`` is negative.

    Raises:
      TypeError: ``n`` is no integer, or the matrices aren't square.

    >>> import polyax.numpy as jnp
    >>> jnp.linalg.matrix_power(jnp.array([[1, 1], [0, 1]]), 5).tolist()
    [[1, 5], [0, 1]]
    """
    try:
        n = operator.index(n)
    except TypeError as e:
        raise TypeError(f"exponent must be an integer, got {n}") from e
    a = as_array(a)
    if a.ndim < 2:
        raise TypeError(f"{a.ndim}-dimensional array given. Array must be at least two-dimensional")
    if a.shape[-2] != a.shape[-1]:
        raise TypeError(f"Last 2 dimensions of the array must be square, got shape {a.shape}")
    if n == 0:
        return broadcast_to(eye(a.shape[-1], dtype=a.dtype), a.shape)
    base, n = (inv(a), -n) if n < 0 else (a, n)
    result = None
    while n:
        if n & 1:
            result = base if result is None else products.matmul(result, base)
        n >>= 1
        base = products.matmul(base, base) if n else base
    return result


def multi_dot(arrays: Sequence[Any], *, precision: Any = None) -> Any:
    """The product of several matrices, in the cheapest order; the first and last may be vectors."""
    arrays = [ensure_array("jnp.linalg.multi_dot", a) for a in arrays]
    if len(arrays) < 2:
        raise ValueError(f"multi_dot requires at least two arrays; got len(arrays)={len(arrays)}")
    ends, inner = (arrays[0], arrays[-1]), arrays[1:-1]
    if any(a.ndim not in (1, 2) for a in ends) or any(a.ndim != 2 for a in inner):
        raise ValueError(
            "multi_dot: input arrays must all be two-dimensional, except for the first and last array which may be "
            f"1 or 2 dimensional. Got array shapes {[a.shape for a in arrays]}"
        )
    if any(a.shape[-1] != b.shape[0] for a, b in itertools.pairwise(arrays)):
        raise ValueError(
            "multi_dot: last dimension of each array must match first dimension of following array. "
            f"Got array shapes {[a.shape for a in arrays]}"
        )
    sizes = [1 if arrays[0].ndim == 1 else arrays[0].shape[0], *(a.shape[0] for a in arrays[1:])]
    sizes.append(1 if arrays[-1].ndim == 1 else arrays[-1].shape[1])
    order = functools.cache(lambda i, j: _cheapest(sizes, order, i, j))
    multiply = functools.partial(products.matmul, precision=precision)

    def product(i: int, j: int) -> Any:
        return arrays[i] if i == j else multiply(product(i, order(i, j)[1]), product(order(i, j)[1] + 1, j))

    return product(0, len(arrays) - 1)


def _cheapest(sizes: list[int], order: Any, i: int, j: int) -> tuple[int, int]:
    """Multiplications for the factors i to j, and where the last product cuts them."""
    if i == j:
        return 0, i
    return min((order(i, k)[0] + order(k + 1, j)[0] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j))


def matmul(x1: Any, x2: Any, /, *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """``jnp.matmul``."""
    return products.matmul(x1, x2, precision=precision, preferred_element_type=preferred_element_type)


def outer(x1: Any, x2: Any, /) -> Any:
    """``jnp.outer`` of two vectors."""
    x1, x2 = ensure_arrays("jnp.linalg.outer", x1, x2)
    if x1.ndim != 1 or x2.ndim != 1:
        raise ValueError(f"Input arrays must be one-dimensional, but they are {x1.ndim=} {x2.ndim=}")
    return products.outer(x1, x2)


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """``jnp.vecdot``."""
    return products.vecdot(x1, x2, axis=axis, precision=precision, preferred_element_type=preferred_element_type)


def tensordot(
    x1: Any,
    x2: Any,
    /,
    *,
    axes: Any = 2,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Any:
    """``jnp.tensordot``."""
    how = {"precision": precision, "preferred_element_type": preferred_element_type, "out_sharding": out_sharding}
    return products.tensordot(x1, x2, axes, **how)


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """The vector product of 3-vectors along ``axis``."""
    x1, x2 = ensure_arrays("jnp.linalg.cross", x1, x2)
    if x1.shape[axis] != 3 or x2.shape[axis] != 3:
        raise ValueError(
            "Both input arrays must be (arrays of) 3-dimensional vectors, but they have "
            f"{x1.shape[axis]=} and {x2.shape[axis]=}"
        )
    return products.cross(x1, x2, axis=axis)


def diagonal(x: Any, /, *, offset: int = 0) -> Any:
    """The diagonals of the last two axes."""
    return _diagonals.diagonal(x, offset, -2, -1)


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """The sums of the diagonals of the last two axes."""
    return _diagonals.trace(x, offset, -2, -1, dtype)


def tensorinv(a: Any, ind: int = 2) -> Any:
    """The inverse of ``a`` as a map from its last axes to its first ``ind`` ones."""
    a = ensure_array("tensorinv", a)
    if ind <= 0:
        raise ValueError(f"ind must be a positive integer; got ind={ind}")
    first, last = a.shape[:ind], a.shape[ind:]
    if math.prod(first) != math.prod(last):
        raise ValueError(
            "tensorinv is only possible when the product of the first `ind` dimensions equals that of the remaining "
            f"dimensions. got arr.shape={a.shape} with ind={ind}."
        )
    return lax.reshape(inv(lax.reshape(a, (math.prod(first), math.prod(last)))), (*last, *first))


def tensorsolve(a: Any, b: Any, axes: Any = None) -> Any:
    """``x`` with ``tensordot(a, x, x.ndim) = b``."""
    a, b = ensure_array("tensorsolve", a), ensure_array("tensorsolve", b)
    if axes is not None:
        moved = [canonicalize_axis(i, a.ndim) for i in axes]
        a = lax.transpose(a, [i for i in range(a.ndim) if i not in moved] + moved)
    rest = a.shape[b.ndim :]
    if a.shape[: b.ndim] != b.shape:
        raise ValueError(
            "After moving axes to end, leading shape of a must match shape of b. "
            f"got a.shape={a.shape}, b.shape={b.shape}"
        )
    if math.prod(rest) != b.size:
        raise ValueError(
            "Input arrays must have prod(a.shape[:b.ndim]) == prod(a.shape[b.ndim:]); got "
            f"a.shape={a.shape}, b.ndim={b.ndim}."
        )
    return lax.reshape(solve(lax.reshape(a, (b.size, math.prod(rest))), lax.reshape(b, (b.size,))), rest)


# --- norms ------------------------------------------------------------------------------------------------------------


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """The norm of vectors (one axis) or matrices (two axes); of all elements if neither ``ord`` nor ``axis`` is given.

    Raises:
      ValueError: an unknown ``ord``, or a wrong number of axes.

    >>> import polyax.numpy as jnp
    >>> jnp.linalg.norm(jnp.array([3.0, 4.0])).item()
    5.0
    """
    x = inexact("jnp.linalg.norm", x)[0]
    if axis is None and ord is None:
        return lax.sqrt(_square_sum(x, tuple(range(x.ndim)), keepdims))
    axes = reduction_axes(axis, x.ndim, "linalg.norm")
    if len(axes) == 1:
        return _vector_norm(x, axes, ord, keepdims)
    if len(axes) != 2:
        raise ValueError(
            f"Improper number of axes for norm: axis={axes}. Pass one axis to compute a vector-norm, or two axes to "
            "compute a matrix-norm."
        )
    return _matrix_norm(x, axes, "fro" if ord is None else ord, keepdims)


def _square_sum(x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    squares = lax.real(lax.mul(x, lax.conj(x))) if x.dtype in dtypes.COMPLEX else lax.square(x)
    return reductions.sum(squares, axes, keepdims=keepdims)


def _vector_norm(x: Any, axes: tuple[int, ...], ord: Any, keepdims: bool) -> Any:
    if ord is None or ord == 2:
        return lax.sqrt(_square_sum(x, axes, keepdims))
    size = x if x.dtype == bool else lax.abs(x)
    if ord == np.inf:
        return _largest(size, axes, keepdims=keepdims)
    if ord == -np.inf:
        return reductions.min(size, axes, keepdims=keepdims)
    if ord == 0:
        return reductions.sum(convert(lax.ne(size, 0.0), size.dtype), axes, keepdims=keepdims)
    if ord == 1:
        return reductions.sum(size, axes, keepdims=keepdims)
    if isinstance(ord, str):
        raise ValueError(f"Invalid order '{ord}' for vector norm.")
    total = reductions.sum(ufuncs.power(size, ord), axes, keepdims=keepdims)
    return ufuncs.power(total, 1.0 / ord)


def _largest(size: Any, axes: Any, keepdims: bool = False) -> Any:
    """The largest of numbers that aren't negative: 0 of none."""
    return reductions.max(size, axes, keepdims=keepdims, initial=None if size.size else 0)


def _matrix_norm(x: Any, axes: tuple[int, ...], ord: Any, keepdims: bool) -> Any:
    row, column = axes
    if ord in ("f", "fro"):
        return lax.sqrt(_square_sum(x, axes, keepdims))
    if ord in (1, -1, np.inf, -np.inf):
        summed, searched = (row, column) if abs(ord) == 1 else (column, row)
        sums = reductions.sum(lax.abs(x), summed, keepdims=True)
        result = (_largest if ord > 0 else reductions.min)(sums, searched, keepdims=True)
    elif ord in (2, -2, "nuc"):
        s = svdvals(shapes.moveaxis(x, axes, (-2, -1)))
        reduce = {2: _largest, -2: reductions.min, "nuc": reductions.sum}[ord]
        result = lax.expand_dims(reduce(s, -1), sorted(axes))
    else:
        raise ValueError(f"Invalid order '{ord}' for matrix norm.")
    return result if keepdims else lax.squeeze(result, axes)


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """The norm over one or several axes as one long vector; that of integers is one where it needs no root."""
    x = ensure_array("jnp.linalg.vector_norm", x)
    x = x if ord in (1, np.inf, -np.inf) else inexact("jnp.linalg.vector_norm", x)[0]
    return _vector_norm(x, reduction_axes(axis, x.ndim, "linalg.vector_norm"), ord, keepdims)


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """The norm of the matrices of the last two axes."""
    x = ensure_array("jnp.linalg.matrix_norm", x)
    return norm(x, ord, (-2, -1), keepdims)


def cond(x: Any, p: Any = None) -> Any:
    """The condition number: the norm of the matrix times that of its inverse; by default from singular values."""
    x = inexact_matrix("cond", x)
    if x.ndim < 2:
        raise ValueError(f"jnp.linalg.cond: input array must be at least 2D; got arr.shape={x.shape}")
    if 0 in x.shape[-2:]:
        raise ValueError(f"jnp.linalg.cond: input array must not be empty; got arr.shape={x.shape}")
    if p in (None, 2, -2):
        s = svdvals(x)
        first, last = (
            lax.index_in_dim(s, 0, s.ndim - 1, keepdims=False),
            lax.index_in_dim(s, -1, s.ndim - 1, keepdims=False),
        )
        return lax.div(last, first) if p == -2 else lax.div(first, last)
    if x.shape[-2] != x.shape[-1]:
        raise ValueError(f"jnp.linalg.cond: for p={p}, array must be square; got arr.shape={x.shape}")
    return lax.mul(norm(x, p, (-2, -1)), norm(inv(x), p, (-2, -1)))
