"""Small steps of linear algebra: updates of factors, products with themselves, pivots, tridiagonal systems.

Each is a primitive made of others; devices may have routines of their own for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polyax import numpy as jnp
from polyax.control.flow.looping import fori_loop, scan
from polyax.ir import dtypes
from polyax.ir.aval import ShapedArray
from polyax.ir.primitive import Primitive, def_rule
from polyax.meshes.factors import Factors, leading
from polyax.ops.basis import neg
from polyax.ops.define import check_same_dtype, flat_jvp, materialize
from polyax.ops.matrices import check_matrix, leading_batch, leading_factors, matmul
from polyax.ops.zeros import add_tangents, instantiate
from polyax.trace.symbolic import Zero, is_undef

cholesky_update_p = Primitive("cholesky_update")
symmetric_product_p = Primitive("symmetric_product")
lu_pivots_to_permutation_p = Primitive("lu_pivots_to_permutation")
tridiagonal_solve_p = Primitive("tridiagonal_solve")

# --- pivots ----------------------------------------------------------------------------------------------------------


def lu_pivots_to_permutation(pivots: Any, permutation_size: int) -> Any:
    """The permutation that a sequence of row exchanges makes.

    Args:
      pivots: for each row in turn, with which it is exchanged (``int32``).
      permutation_size: how many rows there are.

    >>> print(lu_pivots_to_permutation(np.array([1, 2, 2], np.int32), 3))
    [1 2 0]
    """
    return lu_pivots_to_permutation_p.bind1(pivots, permutation_size=int(permutation_size))


@def_rule(lu_pivots_to_permutation_p, "abstract_eval")
def _permutation_abstract(pivots: ShapedArray, *, permutation_size: int) -> list[ShapedArray]:
    if pivots.dtype != np.int32:
        raise TypeError(
            f"lu_pivots_to_permutation does not accept dtype {pivots.dtype} at position 0. "
            "Accepted dtypes at position 0 are subtypes of int32."
        )
    if pivots.ndim < 1 or pivots.shape[-1] > permutation_size:
        raise ValueError(f"Output permutation size {permutation_size} has to exceed the trailing dimension of the "
                         f"pivots. Got pivots size {pivots.shape}")  # fmt: skip
    return [ShapedArray((*pivots.shape[:-1], permutation_size), pivots.dtype)]


def _permutation(pivots: Any, *, permutation_size: int) -> list[Any]:
    rows = jnp.broadcast_to(jnp.arange(permutation_size, dtype=np.int32), (*pivots.shape[:-1], permutation_size))
    if not pivots.shape[-1]:
        return [rows]
    place = jnp.broadcast_to(jnp.arange(permutation_size, dtype=np.int32), rows.shape)

    def exchange(k: Any, rows: Any) -> Any:
        other = jnp.take(pivots, jnp.full((1,), k), axis=-1)
        mine = jnp.take(rows, jnp.full((1,), k), axis=-1)
        theirs = jnp.take_along_axis(rows, other, axis=-1)
        return jnp.where(place == k, theirs, jnp.where(place == other, mine, rows))

    return [fori_loop(0, pivots.shape[-1], exchange, rows)]


lu_pivots_to_permutation_p.jvp = flat_jvp(lu_pivots_to_permutation_p)
lu_pivots_to_permutation_p.never("transpose", "a permutation is discrete")
lu_pivots_to_permutation_p.decompose = _permutation


@def_rule(lu_pivots_to_permutation_p, "factors")
def _permutation_factors(pivots: ShapedArray, **params: int) -> Factors:
    return leading(pivots.ndim - 1, [pivots], _permutation_abstract(pivots, **params))


@def_rule(lu_pivots_to_permutation_p, "batch")
def _permutation_batch(axis: Any, args: Any, dims: Any, **params: Any) -> Any:
    return lu_pivots_to_permutation_p.bind_all(*materialize(axis, args, dims), **params), [0]


# --- updates ---------------------------------------------------------------------------------------------------------


def cholesky_update(r_matrix: Any, w_vector: Any) -> Any:
    """The upper triangular factor of ``R^T R + w w^T``, from that of ``R^T R``, by rotations of rows.

    >>> print(cholesky_update(2 * np.eye(1, dtype=np.float32), np.ones(1, np.float32) * 1.5))
    [[2.5]]
    """
    for position, x in enumerate((r_matrix, w_vector)):
        if np.ndim(x) != 2 - position:
            raise TypeError(
                f"Input {position} to cholesky_update must have a rank of exactly {2 - position}, "
                f"but got shape={np.shape(x)}"
            )
    return cholesky_update_p.bind1(r_matrix, w_vector)


@def_rule(cholesky_update_p, "abstract_eval")
def _update_abstract(r: ShapedArray, w: ShapedArray) -> list[ShapedArray]:
    for position, x in enumerate((r, w)):
        if not dtypes.is_float(x.dtype):
            raise TypeError(
                f"cholesky_update does not accept dtype {dtypes.full_name(x.dtype)} at position {position}. "
                f"Accepted dtypes at position {position} are subtypes of floating."
            )
    check_same_dtype("cholesky_update", (r, w))
    if r.shape[-2] != r.shape[-1] or w.shape != r.shape[:-1]:
        raise ValueError(
            "Rank-1 update to Cholesky decomposition takes a square matrix and a vector of the same size as input. "
            f"Got shapes {r.shape} and {w.shape} instead"
        )
    return [r]


def _update(r: Any, w: Any) -> list[Any]:
    """Each row is turned against what is left of w, such that the element of w below the diagonal becomes 0."""
    columns = jnp.arange(r.shape[-1])

    def rotate(w: Any, at: Any) -> Any:
        k, row = at
        a, b = jnp.sum(jnp.where(columns == k, row, 0), -1), jnp.sum(jnp.where(columns == k, w, 0), -1)
        size = jnp.hypot(a, b)
        c, s = (x[..., None] for x in (a / size, b / size))
        return jnp.where(columns > k, c * w - s * row, 0), c * row + s * w

    rows = jnp.moveaxis(r, -2, 0)
    return [jnp.moveaxis(scan(rotate, w, (columns, rows))[1], 0, -2)]


def symmetric_product(
    a_matrix: Any, c_matrix: Any, *, alpha: float = 1.0, beta: float = 0.0, symmetrize_output: bool = False
) -> Any:
    """``alpha a a^T + beta c``, for a symmetric ``c``.

    Args:
      symmetrize_output: whether the result's lower triangle counts for both.
    """
    product = symmetric_product_p.bind1(a_matrix, c_matrix, alpha=float(alpha), beta=float(beta))
    if not symmetrize_output:
        return product
    return jnp.tril(product) + jnp.swapaxes(jnp.tril(product, -1), -1, -2)


@def_rule(symmetric_product_p, "abstract_eval")
def _product_abstract(a: ShapedArray, c: ShapedArray, **_: float) -> list[ShapedArray]:
    check_matrix("symmetric_product", a)
    check_matrix("symmetric_product", c, square=True)
    if c.shape[-1] != a.shape[-2]:
        raise ValueError(f"symmetric_update expects compatible dimensions of inputs. Got shapes {a.shape}, {c.shape}")
    return [c]


def _product(a: Any, c: Any, *, alpha: float, beta: float) -> list[Any]:
    return [jnp.asarray(alpha * matmul(a, jnp.swapaxes(a, -1, -2)) + beta * c)]


for _p, _rule in ((cholesky_update_p, _update), (symmetric_product_p, _product)):
    _p.batch, _p.factors, _p.decompose = leading_batch(_p), leading_factors(_p), _rule
    _p.never("jvp", f"the derivative of {_p.name} is not known here")
    _p.never("transpose", f"{_p.name} is not linear")

# --- tridiagonal systems ---------------------------------------------------------------------------------------------


def tridiagonal_solve(dl: Any, d: Any, du: Any, b: Any, *, perturb_singular: bool = False) -> Any:
    """``x`` with ``T x = b`` for tridiagonal matrices ``T``, by elimination with exchanges of neighbouring rows.

    Args:
      dl: what stands left of the diagonal ``d``, whose first number is ignored.
      du: what stands right of it, whose last number is ignored.
      b: matrices of right sides.
      perturb_singular: whether a pivot of 0 is replaced by a small number.

    >>> x = tridiagonal_solve(np.zeros(2), np.array([2.0, 4.0]), np.zeros(2), np.ones((2, 1)))
    >>> print(x[:, 0])
    [0.5  0.25]
    """
    return tridiagonal_solve_p.bind1(dl, d, du, b, perturb_singular=bool(perturb_singular))


tridiagonal_solve_p.batch = leading_batch(tridiagonal_solve_p)
tridiagonal_solve_p.linear_in = (3,)


@def_rule(tridiagonal_solve_p, "factors")
def _solve_factors(*avals: ShapedArray, **params: bool) -> Factors:
    return leading(avals[0].ndim - 1, avals, _solve_abstract(*avals, **params))


@def_rule(tridiagonal_solve_p, "abstract_eval")
def _solve_abstract(
    dl: ShapedArray, d: ShapedArray, du: ShapedArray, b: ShapedArray, *, perturb_singular: bool
) -> list[ShapedArray]:
    if b.ndim < 2:
        raise TypeError(f"Input 3 to tridiagonal_solve must have rank at least 2, but got shape={b.shape}")
    if not dl.shape == d.shape == du.shape == b.shape[:-1]:
        raise TypeError(
            "tridiagonal_solve requires that all diagonals are like the columns of b, "
            f"got shapes {dl.shape}, {d.shape}, {du.shape} and {b.shape}"
        )
    check_same_dtype("tridiagonal_solve", (dl, d, du, b))
    return [b]


@def_rule(tridiagonal_solve_p, "jvp")
def _solve_jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    """From T x = b: T dx = db - dT x."""
    dl, d, du, _ = primals
    x = tridiagonal_solve_p.bind1(*primals, **params)
    right: Any = tangents[3]
    if any(type(t) is not Zero for t in tangents[:3]):
        diagonals = [instantiate(t) for t in tangents[:3]]
        right = add_tangents(right, neg(_product_with(diagonals, x)))
    if type(right) is Zero:
        return [x], [Zero.of(x)]
    return [x], [tridiagonal_solve_p.bind1(dl, d, du, right, **params)]


def _product_with(diagonals: Sequence[Any], x: Any) -> Any:
    """T x, where T has these below, on and above its main one."""
    dl, d, du = diagonals
    above, below = _moved(x, 1), _moved(x, -1)
    return dl[..., None] * above + d[..., None] * x + du[..., None] * below


def _moved(x: Any, by: int, axis: int = -2) -> Any:
    """What stands one place before or after, with 0 at the end."""
    x = jnp.moveaxis(x, axis, 0)
    edge = jnp.zeros_like(x[:1])
    parts = [edge, x[:-1]] if by > 0 else [x[1:], edge]
    return jnp.moveaxis(jnp.concatenate(parts), 0, axis)


@def_rule(tridiagonal_solve_p, "transpose")
def _solve_transpose(cts: Any, dl: Any, d: Any, du: Any, b: Any, **params: Any) -> list[Any]:
    if any(map(is_undef, (dl, d, du))):
        raise NotImplementedError("tridiagonal_solve is not linear in its matrix")
    if type(cts[0]) is Zero:
        return [None, None, None, Zero(b.aval)]
    above, below = _moved(du, 1, -1), _moved(dl, -1, -1)
    return [None, None, None, tridiagonal_solve_p.bind1(above, d, below, cts[0], **params)]


def _solve(dl: Any, d: Any, du: Any, b: Any, *, perturb_singular: bool) -> list[Any]:
    """The current row has three numbers and right sides; the larger of its first and the next row's is the pivot."""
    tiny = float(jnp.finfo(d.dtype).tiny) ** 0.5 if perturb_singular else 0.0
    du = jnp.where(jnp.arange(d.shape[-1]) == d.shape[-1] - 1, 0, du)
    rows = [jnp.moveaxis(x, -1, 0) for x in (dl, d, du)] + [jnp.moveaxis(b, -2, 0)]

    def eliminate(row: Any, following: Any) -> Any:
        (p, q, c), (left, mid, right, e) = row, following
        swap = jnp.abs(left) > jnp.abs(p)
        zero = jnp.zeros_like(p)
        first, second, third = (jnp.where(swap, x, y) for x, y in ((left, p), (mid, q), (right, zero)))
        other, after, last = (jnp.where(swap, x, y) for x, y in ((p, left), (q, mid), (zero, right)))
        side, rest = jnp.where(swap[..., None], e, c), jnp.where(swap[..., None], c, e)
        first = jnp.where((first == 0) & (tiny > 0), tiny, first)
        factor = other / first
        new = after - factor * second, last - factor * third, rest - factor[..., None] * side
        return new, (first, second, third, side)

    p, q, c = rows[1][0], rows[2][0], rows[3][0]
    (p, q, c), upper = scan(eliminate, (p, q, c), tuple(x[1:] for x in rows))
    p = jnp.where((p == 0) & (tiny > 0), tiny, p)

    def substitute(found: Any, row: Any) -> Any:
        (one, two), (first, second, third, side) = found, row
        x = (side - second[..., None] * one - third[..., None] * two) / first[..., None]
        return (x, one), x

    last = c / p[..., None]
    _, others = scan(substitute, (last, jnp.zeros_like(last)), upper, reverse=True)
    return [jnp.moveaxis(jnp.concatenate([others, last[None]]), 0, -2)]


tridiagonal_solve_p.decompose = _solve
