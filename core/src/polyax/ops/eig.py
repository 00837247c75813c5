"""Eigenvalues of general matrices.

With A V = V diag(w) and U^H A = diag(w) U^H, D = (U^H dA V) / (u_i^H v_i): dw = diag(D), and the eigenvectors change by
V (D / (w_j - w_i)) as far as their length and phase are free; these are as in LAPACK: length 1, largest component real.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.primitive import Primitive, def_rule
from polyax.ops.basis import convert, div, eq, full_like, mul, reduce_sum, select_n, sub
from polyax.ops.convert import complex, conj, imag
from polyax.ops.elementwise import abs
from polyax.ops.matrices import (
    adjoint,
    check_matrix,
    columns_of,
    diagonal,
    leading_batch,
    leading_factors,
    matmul,
    on_diagonal,
    rows_of,
)
from polyax.ops.reduce import reduce_max
from polyax.trace.symbolic import Zero

eig_p = Primitive("eig", multiple_results=True)
eig_p.batch, eig_p.factors = leading_batch(eig_p), leading_factors(eig_p)
eig_p.never("transpose", "eig is not linear")


def eig(
    x: Any,
    *,
    compute_left_eigenvectors: bool = True,
    compute_right_eigenvectors: bool = True,
    enable_eigvec_derivs: bool = False,
    implementation: Any = None,
    use_magma: bool | None = None,
) -> list[Any]:
    """Eigenvalues of general square matrices, and their left and right eigenvectors (columns) if asked for; complex.

    Args:
      enable_eigvec_derivs: without effect: eigenvectors always have derivatives here, as vectors of length 1 with a
        real largest component.
      implementation, use_magma: mean nothing here, each device has one implementation.

    >>> print(eig(np.array([[2.0, 1.0], [0.0, 3.0]]))[0])
    [2.+0.j 3.+0.j]
    """
    return eig_p.bind(
        x,
        compute_left_eigenvectors=bool(compute_left_eigenvectors),
        compute_right_eigenvectors=bool(compute_right_eigenvectors),
    )


@def_rule(eig_p, "abstract_eval")
def _abstract_eval(
    x: ShapedArray, *, compute_left_eigenvectors: bool, compute_right_eigenvectors: bool
) -> list[ShapedArray]:
    check_matrix("eig", x, square=True)
    dtype = np.dtype(np.complex128 if x.dtype in (np.float64, np.complex128) else np.complex64)
    vectors = [ShapedArray(x.shape, dtype)] * (compute_left_eigenvectors + compute_right_eigenvectors)
    return [ShapedArray(x.shape[:-1], dtype), *vectors]


@def_rule(eig_p, "jvp")
def _jvp(primals: Any, tangents: Any, **wanted: bool) -> Any:
    (x,), (t,) = primals, tangents
    if type(t) is Zero:
        outs = eig_p.bind(x, **wanted)
        return outs, [Zero.of(y) for y in outs]
    w, u, v = eig(x)
    inner = matmul(matmul(adjoint(u), convert(t, aval_of(w).dtype)), v)
    overlaps = columns_of(_columns_product(u, v), inner)
    change = div(inner, overlaps)
    outs, dots = [w], [diagonal(change)]
    if wanted["compute_left_eigenvectors"]:
        outs.append(u)
        dots.append(_vectors_change(u, conj(w), div(adjoint(inner), conj(overlaps))))
    if wanted["compute_right_eigenvectors"]:
        outs.append(v)
        dots.append(_vectors_change(v, w, change))
    return outs, dots


def _columns_product(a: Any, b: Any) -> Any:
    """Inner products of the columns of two matrices."""
    return reduce_sum(mul(conj(a), b), (np.ndim(a) - 2,))


def _vectors_change(v: Any, w: Any, change: Any) -> Any:
    gaps = sub(rows_of(w, change), columns_of(w, change))
    diag = on_diagonal(change)
    mixing = select_n(diag, div(change, select_n(diag, gaps, full_like(gaps, 1))), full_like(change, 0))
    dv = matmul(v, mixing)
    dv = sub(dv, mul(v, rows_of(_columns_product(v, dv), v)))
    return sub(dv, mul(v, rows_of(_turn(v, dv), v)))


def _turn(v: Any, dv: Any) -> Any:
    """By how much the largest component of each column leaves the real axis, as an imaginary number."""
    size, axes = abs(v), (np.ndim(v) - 2,)
    largest = eq(size, rows_of(reduce_max(size, axes), size))
    ratio = div(dv, select_n(largest, full_like(v, 1), v))
    angle = imag(reduce_sum(select_n(largest, full_like(v, 0), ratio), axes))
    return complex(full_like(angle, 0), angle)
