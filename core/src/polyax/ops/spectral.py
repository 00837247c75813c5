"""Orthogonal factorizations: eigenvalues and singular values; products of reflections.

Derivatives are in Giles, "An extended collection of matrix derivative results" (2008), and for rectangular singular
value decompositions in Townsend, "Differentiating the singular value decomposition" (2016).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.dims import min_dim
from polyax.ir.primitive import Primitive, def_rule
from polyax.ops.basis import add, convert, div, eq, full_like, mul, reduce_sum, select_n, sub
from polyax.ops.convert import real
from polyax.ops.matrices import (
    adjoint,
    check_matrix,
    columns_of,
    conjugate,
    leading_batch,
    leading_factors,
    matmul,
    on_diagonal,
    rows_of,
)
from polyax.ops.slicing import slice_in_dim
from polyax.ops.solve import symmetrized
from polyax.trace.symbolic import Zero

eigh_p = Primitive("eigh", multiple_results=True)
svd_p = Primitive("svd", multiple_results=True)
householder_product_p = Primitive("householder_product")

for _p in (eigh_p, svd_p, householder_product_p):
    _p.batch, _p.factors = leading_batch(_p), leading_factors(_p)
    _p.never("transpose", f"{_p.name} is not linear")


def _unchanged(outs: list[Any]) -> Any:
    return outs, [Zero.of(y) for y in outs]


def _real_dtype(x: ShapedArray) -> Any:
    return dtypes.real_part(x.dtype)


def _real_part(x: Any) -> Any:
    return real(x) if dtypes.is_complex(aval_of(x).dtype) else x


# --- products of reflections ------------------------------------------------------------------------------------------


def householder_product(a: Any, taus: Any) -> Any:
    """The product of the elementary reflections whose vectors are below the diagonal of ``a``, scaled by ``taus``."""
    return householder_product_p.bind1(a, taus)


@def_rule(householder_product_p, "abstract_eval")
def _householder_abstract(a: ShapedArray, taus: ShapedArray) -> list[ShapedArray]:
    check_matrix("householder_product", a)
    m, n = a.shape[-2:]
    if m < n:
        raise ValueError(f"householder_product requires m >= n, got shape {a.shape}")
    if taus.shape[:-1] != a.shape[:-2] or taus.shape[-1] > n:
        raise ValueError(f"householder_product: taus of shape {taus.shape} don't fit a matrix of shape {a.shape}")
    return [a]


householder_product_p.never("jvp", "the derivative of a product of reflections is not built yet")

# --- eigh ------------------------------------------------------------------------------------------------------------


def eigh(
    x: Any,
    *,
    lower: bool = True,
    symmetrize_input: bool = True,
    sort_eigenvalues: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    implementation: Any = None,
) -> tuple[Any, Any]:
    """Eigenvectors (columns) and ascending eigenvalues of Hermitian matrices; only one triangle is read.

    Args:
      subset_by_index: the first of the eigenvalues that are wanted, and the one after the last.
      implementation: an ``EighImplementation``, which is ignored: each device has one.

    Raises:
      ValueError: ``subset_by_index`` isn't a range of their indices.
    """
    v, w = eigh_p.bind(
        symmetrized(x) if symmetrize_input else x,
        lower=bool(lower),
        sort_eigenvalues=bool(sort_eigenvalues),
        subset_by_index=None,
        algorithm=None,
    )
    if subset_by_index is None:
        return v, w
    first, last = _range("eigh", subset_by_index, np.shape(x)[-1])
    return slice_in_dim(v, first, last, axis=np.ndim(v) - 1), slice_in_dim(w, first, last, axis=np.ndim(w) - 1)


def _range(name: str, subset: tuple[int, int], count: int) -> tuple[int, int]:
    first, last = subset
    if not 0 <= first < last <= count:
        raise ValueError(f"subset_by_index of {name} must be (first, last) within (0, {count}), got {subset}")
    return first, last


@def_rule(eigh_p, "abstract_eval")
def _eigh_abstract(x: ShapedArray, **params: Any) -> list[ShapedArray]:
    check_matrix(
        "eigh", x, square=True, what="Argument to symmetric eigendecomposition must have shape [..., n, n], got"
    )
    return [ShapedArray(x.shape, x.dtype), ShapedArray(x.shape[:-1], _real_dtype(x))]


@def_rule(eigh_p, "jvp")
def _eigh_jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    """With D = V^H dx V: dw = diag(D), dV = V (D / (w_j - w_i)). Only dV needs what isn't on the diagonal of D."""
    v, w = eigh_p.bind(primals[0], **params)
    if type(tangents[0]) is Zero:
        return _unchanged([v, w])
    half = matmul(symmetrized(tangents[0]), v)
    dw = _real_part(reduce_sum(mul(conjugate(v), half), (np.ndim(v) - 2,)))
    d = matmul(adjoint(v), half)
    gaps = convert(_inverse_off_diagonal(sub(rows_of(w, d), columns_of(w, d))), aval_of(d).dtype)
    return [v, w], [matmul(v, mul(gaps, d)), dw]


def _inverse_off_diagonal(x: Any) -> Any:
    """``1 / x``, with zeros on the diagonal."""
    diag = on_diagonal(x)
    return select_n(diag, div(full_like(x, 1), select_n(diag, x, full_like(x, 1))), full_like(x, 0))


# --- svd -------------------------------------------------------------------------------------------------------------


def svd(
    x: Any,
    *,
    full_matrices: bool = True,
    compute_uv: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    algorithm: Any = None,
) -> Any:
    """``U``, descending ``s`` and ``V^H`` with ``U diag(s) V^H = x``; ``s`` alone unless ``compute_uv``.

    Args:
      subset_by_index: the first of the singular values that are wanted, and the one after the last.
      algorithm: an ``SvdAlgorithm``, which is ignored: each device has one.

    Raises:
      ValueError: ``subset_by_index`` isn't a range of their indices, or comes with ``full_matrices``.
    """
    if subset_by_index is not None:
        return _part_of_svd(x, full_matrices and compute_uv, compute_uv, subset_by_index)
    s, *vectors = svd_p.bind(
        x, full_matrices=bool(full_matrices), compute_uv=bool(compute_uv), subset_by_index=None, algorithm=None
    )
    return (vectors[0], s, vectors[1]) if compute_uv else s


def _part_of_svd(x: Any, full: bool, compute_uv: bool, subset: tuple[int, int]) -> Any:
    first, last = _range("svd", subset, min(np.shape(x)[-2:]))
    if full:
        raise ValueError("svd with subset_by_index needs full_matrices=False")
    found = svd(x, full_matrices=False, compute_uv=compute_uv)
    u, s, vh = found if compute_uv else (None, found, None)
    end = np.ndim(s) - 1
    s = slice_in_dim(s, first, last, axis=end)
    if not compute_uv:
        return s
    return slice_in_dim(u, first, last, axis=end + 1), s, slice_in_dim(vh, first, last, axis=end)


@def_rule(svd_p, "abstract_eval")
def _svd_abstract(x: ShapedArray, *, full_matrices: bool, compute_uv: bool, **params: Any) -> list[ShapedArray]:
    check_matrix("svd", x)
    *batch, m, n = x.shape
    k = min_dim(m, n)
    s = ShapedArray((*batch, k), _real_dtype(x))
    if not compute_uv:
        return [s]
    rows, columns = (m, n) if full_matrices else (k, k)
    return [s, ShapedArray((*batch, m, rows), x.dtype), ShapedArray((*batch, columns, n), x.dtype)]


@def_rule(svd_p, "jvp")
def _svd_jvp(primals: Any, tangents: Any, *, full_matrices: bool, compute_uv: bool, **params: Any) -> Any:
    """With D = U^H dx V: ds = diag(D), and skew corrections of U and V by 1 / (s_j^2 - s_i^2)."""
    (x,), (t,) = primals, tangents
    if type(t) is Zero:
        return _unchanged(svd_p.bind(x, full_matrices=full_matrices, compute_uv=compute_uv, **params))
    m, n = np.shape(x)[-2:]
    if compute_uv and full_matrices and m != n:
        raise NotImplementedError(
            f"the derivative of svd with full_matrices=True exists for square matrices, got {m} x {n}; "
            "use full_matrices=False"
        )
    s, u, vh = svd_p.bind(x, full_matrices=False, compute_uv=True, **params)
    half = matmul(adjoint(u), t)
    ds = _real_part(reduce_sum(mul(half, conjugate(vh)), (np.ndim(vh) - 1,)))
    if not compute_uv:
        return [s], [ds]
    d = matmul(half, adjoint(vh))
    du, dv = _singular_vectors(s, u, vh, t, d)
    return [s, u, vh], [ds, du, adjoint(dv)]


def _singular_vectors(s: Any, u: Any, vh: Any, t: Any, d: Any) -> tuple[Any, Any]:
    dtype, v = aval_of(d).dtype, adjoint(vh)
    columns, rows = columns_of(s, d), rows_of(s, d)
    f = convert(_inverse_off_diagonal(mul(add(rows, columns), sub(rows, columns))), dtype)
    right, left = mul(convert(rows, dtype), d), mul(convert(columns, dtype), d)
    skew_u, skew_v = mul(f, add(right, adjoint(right))), mul(f, add(left, adjoint(left)))
    if dtypes.is_complex(dtype):  # the phases that U and V share go to U
        safe = convert(select_n(eq(rows, 0), rows, full_like(rows, 1)), dtype)
        half = div(sub(d, adjoint(d)), mul(safe, 2))
        skew_u = add(skew_u, select_n(on_diagonal(d), full_like(d, 0), half))
    return (
        _changed_basis(u, skew_u, lambda: matmul(t, v), s),
        _changed_basis(v, skew_v, lambda: matmul(adjoint(t), u), s),
    )


def _changed_basis(basis: Any, skew: Any, change: Callable[[], Any], s: Any) -> Any:
    """``basis`` turned by ``skew``, and the part of the change that leaves its space, over the singular values: none
    of a square basis."""
    within = matmul(basis, skew)
    rows, columns = np.shape(basis)[-2:]
    if rows == columns:
        return within
    leaving = change()
    leaving = sub(leaving, matmul(basis, matmul(adjoint(basis), leaving)))
    return add(within, div(leaving, convert(rows_of(s, leaving), aval_of(leaving).dtype)))
