"""Linear algebra through LAPACK and BLAS: which routine computes a primitive, and how its arguments are laid out.

LAPACK stores matrices by columns, we by rows: a routine gets our memory as the transpose, or a transposed copy.
What fails (no convergence, not positive definite) is NaN. Knows no plans and no kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polyax.ir.primitive import Primitive
from polyax.ops import solve, spectral
from polyax_cpu.libraries.products import ROW_MAJOR
from polyax_cpu.libraries.routines import call
from polyax_kernels.lower.libraries.factorizations import why_not
from polyax_kernels.lower.lowering import Call, CallContext, Lowering

COLUMN_MAJOR = 102
LEFT, RIGHT, UPPER, LOWER, PLAIN, TRANSPOSED, GENERAL, UNIT = 141, 142, 121, 122, 111, 112, 131, 132
"""The names of BLAS for these (``CblasLeft`` and so on)."""

# --- layouts ---------------------------------------------------------------------------------------------------------


def _stack(x: np.ndarray, ndim: int = 2) -> np.ndarray:
    """A view with one leading dimension."""
    return x.reshape(-1, *x.shape[x.ndim - ndim :])


def _by_columns(x: np.ndarray) -> np.ndarray:
    """A stack of copies that are stored by columns."""
    return np.swapaxes(_stack(x), 1, 2).copy()


def _store(out: np.ndarray, columns: np.ndarray, failed: np.ndarray | None = None) -> None:
    """Fills ``out`` with matrices that are stored by columns."""
    _stack(out)[...] = np.swapaxes(columns, 1, 2)
    if failed is not None:
        _stack(out)[failed] = np.nan


# --- primitives ------------------------------------------------------------------------------------------------------

Arrays = Sequence[np.ndarray]


def cholesky(_: CallContext, outs: Arrays, args: Arrays) -> None:
    """Our lower triangle is the upper one of LAPACK, and ``L L^T`` is ``U^T U``."""
    n = args[0].shape[-1]
    outs[0][...] = args[0]
    factors = _stack(outs[0])
    factors[call("potrf", COLUMN_MAJOR, "U", n, factors, n)] = np.nan
    np.copyto(factors, 0, where=~np.tri(n, dtype=bool))


def triangular_solve(
    _: CallContext,
    outs: Arrays,
    args: Arrays,
    *,
    left_side: bool,
    lower: bool,
    transpose_a: bool,
    unit_diagonal: bool,
    **__: Any,
) -> None:
    outs[0][...] = args[1]
    a, x = _stack(args[0]), _stack(outs[0])
    side, uplo = LEFT if left_side else RIGHT, LOWER if lower else UPPER
    trans, diag = TRANSPOSED if transpose_a else PLAIN, UNIT if unit_diagonal else GENERAL
    m, n = x.shape[1:]
    call("trsm", ROW_MAJOR, side, uplo, trans, diag, m, n, 1, a, a.shape[-1], x, n)


def lu(_: CallContext, outs: Arrays, args: Arrays) -> None:
    """LAPACK counts pivots from 1; a singular matrix has factors too."""
    m, n = args[0].shape[-2:]
    packed, pivots, permutation = outs[0], _stack(outs[1], 1), _stack(outs[2], 1)
    a = _by_columns(args[0])
    call("getrf", COLUMN_MAJOR, m, n, a, m, pivots)
    rows = np.tile(np.arange(m, dtype=float), (len(a), 1))
    call("laswp", COLUMN_MAJOR, 1, rows, m, 1, min(m, n), pivots, 1)
    _store(packed, a)
    permutation[...] = rows
    pivots -= 1


def qr(_: CallContext, outs: Arrays, args: Arrays, **__: Any) -> None:
    """The reflections are left below R; Q is their product."""
    (q, r), x = outs, _stack(args[0])
    (count, m, n), k = x.shape, r.shape[-2]
    a = np.empty((count, max(n, k), m), x.dtype)
    a[:, :n] = np.swapaxes(x, 1, 2)
    taus = np.empty((count, min(m, n)), x.dtype)
    call("geqrf", COLUMN_MAJOR, m, n, a, m, taus)
    _store(r, np.tril(a[:, :n, :k]))
    call("orgqr", COLUMN_MAJOR, m, k, min(m, n), a, m, taus)
    _store(q, a[:, :k])


def householder_product(_: CallContext, outs: Arrays, args: Arrays) -> None:
    (m, n), taus = args[0].shape[-2:], _stack(args[1], 1)
    a = _by_columns(args[0])
    call("orgqr", COLUMN_MAJOR, m, n, taus.shape[1], a, m, taus)
    _store(outs[0], a)


def eigh(_: CallContext, outs: Arrays, args: Arrays, *, lower: bool, **__: Any) -> None:
    """The eigenvectors take the matrix's place."""
    v, w = outs[0], _stack(outs[1], 1)
    a, n = _by_columns(args[0]), w.shape[1]
    failed = call("syevd", COLUMN_MAJOR, "V", "L" if lower else "U", n, a, n, w)
    w[failed] = np.nan
    _store(v, a, failed)


def svd(_: CallContext, outs: Arrays, args: Arrays, *, full_matrices: bool, compute_uv: bool, **__: Any) -> None:
    s, vectors = _stack(outs[0], 1), outs[1:]
    a, (m, n) = _by_columns(args[0]), args[0].shape[-2:]
    job = "N" if not compute_uv else "A" if full_matrices else "S"
    found = [np.empty((len(a), y.shape[-1], y.shape[-2]), a.dtype) for y in vectors]
    u, vt = found or (0, 0)
    rows = found[1].shape[2] if found else n
    failed = call("gesdd", COLUMN_MAJOR, job, m, n, a, m, s, u, m, vt, rows)
    s[failed] = np.nan
    for out, columns in zip(vectors, found, strict=True):
        _store(out, columns, failed)


# --- lowerings -------------------------------------------------------------------------------------------------------


_RUN: dict[Primitive, Callable[..., None]] = {
    solve.cholesky_p: cholesky,
    solve.triangular_solve_p: triangular_solve,
    solve.lu_p: lu,
    spectral.qr_p: qr,
    spectral.householder_product_p: householder_product,
    spectral.eigh_p: eigh,
    spectral.svd_p: svd,
}
LOWERINGS: dict[Primitive, Lowering] = {p: Call(run, why_not) for p, run in _RUN.items()}
