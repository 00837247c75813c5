"""Decompositions of (stacks of) matrices, their eigenvalues and singular values."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyax.lax import lenient as lax
from polyax.lax import linalg as _primitives
from polyax.numpy import reductions, shapes, ufuncs
from polyax.numpy.broadcast import broadcast_to, choose
from polyax.numpy.linalg_results import EighResult, EigResult, QRResult, SVDResult
from polyax.numpy.promotion import convert, inexact
from polyax.ops.sort import take_along

__all__ = ["cholesky", "eig", "eigh", "eigvals", "eigvalsh", "qr", "svd", "svdvals"]


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


def adjoint(a: Any) -> Any:
    return ufuncs.conj(shapes.swapaxes(a, -1, -2))


def largest(size: Any, axes: Any, keepdims: bool = False) -> Any:
    """The largest of numbers that aren't negative: 0 of none."""
    return reductions.max(size, axes, keepdims=keepdims, initial=None if size.size else 0)


def cholesky(a: Any, *, upper: bool = False, symmetrize_input: bool = True) -> Any:
    """The lower triangular ``L`` with ``L L^H = a`` (or upper ``U`` with ``U^H U = a``); else NaN.

    >>> import polyax.numpy as jnp
    >>> jnp.linalg.cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]])).tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    lower = _primitives.cholesky(inexact_matrix("cholesky", a), symmetrize_input=symmetrize_input)
    return adjoint(lower) if upper else lower


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
        return QRResult(shapes.swapaxes(packed, -1, -2), taus)
    if mode not in ("reduced", "r", "full", "complete"):
        raise ValueError(f"Unsupported QR decomposition mode '{mode}'")
    q, r = _primitives.qr(inexact_matrix("qr", a), full_matrices=mode == "complete")
    return r if mode == "r" else QRResult(q, r)


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
    return SVDResult(*found) if compute_uv else found


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
    right = lax.mul(adjoint(vectors), lax.expand_dims(signs, (values.ndim,)))
    return SVDResult(vectors, lax.abs(values), right)


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
    return EighResult(values, vectors)


def eigvalsh(a: Any, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Any:
    """The eigenvalues of Hermitian matrices, in increasing order."""
    return eigh(a, UPLO, symmetrize_input)[0]


def eig(a: Any) -> EigResult:
    """Complex eigenvalues and right eigenvectors (columns) of square matrices."""
    return EigResult(*_primitives.eig(inexact_matrix("eig", a), compute_left_eigenvectors=False))


def eigvals(a: Any) -> Any:
    """The complex eigenvalues of square matrices."""
    return _primitives.eig(
        inexact_matrix("eigvals", a), compute_left_eigenvectors=False, compute_right_eigenvectors=False
    )[0]
