"""Matrices reduced by elementary reflections, which are kept in the place of the zeros that they make, as in LAPACK.

A reflection is I - tau v v^H; the first number of v is 1 and is not stored. ``householder_product`` multiplies them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.primitive import Primitive, def_rule
from polyax.ops.matrices import adjoint, check_matrix, leading_batch, leading_factors, matmul
from polyax.ops.shape import rev
from polyax.ops.slicing import pad, slice_in_dim
from polyax.ops.spectral import householder_product

geqrf_p = Primitive("geqrf", multiple_results=True)
ormqr_p = Primitive("ormqr")
hessenberg_p = Primitive("hessenberg", multiple_results=True)
tridiagonal_p = Primitive("tridiagonal", multiple_results=True)

for _p in (geqrf_p, ormqr_p, hessenberg_p, tridiagonal_p):
    _p.batch, _p.factors = leading_batch(_p), leading_factors(_p)
    _p.never("jvp", f"the derivative of {_p.name} is not known here")
    _p.never("transpose", f"{_p.name} is not linear")


def geqrf(a: Any) -> list[Any]:
    """The factor R of ``a`` with the reflections of Q below it, and their scales."""
    return geqrf_p.bind(a)


@def_rule(geqrf_p, "abstract_eval")
def _geqrf_abstract(a: ShapedArray) -> list[ShapedArray]:
    check_matrix("geqrf", a)
    return [a, ShapedArray((*a.shape[:-2], min(a.shape[-2:])), a.dtype)]


def hessenberg(a: Any) -> list[Any]:
    """``a`` in a basis where it is zero below its first subdiagonal, with the reflections there; and their scales.

    >>> h, taus = hessenberg(np.eye(3, dtype=np.float32))
    >>> h.shape, taus.shape
    ((3, 3), (2,))
    """
    return hessenberg_p.bind(a)


@def_rule(hessenberg_p, "abstract_eval")
def _hessenberg_abstract(a: ShapedArray) -> list[ShapedArray]:
    check_matrix("hessenberg", a, square=True)
    return [a, ShapedArray((*a.shape[:-2], max(a.shape[-1] - 1, 0)), a.dtype)]


def tridiagonal(a: Any, *, lower: bool = True) -> list[Any]:
    """The Hermitian ``a`` in a basis where it is tridiagonal.

    Args:
      lower: which triangle of ``a`` is read and holds the reflections.

    Returns:
      The reduced matrix with its reflections, its diagonal, what is beside that, and the scales of the reflections.
    """
    if lower:
        return tridiagonal_p.bind(a, lower=True)
    check_matrix("tridiagonal", aval_of(a), square=True)
    last = np.ndim(a) - 1
    found = tridiagonal_p.bind(rev(a, (last - 1, last)), lower=True)  # from the other corner, the upper one is lower
    return [rev(found[0], (last - 1, last)), *(rev(x, (last - 1,)) for x in found[1:])]


@def_rule(tridiagonal_p, "abstract_eval")
def _tridiagonal_abstract(a: ShapedArray, *, lower: bool) -> list[ShapedArray]:
    check_matrix("tridiagonal", a, square=True)
    *batch, n, _ = a.shape
    real = dtypes.real_part(a.dtype)
    off = (*batch, max(n - 1, 0))
    return [a, ShapedArray((*batch, n), real), ShapedArray(off, real), ShapedArray(off, a.dtype)]


# --- ormqr -----------------------------------------------------------------------------------------------------------


def ormqr(a: Any, taus: Any, c: Any, *, left: bool = True, transpose: bool = False) -> Any:
    """``c`` times the square Q whose reflections are below the diagonal of ``a``.

    Args:
      left: whether Q stands left of ``c``, or right.
      transpose: whether the adjoint of Q is meant.

    Raises:
      ValueError: the shapes don't fit.
    """
    return ormqr_p.bind1(a, taus, c, left=bool(left), transpose=bool(transpose))


@def_rule(ormqr_p, "abstract_eval")
def _ormqr_abstract(
    a: ShapedArray, taus: ShapedArray, c: ShapedArray, *, left: bool, transpose: bool
) -> list[ShapedArray]:
    for x in (a, c):
        check_matrix("ormqr", x)
    size = c.shape[-2 if left else -1]
    if a.shape[-2] != size or a.shape[:-2] != c.shape[:-2] or taus.shape[:-1] != a.shape[:-2]:
        raise ValueError(f"ormqr: shapes {a.shape}, {taus.shape} and {c.shape} don't fit with {left=}")
    if taus.shape[-1] > min(a.shape[-2:]):
        raise ValueError(f"ormqr: there are {taus.shape[-1]} scales for a matrix of shape {a.shape}")
    return [c]


def _ormqr(a: Any, taus: Any, c: Any, *, left: bool, transpose: bool) -> list[Any]:
    q = square_product(a, taus)
    q = adjoint(q) if transpose else q
    return [matmul(q, c) if left else matmul(c, q)]


def square_product(a: Any, taus: Any) -> Any:
    """The product of the reflections as a square matrix, however many columns ``a`` has."""
    *batch, m, n = np.shape(a)
    a = slice_in_dim(a, 0, min(m, n), axis=len(batch) + 1)
    none = [(0, 0, 0)] * len(batch)
    wide = pad(a, np.zeros((), a.dtype), [*none, (0, 0, 0), (0, m - min(m, n), 0)])
    return householder_product(wide, taus)


ormqr_p.decompose = _ormqr
