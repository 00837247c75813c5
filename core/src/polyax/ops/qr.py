"""The QR decomposition.

Derivatives are in Walter and Lehmann, "Algorithmic differentiation of linear algebra functions with application in
optimum experimental design" (2010).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.primitive import Primitive, def_rule
from polyax.ops.basis import add, convert, full_like, select_n, sub
from polyax.ops.convert import real
from polyax.ops.joining import concatenate
from polyax.ops.matrices import (
    adjoint,
    check_matrix,
    leading_batch,
    leading_factors,
    lower,
    matmul,
    on_diagonal,
    rows_of,
)
from polyax.ops.slicing import pad, slice_in_dim
from polyax.ops.solve import triangular_solve
from polyax.ops.sort import take_along
from polyax.trace.symbolic import Zero

qr_p = Primitive("qr", multiple_results=True)
qr_p.batch, qr_p.factors = leading_batch(qr_p), leading_factors(qr_p)
qr_p.never("transpose", "qr is not linear")


def qr(x: Any, *, pivoting: bool = False, full_matrices: bool = True, use_magma: bool | None = None) -> tuple[Any, ...]:
    """``Q`` with orthonormal columns and the upper triangular ``R`` with ``Q R = x``.

    Args:
      pivoting: whether the columns of ``x`` are put in an order that makes the diagonal of ``R`` decrease; that order
        is the third result, and ``Q R = x[..., order]``.
      full_matrices: whether ``Q`` is square, or has as many columns as needed.
      use_magma: means nothing here.
    """
    return tuple(qr_p.bind(x, pivoting=bool(pivoting), full_matrices=bool(full_matrices), use_magma=None))


@def_rule(qr_p, "abstract_eval")
def _qr_abstract(x: ShapedArray, *, full_matrices: bool, pivoting: bool, use_magma: Any) -> list[ShapedArray]:
    check_matrix("qr", x)
    *batch, m, n = x.shape
    k = m if full_matrices else min(m, n)
    order = [ShapedArray((*batch, n), np.dtype("int32"))] if pivoting else []
    return [ShapedArray((*batch, m, k), x.dtype), ShapedArray((*batch, k, n), x.dtype), *order]


@def_rule(qr_p, "jvp")
def _qr_jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    """The first columns have the derivative of a thin factorization. What R has beside its triangle is Q^H x2, and what
    a square Q has beside its first columns follows from those."""
    q, r, *order = outs = qr_p.bind(primals[0], **params)
    (t,) = tangents
    if type(t) is Zero:
        return outs, [Zero.of(y) for y in outs]
    m, n = np.shape(primals[0])[-2:]
    k = min(m, n)
    t = take_along(t, rows_of(order[0], t), np.ndim(t) - 1) if order else t
    first, triangle = _columns(q, 0, k), _columns(_rows(r, 0, k), 0, k)
    dq, dr = _thin_jvp(first, triangle, _columns(t, 0, k))
    if m < n:
        beside = add(matmul(adjoint(dq), matmul(q, _columns(r, m, n))), matmul(adjoint(q), _columns(t, m, n)))
        dr = concatenate([dr, beside], np.ndim(r) - 1)
    if np.shape(q)[-1] > k:
        dq = concatenate([dq, _complement_jvp(first, dq)], np.ndim(q) - 1)
        dr = pad(dr, np.zeros((), aval_of(r).dtype), [*[(0, 0, 0)] * (np.ndim(r) - 2), (0, m - k, 0), (0, 0, 0)])
    return outs, [dq, dr, *map(Zero.of, order)]


def _thin_jvp(q: Any, r: Any, t: Any) -> tuple[Any, Any]:
    """With F = Q^H dx R^-1 and the skew O = lower(F) - lower(F)^H: dQ = dx R^-1 - Q (F - O), dR = (F - O) R."""
    scaled = triangular_solve(r, t)
    f = matmul(adjoint(q), scaled)
    below = lower(f, -1)
    skew = sub(below, adjoint(below))
    if dtypes.is_complex(aval_of(f).dtype):  # the diagonal of R stays real
        on_diag = select_n(on_diagonal(f), full_like(f, 0), f)
        skew = add(skew, sub(on_diag, convert(real(on_diag), aval_of(f).dtype)))
    rest = sub(f, skew)
    return sub(scaled, matmul(q, rest)), matmul(rest, r)


def _complement_jvp(q: Any, dq: Any) -> Any:
    """The derivative of the columns that make ``q`` square, of which reflections choose one of all bases.

    A product of n reflections is I + W M W^H, whose first n columns say that W = Q1 - I1 (the first columns of the
    identity taken off) and M = A^-H, where A and B are the upper and lower rows of W. The other columns are
    I2 + W Z^H with Z = B A^-1, so their derivative is dW Z^H + W A^-H (dB - Z dA)^H. A is inverted by its factors.
    """
    n = np.shape(q)[-1]
    rows = np.shape(q)[-2]
    w = sub(q, convert(on_diagonal(q), aval_of(q).dtype))
    basis, triangle = qr(_rows(w, 0, n), full_matrices=False)
    z = matmul(triangular_solve(triangle, _rows(w, n, rows)), adjoint(basis))
    change = sub(_rows(dq, n, rows), matmul(z, _rows(dq, 0, n)))
    inner = triangular_solve(triangle, matmul(w, basis), transpose_a=True, conjugate_a=True)
    return add(matmul(dq, adjoint(z)), matmul(inner, adjoint(change)))


def _columns(x: Any, start: int, stop: int) -> Any:
    return slice_in_dim(x, start, stop, axis=np.ndim(x) - 1)


def _rows(x: Any, start: int, stop: int) -> Any:
    return slice_in_dim(x, start, stop, axis=np.ndim(x) - 2)
