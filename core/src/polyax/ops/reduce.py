"""Reductions over axes: sums, products, extrema, logic, and the positions of extrema."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import index
from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.config import config
from polyax.ir.dtypes import BOOL, full_name, is_integer
from polyax.ir.primitive import Primitive, def_rule
from polyax.meshes.factors import Factors, factors
from polyax.ops.basis import (
    broadcast_in_dim,
    convert,
    div,
    eq,
    mul,
    named,
    reduce_sum,
    reduce_sum_p,
    reshape,
    transpose,
)
from polyax.ops.cumulative import cumprod
from polyax.ops.define import ANY, NUMBER, ORDERED, Accepts, check_dtype, flat_jvp, linear
from polyax.ops.recurrence import shifted
from polyax.ops.slicing import pad, slice_in_dim
from polyax.trace.symbolic import Zero

__all__ = [
    "argmax", "argmax_p", "argmin", "argmin_p", "reduce_and", "reduce_and_p", "reduce_max", "reduce_max_p",
    "reduce_min", "reduce_min_p", "reduce_or", "reduce_or_p", "reduce_prod", "reduce_prod_p", "reduce_xor",
    "reduce_xor_p",
]  # fmt: skip

Axes = tuple[int, ...]


def reduced_shape(x: ShapedArray, axes: Axes) -> tuple[int, ...]:
    """The shape of ``x`` without ``axes``; raises JAX's errors for repeated and missing axes."""
    if len(set(axes)) != len(axes):
        raise ValueError(f"duplicate value in 'axes' of reduction: {axes}")
    if not all(0 <= a < x.ndim for a in axes):
        raise ValueError(f"reduction axes {axes} contains out-of-bounds indices for {x}.")
    return tuple(n for i, n in enumerate(x.shape) if i not in axes)


def restore_axes(y: Any, shape: tuple[int, ...], axes: Axes) -> Any:
    """``y``, a reduction over ``axes``, stretched to ``shape`` again."""
    return broadcast_in_dim(y, shape, [i for i in range(len(shape)) if i not in axes])


def reduction_factors(xs: Sequence[ShapedArray], outs: int, axes: Axes, parts: str | None = None) -> Factors:
    """Of reductions of arrays (and scalars) whose parts are put together so, or else need all of each axis."""
    kept = [d for d in range(xs[0].ndim) if d not in axes]
    how: dict[str, Any] = {"reduced": dict.fromkeys(axes, parts)} if parts else {"whole": axes}
    return factors([range(x.ndim) for x in xs], [kept] * outs, **how)


def _reduction(
    name: str | Primitive,
    accepts: Accepts,
    parts: Callable[[ShapedArray], str | None],
    check: Callable[[ShapedArray], None] | None = None,
) -> Primitive:
    """``parts`` says how results of parts of an axis are put together, if that is one of the ways devices know."""
    p = name if isinstance(name, Primitive) else Primitive(name)

    def abstract_eval(x: ShapedArray, *, axes: Axes) -> list[ShapedArray]:
        if check:
            check(x)
        else:
            check_dtype(p.name, x, accepts)
        return [ShapedArray(reduced_shape(x, axes), x.dtype, x.weak_type)]

    def batch(axis: Any, args: Any, dims: Any, *, axes: Axes) -> Any:
        (dim,) = dims
        moved = tuple(a + (a >= dim) for a in axes)
        return p.bind_all(args[0], axes=moved), [dim - sum(a < dim for a in moved)]

    def rule(x: ShapedArray, *, axes: Axes) -> Factors:
        return reduction_factors([x], 1, axes, parts(x))

    p.abstract_eval, p.batch, p.factors = abstract_eval, batch, rule
    p.never("transpose", f"{p.name} is not linear")
    return p


def _function(p: Primitive, doc: str) -> Callable[..., Any]:
    def reduction(operand: Any, axes: Sequence[int]) -> Any:
        return p.bind1(operand, axes=tuple(map(index, axes)))

    return named(reduction, p.name, doc)


# --- sums and products ----------------------------------------------------------------------------------------------


def _check_summed(x: ShapedArray) -> None:
    check_dtype("reduce_sum", x, NUMBER)
    if x.dtype in (np.float16, dtypes.bfloat16) and not config.get("allow_f16_reductions"):
        raise ValueError(
            f"reduce_sum on operand {x.str_short(True)} is not allowed when jax_allow_f16_reductions=False."
        )


_reduction(reduce_sum_p, NUMBER, lambda _: "sum", _check_summed)
reduce_sum_p.absent.clear()
linear(reduce_sum_p, lambda ct, x, axes: restore_axes(ct, x.shape, axes))

reduce_prod_p = _reduction("reduce_prod", NUMBER, lambda _: None)
reduce_prod = _function(reduce_prod_p, "The product over ``axes``.")


@def_rule(reduce_prod_p, "jvp")
def _prod_jvp(primals: Any, tangents: Any, *, axes: Axes) -> Any:
    """The sum over elements of (product of the others) x tangent, also where elements are zero."""
    (x,), (t,) = primals, tangents
    y = reduce_prod(x, axes)
    if type(t) is Zero:
        return [y], [Zero.of(y)]
    return [y], [reduce_sum(mul(t, _products_of_others(x, axes)), axes)]


LONG = 1 << 10
"""Elements of a row from which on running products, each of which waits for the one before, are taken in columns."""


def _products_of_others(x: Any, axes: Axes) -> Any:
    """For each element the product of all others along ``axes``: of those before it, times those after it.

    Unlike a quotient, this and its own derivatives are right where elements are zero.
    """
    shape = np.shape(x)
    axis, count = min(axes, default=len(shape)), math.prod(shape[i] for i in axes)
    after = [i for i in range(axis, len(shape)) if i not in axes]
    order = (*range(axis), *axes, *after)
    moved = transpose(x, order)
    rows = reshape(moved, (*shape[:axis], count, *[shape[i] for i in after]))
    others = _before_and_after(rows, axis) if count < LONG else _in_columns(rows, axis)
    return transpose(reshape(others, np.shape(moved)), np.argsort(order))


def _in_columns(rows: Any, axis: int) -> Any:
    """Each row as a matrix, behind which ones make it full: others of the column, times the other columns' products."""
    outer, (count, *inner) = np.shape(rows)[:axis], np.shape(rows)[axis:]
    columns = _divisor(count)
    height = -(-count // columns)
    full = pad(rows, 1, [(0, height * columns - count if i == axis else 0, 0) for i in range(np.ndim(rows))])
    tiles = reshape(full, (*outer, height, columns, *inner))
    rest = _before_and_after(reduce_prod(tiles, (axis,)), axis)
    others = mul(_before_and_after(tiles, axis), restore_axes(rest, np.shape(tiles), (axis,)))
    return slice_in_dim(reshape(others, np.shape(full)), 0, count, axis=axis)


def _divisor(count: int) -> int:
    """The divisor next to the square root, which it is itself if none is within a quarter of it."""
    side = math.isqrt(count)
    return next((n for n in range(side, 3 * side // 4, -1) if count % n == 0), side)


def _before_and_after(x: Any, axis: int) -> Any:
    before = shifted(cumprod(x, axis), 1, 1, axis, reverse=False)
    after = shifted(cumprod(x, axis, reverse=True), 1, 1, axis, reverse=True)
    return mul(before, after)


# --- extrema --------------------------------------------------------------------------------------------------------


def _extremum_jvp(p: Primitive) -> Callable[..., Any]:
    def jvp(primals: Any, tangents: Any, *, axes: Axes) -> Any:
        """The mean of the tangents at the places where the extremum is attained."""
        (x,), (t,) = primals, tangents
        y = p.bind1(x, axes=axes)
        if type(t) is Zero:
            return [y], [Zero.of(y)]
        attained = convert(eq(x, restore_axes(y, np.shape(x), axes)), aval_of(t).dtype)
        return [y], [div(reduce_sum(mul(t, attained), axes), reduce_sum(attained, axes))]

    return jvp


reduce_max_p = _reduction("reduce_max", ORDERED, lambda _: "max")
reduce_min_p = _reduction("reduce_min", ORDERED, lambda _: "min")
reduce_max_p.jvp = _extremum_jvp(reduce_max_p)
reduce_min_p.jvp = _extremum_jvp(reduce_min_p)

reduce_max = _function(reduce_max_p, "The maximum over ``axes``; NaN if any element is, -inf if there is none.")
reduce_min = _function(reduce_min_p, "The minimum over ``axes``; NaN if any element is, inf if there is none.")

# --- logic ----------------------------------------------------------------------------------------------------------


def _check_logical(x: ShapedArray) -> None:
    if not (x.dtype in BOOL or is_integer(x.dtype)):
        raise TypeError(f"logical reduction requires operand dtype bool or int, got {full_name(x.dtype)}.")


def _logical(name: str, of_booleans: str | None) -> Primitive:
    p = _reduction(name, ANY, lambda x: of_booleans if x.dtype in BOOL else None, _check_logical)
    p.jvp = flat_jvp(p)
    return p


reduce_and_p = _logical("reduce_and", "min")
reduce_or_p = _logical("reduce_or", "max")
reduce_xor_p = _logical("reduce_xor", None)

reduce_and = _function(reduce_and_p, "And over ``axes``: all, for booleans; of bits, for integers.")
reduce_or = _function(reduce_or_p, "Or over ``axes``: any, for booleans; of bits, for integers.")
reduce_xor = _function(reduce_xor_p, "Exclusive or over ``axes``.")

# --- positions of extrema -------------------------------------------------------------------------------------------


def _arg_extremum(name: str) -> Primitive:
    p = Primitive(name)

    def abstract_eval(x: ShapedArray, *, axes: Axes, index_dtype: Any) -> list[ShapedArray]:
        (axis,) = axes
        check_dtype(name, x, ORDERED)
        if not 0 <= axis < x.ndim:
            raise ValueError(f"Invalid axis {axis} for operand shape {x.shape}")
        if x.shape[axis] < 1:
            raise ValueError(f"argmin and argmax require non-empty reduced dimension. operand.shape={x.shape} {axis=}")
        if not dtypes.is_integer(index_dtype):
            raise TypeError(f"index_dtype must be an integer type, but got {full_name(index_dtype)}")
        return [ShapedArray(reduced_shape(x, axes), index_dtype)]

    def batch(axis: Any, args: Any, dims: Any, *, axes: Axes, index_dtype: Any) -> Any:
        (dim,), (a,) = dims, axes
        moved = a + (a >= dim)
        return p.bind_all(args[0], axes=(moved,), index_dtype=index_dtype), [dim - (moved < dim)]

    p.abstract_eval, p.batch, p.jvp = abstract_eval, batch, flat_jvp(p)
    p.factors = lambda x, *, axes, **_: reduction_factors([x], 1, axes)
    p.never("transpose", f"{name} gives integers, which have no cotangents")
    return p


argmax_p, argmin_p = map(_arg_extremum, ("argmax", "argmin"))


def argmax(operand: Any, axis: int, index_dtype: Any) -> Any:
    """The index of the first maximum along ``axis``; that of the first NaN, if there is one."""
    return argmax_p.bind1(operand, axes=(index(axis),), index_dtype=dtypes.canonicalize(index_dtype))


def argmin(operand: Any, axis: int, index_dtype: Any) -> Any:
    """The index of the first minimum along ``axis``; that of the first NaN, if there is one."""
    return argmin_p.bind1(operand, axes=(index(axis),), index_dtype=dtypes.canonicalize(index_dtype))
