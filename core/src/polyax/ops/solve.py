"""Triangular systems and the factorizations that lead to them: Cholesky and LU.

Derivatives are in Giles, "An extended collection of matrix derivative results" (2008); tangents are forward mode's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polyax.ir.aval import ShapedArray
from polyax.ir.primitive import Primitive, def_rule
from polyax.meshes.factors import Factors, factors
from polyax.ops.basis import add, broadcast_in_dim, div, full, full_like, mul, neg, reshape, select_n
from polyax.ops.compare import bitwise_and
from polyax.ops.define import check_same_dtype
from polyax.ops.matrices import (
    adjoint,
    check_matrix,
    conjugate,
    leading_batch,
    leading_factors,
    lower,
    matmul,
    on_diagonal,
    transposed,
    upper,
)
from polyax.ops.slicing import pad, slice_in_dim
from polyax.ops.sort import take_along
from polyax.ops.zeros import add_tangents
from polyax.trace.symbolic import Zero, is_undef

cholesky_p = Primitive("cholesky")
triangular_solve_p = Primitive("triangular_solve")
lu_p = Primitive("lu", multiple_results=True)

for _p in (cholesky_p, triangular_solve_p, lu_p):
    _p.batch, _p.factors = leading_batch(_p), leading_factors(_p)

# --- triangular_solve ------------------------------------------------------------------------------------------------


def triangular_solve(
    a: Any,
    b: Any,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Any:
    """Solves ``op(a) x = b`` (``left_side``) or ``x op(a) = b`` for a triangular ``a``.

    Only the triangle that ``lower`` names is read, without its diagonal if that is taken to be ones. ``b`` holds
    matrices, or vectors where it has one dimension less than ``a``.

    >>> import polyax.numpy as jnp
    >>> from polyax import lax
    >>> a, b = jnp.array([[2.0, 0.0], [1.0, 1.0]]), jnp.array([2.0, 3.0])
    >>> lax.linalg.triangular_solve(a, b, left_side=True, lower=True).tolist()
    [1.0, 2.0]
    """
    shape = np.shape(b)
    vector = len(shape) == np.ndim(a) - 1
    if vector:
        b = reshape(b, (*shape, 1) if left_side else (*shape[:-1], 1, shape[-1]))
    x = triangular_solve_p.bind1(
        a,
        b,
        left_side=bool(left_side),
        lower=bool(lower),
        transpose_a=bool(transpose_a),
        conjugate_a=bool(conjugate_a),
        unit_diagonal=bool(unit_diagonal),
    )
    return reshape(x, shape) if vector else x


@def_rule(triangular_solve_p, "abstract_eval")
def _triangular_abstract(a: ShapedArray, b: ShapedArray, *, left_side: bool, **flags: bool) -> list[ShapedArray]:
    check_matrix("triangular_solve", a, True, "The first input to triangular_solve must be a square matrix. Got")
    check_same_dtype("triangular_solve", (a, b))
    if a.shape[:-2] != b.shape[:-2]:
        raise TypeError(
            "triangular_solve requires both arguments to have the same batch dimensions, "
            f"got {a.shape[:-2]} and {b.shape[:-2]}"
        )
    shared = b.shape[-2 if left_side else -1]
    if a.shape[-1] != shared:
        raise ValueError(f"Incompatible shapes for arguments to triangular_solve: {a.shape} and {b.shape}.")
    return [ShapedArray(b.shape, b.dtype, b.weak_type)]


@def_rule(triangular_solve_p, "jvp")
def _triangular_jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    """From op(a) x = b: op(a) dx = db - op(da) x."""
    (a, b), (ta, tb) = primals, tangents
    x = triangular_solve_p.bind1(a, b, **params)
    right: Any = tb
    if type(ta) is not Zero:
        da = _read_part(ta, params)
        product = matmul(da, x) if params["left_side"] else matmul(x, da)
        right = add_tangents(tb, neg(product))
    if type(right) is Zero:
        return [x], [Zero.of(x)]
    return [x], [triangular_solve_p.bind1(a, right, **params)]


def _read_part(a: Any, params: dict[str, Any]) -> Any:
    """op(a), with zeros where ``a`` isn't read."""
    off = 1 if params["unit_diagonal"] else 0
    a = lower(a, -off) if params["lower"] else upper(a, off)
    a = transposed(a) if params["transpose_a"] else a
    return conjugate(a) if params["conjugate_a"] else a


@def_rule(triangular_solve_p, "transpose")
def _triangular_transpose(cts: Any, a: Any, b: Any, **params: Any) -> list[Any]:
    if is_undef(a):
        raise NotImplementedError("triangular_solve is not linear in its matrix")
    if type(cts[0]) is Zero:
        return [None, Zero(b.aval)]
    params["transpose_a"] = not params["transpose_a"]
    return [None, triangular_solve_p.bind1(a, cts[0], **params)]


triangular_solve_p.linear_in = (1,)


@def_rule(triangular_solve_p, "factors")
def _triangular_factors(a: ShapedArray, b: ShapedArray, *, left_side: bool, **flags: bool) -> Factors:
    """Right sides are free as well, each being solved for alone."""
    batch = range(a.ndim - 2)
    sides = [*batch, None, len(batch)] if left_side else [*batch, len(batch), None]
    return factors([[*batch, None, None], sides], [sides])


# --- cholesky --------------------------------------------------------------------------------------------------------


def cholesky(x: Any, *, symmetrize_input: bool = True) -> Any:
    """The lower triangular ``L`` with ``L L^H = x``; NaN where ``x`` isn't positive definite.

    >>> import polyax.numpy as jnp
    >>> from polyax import lax
    >>> lax.linalg.cholesky(jnp.array([[4.0, 2.0], [2.0, 2.0]])).tolist()
    [[2.0, 0.0], [1.0, 1.0]]
    """
    return cholesky_p.bind1(symmetrized(x) if symmetrize_input else x)


def symmetrized(x: Any) -> Any:
    return div(add(x, adjoint(x)), 2)


@def_rule(cholesky_p, "abstract_eval")
def _cholesky_abstract(x: ShapedArray) -> list[ShapedArray]:
    check_matrix("cholesky", x, square=True)
    return [x]


@def_rule(cholesky_p, "jvp")
def _cholesky_jvp(primals: Any, tangents: Any) -> Any:
    """dL = L phi(L^-1 dx L^-H), where phi is the lower triangle with half the diagonal."""
    factor = cholesky_p.bind1(primals[0])
    if type(tangents[0]) is Zero:
        return [factor], [Zero.of(factor)]
    half = triangular_solve(factor, tangents[0], left_side=True, lower=True)
    inner = triangular_solve(factor, half, lower=True, transpose_a=True, conjugate_a=True)
    phi = mul(lower(inner), select_n(on_diagonal(inner), full_like(inner, 1), full_like(inner, 0.5)))
    return [factor], [matmul(factor, phi)]


cholesky_p.never("transpose", "cholesky is not linear")

# --- lu --------------------------------------------------------------------------------------------------------------


def lu(x: Any) -> list[Any]:
    """Factors with partial pivoting: ``x[permutation] = L U``.

    Returns:
      Both factors in one matrix (the unit diagonal of ``L`` left out), the row exchanges in order (``int32``), and the
      permutation that they make.
    """
    return lu_p.bind(x)


@def_rule(lu_p, "abstract_eval")
def _lu_abstract(x: ShapedArray) -> list[ShapedArray]:
    check_matrix("lu", x)
    *batch, m, n = x.shape
    integer = np.dtype("int32")
    return [
        ShapedArray(x.shape, x.dtype),
        ShapedArray((*batch, min(m, n)), integer),
        ShapedArray((*batch, m), integer),
    ]


@def_rule(lu_p, "jvp")
def _lu_jvp(primals: Any, tangents: Any) -> Any:
    """With F = L^-1 P dx U^-1: dL = L lower(F), dU = upper(F) U. Rectangular factors are completed by ones."""
    packed, pivots, permutation = lu_p.bind(primals[0])
    (t,) = tangents
    discrete = [Zero.of(pivots), Zero.of(permutation)]
    if type(t) is Zero:
        return [packed, pivots, permutation], [Zero.of(packed), *discrete]
    *batch, m, n = np.shape(packed)
    k = min(m, n)
    unit_lower = lower(_completed(slice_in_dim(packed, 0, k, axis=len(batch) + 1), m), -1)
    unit_lower = select_n(on_diagonal(unit_lower), unit_lower, full_like(unit_lower, 1))
    u = upper(_completed(slice_in_dim(packed, 0, k, axis=len(batch)), n))
    rows = _rows(t, permutation)
    f = triangular_solve(unit_lower, rows, left_side=True, lower=True, unit_diagonal=True)
    f = triangular_solve(u, f)
    change = add(matmul(unit_lower, lower(f, -1)), matmul(upper(f), u))
    return [packed, pivots, permutation], [change, *discrete]


def _rows(x: Any, permutation: Any) -> Any:
    ndim = np.ndim(x)
    order = broadcast_in_dim(permutation, np.shape(x), range(ndim - 1))
    return take_along(x, order, ndim - 2)


def _completed(x: Any, size: int) -> Any:
    """``x``, padded to a square matrix of ``size`` with ones on the new diagonal elements."""
    *batch, m, n = np.shape(x)
    config = [(0, 0, 0)] * len(batch) + [(0, size - m, 0), (0, size - n, 0)]
    padded = pad(x, 0, config)
    is_new = pad(full(np.shape(x), False), True, config)
    return select_n(bitwise_and(on_diagonal(padded), is_new), padded, full_like(padded, 1))


lu_p.never("transpose", "lu is not linear")
