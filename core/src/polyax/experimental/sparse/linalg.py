"""Eigenvectors of matrices known by their products, and direct solutions of sparse systems."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from polyax import numpy as jnp
from polyax.api.jit import jit
from polyax.control.callback import pure_callback
from polyax.control.solving import custom_linear_solve
from polyax.experimental.sparse.bcsr import rows_of
from polyax.experimental.sparse.coo import product_of
from polyax.ir.aval import ShapedArray, is_array_like
from polyax.lax import lenient as lax

Product = Callable[[Any], Any]

__all__ = ["lobpcg_standard", "spsolve"]


# --- eigenvectors -----------------------------------------------------------------------------------------------------


def lobpcg_standard(A: Any, X: Any, m: int = 100, tol: Any = None) -> tuple[Any, Any, Any]:
    """The largest eigenvalues of a symmetric matrix, and their vectors, by LOBPCG.

    Knyazev, "Toward the optimal preconditioned eigensolver" (2001), with a basis that is kept orthonormal as in Duersch
    et al., "A robust and efficient implementation of LOBPCG" (2018); without preconditioning, and not differentiable.

    Args:
      A: a matrix of ``n`` rows, or a function that multiplies with it.
      X: ``k`` vectors to begin with, of shape ``(n, k)``.
      m: the most steps.
      tol: a vector is found when its residual is below ``tol * 10 * n * (eigenvalue + norm(A v))``; the resolution of
        the dtype by default.

    Returns:
      Eigenvalues ``(k,)``, vectors ``(n, k)``, and how many steps there were.

    Raises:
      ValueError: dtypes or sizes differ, or ``5 k`` isn't below ``n``.

    >>> theta, _, _ = lobpcg_standard(np.diag(np.arange(20, dtype=np.float32)), np.eye(20, 2, dtype=np.float32) + 0.1)
    >>> theta.round(2).tolist()
    [19.0, 18.0]
    """
    if is_array_like(A):
        return _of_matrix(A, X, m, tol)
    return _of_product(A, X, m, tol)


@partial(jit, static_argnames=("m",))
def _of_matrix(A: Any, X: Any, m: int, tol: Any) -> tuple[Any, Any, Any]:
    return _lobpcg(partial(_mm, A), X, m, tol)


@partial(jit, static_argnames=("A", "m"))
def _of_product(A: Product, X: Any, m: int, tol: Any) -> tuple[Any, Any, Any]:
    return _lobpcg(A, X, m, tol)


def _mm(a: Any, b: Any) -> Any:
    return jnp.matmul(a, b, precision="highest")


def _lobpcg(times: Product, start: Any, m: int, tol: Any) -> tuple[Any, Any, Any]:
    """Each step looks for the best vectors among the present ones, their last changes, and their residuals."""
    _check(times, start)
    n, k = start.shape
    tol = float(jnp.finfo(start.dtype).eps) if tol is None else tol

    def again(state: Any) -> Any:
        step, _, _, _, _, found = state
        return (step < m) & (found < k)

    def body(state: Any) -> Any:
        step, x, changes, ax, theta, _ = state
        residuals = _new_directions(jnp.concatenate((x, changes), 1), ax - theta * x)
        space = jnp.concatenate((x, changes, residuals), 1)
        theta, weights = _best(_mm(space.T, times(space)), (space != 0).any(0), k)
        changes = _mm(space[:, k:], weights[k:])
        x = _mm(space, weights)
        x = x / _norms(x)
        ax = times(x)
        found = (_norms(ax - theta * x) < tol * 10 * n * (theta + _norms(ax))).sum()
        return step + 1, x, _new_directions(x, changes), ax, theta, found

    x = _new_directions(jnp.zeros_like(start), start)
    ax = times(x)
    first = 0, x, jnp.zeros_like(x), ax, (x * ax).sum(0, keepdims=True), 0
    step, x, _, _, theta, _ = lax.while_loop(again, body, first)
    return theta[0], x, step


def _best(projected: Any, there: Any, k: int) -> tuple[Any, Any]:
    """The ``k`` largest eigenvalues and their vectors, among those of directions that aren't 0."""
    least = -2 * jnp.abs(projected).sum(0).max() - 1  # below all eigenvalues, by Gershgorin
    values, vectors = jnp.linalg.eigh(projected + jnp.diag(jnp.where(there, 0, least).astype(projected.dtype)))
    return values[None, ::-1][:, :k], vectors[:, ::-1][:, :k]


def _new_directions(basis: Any, u: Any) -> Any:
    """Orthonormal columns that span what ``u`` has beside ``basis``; 0 in place of those that would be noise."""
    for _ in range(2):  # once loses digits, twice is enough (Parlett, "The symmetric eigenvalue problem", 6.9)
        u = u - _mm(basis, _mm(basis.T, u))
        u = _orthonormal(_orthonormal(u))
    for _ in range(2):
        u = u - _mm(basis, _mm(basis.T, u))
    return jnp.where(_norms(u) >= 0.99, u, 0)


def _orthonormal(u: Any) -> Any:
    """Orthonormal columns by the eigenvectors of ``u^T u``, as in Stathopoulos and Wu's SVQB (2002)."""
    u = _normal(u)
    values, vectors = jnp.linalg.eigh(_mm(u.T, u))
    keep = (values > float(jnp.finfo(u.dtype).eps) * values[-1])[None]
    return _normal(jnp.where(keep, _mm(u, vectors / jnp.sqrt(jnp.where(keep, values[None], 1))), 0))


def _norms(u: Any) -> Any:
    return jnp.linalg.norm(u, axis=0, keepdims=True)


def _normal(u: Any) -> Any:
    norms = _norms(u)
    return u / jnp.where(norms == 0, 1, norms)


def _check(times: Product, x: Any) -> None:
    n, k = x.shape
    if k == 0:
        raise ValueError(f"must have search dim > 0, got {k}")
    if k * 5 >= n:
        raise ValueError(f"expected search dim * 5 < matrix dim (got {k * 5}, {n})")
    out = times(jnp.zeros((n, 1), x.dtype))
    if out.dtype != x.dtype:
        raise ValueError(f"A, X must have same dtypes (were {out.dtype}, {x.dtype})")
    if out.shape != (n, 1):
        raise ValueError(f"A must be ({n}, {n}) matrix A, got output {out.shape}")


# --- systems ----------------------------------------------------------------------------------------------------------


def spsolve(data: Any, indices: Any, indptr: Any, b: Any, tol: float = 1e-6, reorder: int = 1) -> Any:
    """The solution of ``A x = b`` for a square matrix in compressed rows, by factorization on the host.

    SciPy does it where it is installed; without it the matrix is made dense.

    Args:
      data, indices, indptr: the arrays of a ``CSR``.
      b: the right side, a vector.
      tol, reorder: without effect.

    Raises:
      ValueError: shapes or dtypes don't go together.

    >>> from polyax.experimental import sparse
    >>> mat = sparse.CSR.fromdense(np.diag(np.array([2., 4.], np.float32)))
    >>> spsolve(mat.data, mat.indices, mat.indptr, np.ones(2, np.float32)).tolist()
    [0.5, 0.25]
    """
    data, indices, indptr, b = map(jnp.asarray, (data, indices, indptr, b))
    _check_system(data, indices, indptr, b, reorder)
    rows = rows_of(indices, indptr)
    shape = (b.size, b.size)

    def solve(transposed: bool) -> Any:
        places = (indices, rows) if transposed else (rows, indices)
        host = partial(pure_callback, _on_host, ShapedArray(b.shape, b.dtype), vmap_method="sequential")
        return lambda _, right: host(lax.stop_gradient(data), *places, right)

    times = lambda x: product_of(data, rows, indices, x, shape, transpose=False)
    return custom_linear_solve(times, b, solve(False), solve(True))


def _on_host(data: Any, rows: Any, cols: Any, b: Any) -> Any:
    data, rows, cols, b = map(np.asarray, (data, rows, cols, b))
    inside = (rows < b.size) & (cols < b.size)
    places, values = (rows[inside], cols[inside]), data[inside]
    try:
        from scipy import sparse
        from scipy.sparse.linalg import spsolve as factored
    except ImportError:
        dense = np.zeros((b.size, b.size), data.dtype)
        np.add.at(dense, places, values)
        return np.linalg.solve(dense, b).astype(b.dtype)
    return factored(sparse.csc_matrix((values, places), shape=(b.size, b.size)), b).astype(b.dtype)


def _check_system(data: Any, indices: Any, indptr: Any, b: Any, reorder: int) -> None:
    if data.dtype != b.dtype:
        raise ValueError(f"data types do not match: {data.dtype=} {b.dtype=}")
    if not all(jnp.issubdtype(x.dtype, np.integer) for x in (indices, indptr)):
        raise ValueError(f"index arrays must be integer typed; got {indices.dtype=} {indptr.dtype=}")
    if not data.ndim == indices.ndim == indptr.ndim == b.ndim == 1:
        raise ValueError(
            f"Arrays must be one-dimensional. Got {data.shape=} {indices.shape=} {indptr.shape=} {b.shape=}"
        )
    if indptr.size != b.size + 1 or data.shape != indices.shape:
        raise ValueError(f"Invalid CSR buffer sizes: {data.shape=} {indices.shape=} {indptr.shape=}")
    if reorder not in (0, 1, 2, 3):
        raise ValueError(f"{reorder=} not valid, must be one of [1, 2, 3, 4]")
