"""Scatters: an array with slices written, added, multiplied or compared at positions that another array holds.

``scatter`` and its kin are to ``gather`` what assignment is to reading. Slices that leave the array are dropped, or
clamped in mode CLIP. Of several writes to one place the last wins.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

import numpy as np

from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.primitive import Primitive, def_rule
from polyax.ops.basis import (
    add,
    convert,
    div,
    eq,
    full,
    full_like,
    iota,
    match_axis,
    move_axis,
    mul,
    named,
    neg,
    reshape,
    select_n,
    shape_tuple,
    zeros,
)
from polyax.ops.define import ANY_OR_KEY, NUMBER, Accepts, check_dtype, check_same_dtype, linear_jvp
from polyax.ops.gather import GatherDimensionNumbers, GatherScatterMode, gather, gather_p, up
from polyax.ops.index_checks import DimensionChecks, Dims
from polyax.ops.zeros import instantiate, zero_cotangents
from polyax.trace.symbolic import Zero, is_undef

__all__ = [
    "ScatterDimensionNumbers", "scatter", "scatter_add", "scatter_add_p", "scatter_max", "scatter_max_p", "scatter_min",
    "scatter_min_p", "scatter_mul", "scatter_mul_p", "scatter_p", "scatter_sub", "scatter_sub_p",
]  # fmt: skip

CHECKS = DimensionChecks("scatter")


class ScatterDimensionNumbers(NamedTuple):
    """How the dimensions of operand, indices and updates of a scatter correspond.

    Attributes:
      update_window_dims: dimensions of the updates that run over a slice.
      inserted_window_dims: operand dimensions of size 1 in a slice, which the updates leave out.
      scatter_dims_to_operand_dims: the operand dimension of each component of an index vector.
      operand_batching_dims: operand dimensions that go along with ``scatter_indices_batching_dims``.
      scatter_indices_batching_dims: the dimensions of the indices that they go along with.
    """

    update_window_dims: Dims
    inserted_window_dims: Dims
    scatter_dims_to_operand_dims: Dims
    operand_batching_dims: Dims = ()
    scatter_indices_batching_dims: Dims = ()

    def gather_numbers(self) -> GatherDimensionNumbers:
        """Those of the gather that reads what this scatter writes."""
        return GatherDimensionNumbers(*self)

    def window(self, operand: Dims, updates: Dims) -> Dims:
        """The size of a slice in each dimension of the operand."""
        left_out = {*self.inserted_window_dims, *self.operand_batching_dims}
        sizes = iter(self.update_window_dims)
        return tuple(1 if i in left_out else updates[next(sizes)] for i in range(len(operand)))


# --- definition -----------------------------------------------------------------------------------------------------


def _abstract(
    operand: ShapedArray, indices: ShapedArray, updates: ShapedArray, *, dimension_numbers: Any, **params: Any
) -> list[ShapedArray]:
    d = dimension_numbers
    check_same_dtype("scatter", (operand, updates))
    _check_numbers(operand, indices, updates, d)
    _check_updates(operand, indices, updates, d)
    return [operand]


def _check_numbers(
    operand: ShapedArray, indices: ShapedArray, updates: ShapedArray, d: ScatterDimensionNumbers
) -> None:
    CHECKS.integers(indices)
    rank = indices.ndim - 1 + len(d.update_window_dims)
    if updates.ndim != rank:
        raise TypeError(f"Updates tensor must be of rank {rank}; got {updates.ndim}.")
    CHECKS.ordered_within("update_window_dims", d.update_window_dims, updates.ndim)
    CHECKS.ordered_within("inserted_window_dims", d.inserted_window_dims, operand.ndim)
    CHECKS.distinct("operand_batching_dims", d.operand_batching_dims)
    CHECKS.ordered_within("operand_batching_dims", d.operand_batching_dims, operand.ndim)
    to_operand = "scatter_dims_to_operand_dims", d.scatter_dims_to_operand_dims
    for name, dims in (("inserted_window_dims", d.inserted_window_dims), to_operand):
        CHECKS.disjoint((name, "operand_batching_dims"), dims, d.operand_batching_dims)
    batching = d.operand_batching_dims, d.scatter_indices_batching_dims
    CHECKS.batching(operand, indices, "scatter_indices_batching_dims", *batching)
    window = len(d.update_window_dims) + len(d.inserted_window_dims) + len(d.operand_batching_dims)
    if window != operand.ndim:
        raise TypeError(f"Scatter op has window of size {window}; doesn't match operand of rank {operand.ndim}.")
    CHECKS.components(indices, *to_operand, operand.ndim)


def _check_updates(
    operand: ShapedArray, indices: ShapedArray, updates: ShapedArray, d: ScatterDimensionNumbers
) -> None:
    left_out = {*d.inserted_window_dims, *d.operand_batching_dims}  # of these an operand may have none
    for i, (n, size) in enumerate(zip(d.window(operand.shape, updates.shape), operand.shape, strict=True)):
        if n > size and i not in left_out:
            raise TypeError(
                "Bounds of the window dimensions of updates must not exceed the bounds of the corresponding dimensions "
                f"of operand. For operand dimension {i}, updates bound is {n}, operand bound is {size}."
            )
    batch = tuple(n for i, n in enumerate(updates.shape) if i not in d.update_window_dims)
    if batch != indices.shape[:-1]:
        raise TypeError(
            "Bounds of the scatter dimensions of updates must be the same as the bounds of the corresponding "
            f"dimensions of scatter indices: updates have {batch}, indices {indices.shape[:-1]}."
        )


def _scatter(name: str, accepts: Accepts = ANY_OR_KEY) -> Primitive:
    p = Primitive(name)

    def abstract_eval(operand: ShapedArray, *others: ShapedArray, **params: Any) -> list[ShapedArray]:
        check_dtype(name, operand, accepts, 0)
        return _abstract(operand, *others, **params)

    def batch(axis: Any, args: Any, dims: Any, *, dimension_numbers: Any, **params: Any) -> Any:
        """Batched indices give one more batching dimension; else each slice gets one more dimension."""
        operand, indices, updates = args
        operand = match_axis(axis, dims[0], 0, operand)
        updates = match_axis(axis, dims[2], 0, updates)
        d = ScatterDimensionNumbers(*map(up, dimension_numbers))
        if dims[1] is None:
            d = d._replace(
                update_window_dims=(0, *d.update_window_dims),
                scatter_indices_batching_dims=dimension_numbers.scatter_indices_batching_dims,
            )
        else:
            indices = move_axis(indices, dims[1], 0)
            d = d._replace(
                operand_batching_dims=(0, *d.operand_batching_dims),
                scatter_indices_batching_dims=(0, *d.scatter_indices_batching_dims),
            )
        return p.bind_all(operand, indices, updates, dimension_numbers=d, **params), [0]

    p.abstract_eval, p.batch = abstract_eval, batch
    return p


def _function(p: Primitive, doc: str) -> Callable[..., Any]:
    def scatter_op(
        operand: Any,
        scatter_indices: Any,
        updates: Any,
        dimension_numbers: ScatterDimensionNumbers,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
    ) -> Any:
        return p.bind1(
            operand,
            scatter_indices,
            updates,
            dimension_numbers=ScatterDimensionNumbers(*map(shape_tuple, dimension_numbers)),
            indices_are_sorted=bool(indices_are_sorted),
            unique_indices=bool(unique_indices),
            mode=GatherScatterMode.from_any(mode),
        )

    return named(scatter_op, p.name.replace("-", "_"), doc)


scatter_p = _scatter("scatter")
scatter_add_p = _scatter("scatter-add", NUMBER)
scatter_sub_p = _scatter("scatter-sub", NUMBER)
scatter_mul_p = _scatter("scatter-mul", NUMBER)
scatter_min_p = _scatter("scatter-min")
scatter_max_p = _scatter("scatter-max")

scatter = _function(scatter_p, "``operand`` with slices replaced by ``updates``.")
scatter_add = _function(scatter_add_p, "``operand`` with ``updates`` added to slices.")
scatter_sub = _function(scatter_sub_p, "``operand`` with ``updates`` subtracted from slices.")
scatter_mul = _function(scatter_mul_p, "``operand`` with slices multiplied by ``updates``.")
scatter_min = _function(scatter_min_p, "``operand`` with slices replaced by their minimum with ``updates``.")
scatter_max = _function(scatter_max_p, "``operand`` with slices replaced by their maximum with ``updates``.")


def slices_at(x: Any, indices: Any, updates_shape: Dims, params: dict[str, Any]) -> Any:
    """What stands in ``x`` where a scatter writes; 0 where its slices are dropped."""
    d = params["dimension_numbers"]
    fill = 0 if params["mode"] is GatherScatterMode.FILL_OR_DROP else None
    window = d.window(np.shape(x), updates_shape)
    flags = {k: params[k] for k in ("indices_are_sorted", "unique_indices", "mode")}
    return gather(x, indices, d.gather_numbers(), window, fill_value=fill, **flags)


# --- scatter and scatter_add, linear in operand and updates together ------------------------------------------------


for _p in (scatter_p, scatter_add_p, scatter_sub_p):
    _p.jvp = linear_jvp(_p, slice(0, 3, 2))
    _p.linear_in = (0, 2)


def _shape(x: Any) -> Dims:
    return x.aval.shape if is_undef(x) else np.shape(x)


def _accumulating_transpose(sign: Callable[[Any], Any]) -> Callable[..., list[Any]]:
    def transpose(cts: Any, operand: Any, indices: Any, updates: Any, **params: Any) -> list[Any]:
        (ct,) = cts
        if type(ct) is Zero:
            return zero_cotangents(operand, indices, updates)
        to_updates = sign(slices_at(ct, indices, _shape(updates), params)) if is_undef(updates) else None
        return [ct if is_undef(operand) else None, None, to_updates]

    return transpose


scatter_add_p.transpose = _accumulating_transpose(lambda ct: ct)
scatter_sub_p.transpose = _accumulating_transpose(neg)


@def_rule(scatter_p, "transpose")
def _scatter_transpose(cts: Any, operand: Any, indices: Any, updates: Any, **params: Any) -> list[Any]:
    """The operand gets nothing where it was overwritten; of several updates to one place, only the last gets it."""
    (ct,) = cts
    if type(ct) is Zero:
        return zero_cotangents(operand, indices, updates)
    shape = _shape(updates)
    zero = full_like(ct, 0, shape=shape)
    to_operand = scatter_p.bind1(ct, indices, zero, **params) if is_undef(operand) else None
    to_updates = None
    if is_undef(updates):
        to_updates = slices_at(ct, indices, shape, params)
        if not params["unique_indices"]:
            to_updates = select_n(_wins(indices, np.shape(ct), shape, params), zero, to_updates)
    return [to_operand, None, to_updates]


def _wins(indices: Any, operand_shape: Dims, updates_shape: Dims, params: dict[str, Any]) -> Any:
    """For each element of the updates, whether it is the one that stays: scatters their numbers and reads them back."""
    numbers = reshape(add(iota(np.int32, prod(updates_shape)), 1), updates_shape)
    written = scatter_p.bind1(full(operand_shape, 0, np.int32), indices, numbers, **params)
    return eq(slices_at(written, indices, updates_shape, params), numbers)


@def_rule(gather_p, "transpose")
def _gather_transpose(
    cts: Any, operand: Any, indices: Any, *, dimension_numbers: Any, slice_sizes: Dims, fill_value: Any, **flags: Any
) -> list[Any]:
    """Adds each cotangent where its primal was read."""
    if type(cts[0]) is Zero:
        return [Zero(operand.aval), None]
    numbers = ScatterDimensionNumbers(*dimension_numbers)
    return [scatter_add_p.bind1(zeros(operand.aval), indices, cts[0], dimension_numbers=numbers, **flags), None]


# --- scatter_mul, scatter_min, scatter_max --------------------------------------------------------------------------


@def_rule(scatter_mul_p, "jvp")
def _mul_jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    operand, indices, updates = primals
    y = scatter_mul_p.bind1(operand, indices, updates, **params)
    total: Any = Zero.of(y)
    if type(tangents[0]) is not Zero:
        total = scatter_mul_p.bind1(tangents[0], indices, updates, **params)
    if type(tangents[2]) is not Zero:
        if not params["unique_indices"]:
            raise NotImplementedError(
                "scatter_mul gradients are only implemented if `unique_indices=True`: factors that meet in one place "
                "have no derivative of their own"
            )
        change = mul(tangents[2], slices_at(operand, indices, np.shape(updates), params))
        base = zeros(aval_of(y)) if type(total) is Zero else total
        total = scatter_add_p.bind1(base, indices, change, **params)
    return [y], [total]


@def_rule(scatter_mul_p, "transpose")
def _mul_transpose(cts: Any, operand: Any, indices: Any, updates: Any, **params: Any) -> list[Any]:
    if is_undef(updates):
        raise NotImplementedError("scatter_mul is not linear in its updates")
    if type(cts[0]) is Zero:
        return [Zero(operand.aval), None, None]
    return [scatter_mul_p.bind1(cts[0], indices, updates, **params), None, None]


scatter_mul_p.linear_in = (0,)


def _extremum_jvp(p: Primitive) -> Callable[..., Any]:
    def jvp(primals: Any, tangents: Any, **params: Any) -> Any:
        """The mean of the tangents of all, operand included, that attain the extremum of their place."""
        operand, indices, updates = primals
        y = p.bind1(operand, indices, updates, **params)
        if type(tangents[0]) is Zero and type(tangents[2]) is Zero:
            return [y], [Zero.of(y)]
        dtype = aval_of(y).dtype
        kept = convert(eq(operand, y), dtype)
        attained = convert(eq(updates, slices_at(y, indices, np.shape(updates), params)), dtype)
        count = scatter_add_p.bind1(kept, indices, attained, **params)
        t_operand, t_updates = mul(instantiate(tangents[0]), kept), mul(instantiate(tangents[2]), attained)
        return [y], [div(scatter_add_p.bind1(t_operand, indices, t_updates, **params), count)]

    return jvp


for _p in (scatter_min_p, scatter_max_p):
    _p.jvp = _extremum_jvp(_p)
    _p.never("transpose", f"{_p.name} is not linear")
