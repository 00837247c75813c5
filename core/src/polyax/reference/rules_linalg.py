"""Linear algebra through ``numpy.linalg``, and what it lacks by plain elimination. Failures give NaN, as in XLA."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from polyax.ops import solve, spectral
from polyax.ops.eig import eig_p
from polyax.ops.qr import qr_p
from polyax.reference.table import NARROW, rule, rules, wide


def of_matrices(fun: Callable[..., Any]) -> Callable[..., Any]:
    """``fun``, which NumPy has for no 16-bit floats, of these as float32; what it gives is rounded."""

    @wraps(fun)
    def apply(*args: Any, **params: Any) -> Any:
        dtype = args[0].dtype
        if dtype not in NARROW:
            return fun(*args, **params)
        found = fun(*map(wide, args), **params)
        rounded = [x.astype(dtype) if x.dtype == np.float32 else x for x in map(np.asarray, _listed(found))]
        return rounded if isinstance(found, (list, tuple)) else rounded[0]

    return apply


def _listed(found: Any) -> Any:
    return found if isinstance(found, (list, tuple)) else [found]


def _each(fun: Callable[..., Any], *stacks: Any) -> list[Any]:
    """``fun`` of each matrix (or vector) of the stacks; a list with the stack of each result."""
    batch = stacks[0].shape[:-2]
    items = [fun(*(s[i] for s in stacks)) for i in np.ndindex(batch)]
    if not items:  # a matrix of zeros tells what the results of no matrices look like
        one = fun(*(np.zeros(s.shape[len(batch) :], s.dtype) for s in stacks))
        return [np.empty((*batch, *np.shape(x)), np.asarray(x).dtype) for x in one]
    return [np.stack(column).reshape(*batch, *np.shape(column[0])) for column in zip(*items, strict=True)]


@rule(solve.cholesky_p)
@of_matrices
def cholesky(x: Any) -> Any:
    def one(a: Any) -> Any:
        try:
            return (np.linalg.cholesky(a),)
        except np.linalg.LinAlgError:
            return (np.tril(np.full_like(a, np.nan)),)

    return _each(one, x)[0]


@rule(solve.triangular_solve_p)
@of_matrices
def triangular_solve(
    a: Any, b: Any, *, left_side: bool, lower: bool, transpose_a: bool, conjugate_a: bool, unit_diagonal: bool
) -> Any:
    """Substitution; ``x op(a) = b`` is ``op(a)^T x^T = b^T``."""
    a = np.conj(a) if conjugate_a else a
    if transpose_a == left_side:
        a, lower = np.swapaxes(a, -1, -2), not lower
    b = b if left_side else np.swapaxes(b, -1, -2)
    x = np.array(b)
    n = a.shape[-1]
    for i in range(n) if lower else reversed(range(n)):
        done = slice(0, i) if lower else slice(i + 1, n)
        x[..., i, :] -= np.einsum("...k,...km->...m", a[..., i, done], x[..., done, :])
        if not unit_diagonal:
            x[..., i, :] /= a[..., i, i, None]
    return x if left_side else np.swapaxes(x, -1, -2)


@rules(solve.lu_p)
@of_matrices
def lu(x: Any) -> Any:
    return _each(_lu, x)


def _lu(a: Any) -> tuple[Any, Any, Any]:
    """Elimination by columns, with the largest element as pivot."""
    a = np.array(a)
    m, n = a.shape
    pivots, permutation = np.zeros(min(m, n), np.int32), np.arange(m, dtype=np.int32)
    for j in range(min(m, n)):
        pivot = j + int(np.argmax(np.abs(a[j:, j])))
        pivots[j] = pivot
        a[[j, pivot]], permutation[[j, pivot]] = a[[pivot, j]], permutation[[pivot, j]]
        if a[j, j] != 0:
            a[j + 1 :, j] /= a[j, j]
        a[j + 1 :, j + 1 :] -= np.outer(a[j + 1 :, j], a[j, j + 1 :])
    return a, pivots, permutation


@rules(qr_p)
@of_matrices
def qr(x: Any, *, full_matrices: bool, pivoting: bool, use_magma: Any) -> Any:
    if pivoting:
        return _each(lambda a: _pivoted_qr(a, full_matrices), x)
    return np.linalg.qr(x, "complete" if full_matrices else "reduced")


def _pivoted_qr(a: Any, full_matrices: bool) -> tuple[Any, Any, Any]:
    """The order of the columns makes those of what is left ever shorter."""
    rest, order = np.array(a), np.arange(a.shape[1], dtype=np.int32)
    for j in range(min(a.shape)):
        best = j + int(np.argmax(np.linalg.norm(rest[:, j:], axis=0)))
        rest[:, [j, best]], order[[j, best]] = rest[:, [best, j]], order[[best, j]]
        size = np.linalg.norm(rest[:, j])
        v = rest[:, j] / (size or 1)
        rest[:, j + 1 :] -= np.outer(v, np.conj(v) @ rest[:, j + 1 :])
    q, r = np.linalg.qr(a[:, order], "complete" if full_matrices else "reduced")
    return q, r, order


@rule(spectral.householder_product_p)
@of_matrices
def householder_product(a: Any, taus: Any) -> Any:
    """Applies I - tau v v^H, last reflection first, to the first columns of the identity."""
    m, n = a.shape[-2:]
    q = np.broadcast_to(np.eye(m, n, dtype=a.dtype), a.shape).copy()
    for j in reversed(range(taus.shape[-1])):
        v = np.where(np.arange(m) < j, 0, np.where(np.arange(m) == j, 1, a[..., :, j])).astype(a.dtype)
        projected = np.einsum("...i,...ij->...j", np.conj(v), q)
        q = q - taus[..., j, None, None] * v[..., :, None] * projected[..., None, :]
    return q


@rules(spectral.eigh_p)
@of_matrices
def eigh(x: Any, *, lower: bool, **params: Any) -> Any:
    w, v = np.linalg.eigh(x, "L" if lower else "U")
    return v, w


@rules(spectral.svd_p)
@of_matrices
def svd(x: Any, *, full_matrices: bool, compute_uv: bool, **params: Any) -> Any:
    if not compute_uv:
        return [np.linalg.svd(x, compute_uv=False)]
    u, s, vh = np.linalg.svd(x, full_matrices)
    return s, u, vh


@rules(eig_p)
@of_matrices
def eig(x: Any, *, compute_left_eigenvectors: bool, compute_right_eigenvectors: bool) -> Any:
    """The rows of V^-1 are the left eigenvectors, conjugated, with a largest component that is positive and length 1.
    Values of real matrices come in the order of LAPACK's routine for these."""
    w, v = (y.astype(np.promote_types(x.dtype, np.complex64)) for y in np.linalg.eig(x))
    if not v.size:
        return [w, *[v] * (compute_left_eigenvectors + compute_right_eigenvectors)]
    left = np.conj(np.swapaxes(np.linalg.inv(v), -1, -2)) if compute_left_eigenvectors else v
    largest = np.take_along_axis(left, np.argmax(np.abs(left), -2, keepdims=True), -2)
    left = left * np.conj(largest / np.abs(largest)) / np.linalg.norm(left, axis=-2, keepdims=True)
    return [w, *([left] if compute_left_eigenvectors else []), *([v] if compute_right_eigenvectors else [])]
