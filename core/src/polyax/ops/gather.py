"""Gather: slices of an array at positions that another array holds. Dimension numbers and modes as in XLA.

For each index vector (the last dimension of ``indices``) a slice of ``slice_sizes`` is taken from ``operand``; its
dimensions, less the collapsed and batching ones, stand at ``offset_dims`` of the result.
"""

from __future__ import annotations

import enum
import math
from typing import Any, NamedTuple

import numpy as np

from polyax.ir import dtypes
from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.primitive import Primitive, def_rule
from polyax.ops.basis import move_axis, shape_tuple
from polyax.ops.index_checks import DimensionChecks, Dims
from polyax.trace.symbolic import Zero

__all__ = ["GatherDimensionNumbers", "GatherScatterMode", "gather", "gather_p"]

gather_p = Primitive("gather")
CHECKS = DimensionChecks("gather")


class GatherScatterMode(enum.Enum):
    """What happens to slices that leave the array: clamped, filled or dropped, or promised not to occur."""

    CLIP = 1
    FILL_OR_DROP = 2
    PROMISE_IN_BOUNDS = 3
    ONE_HOT = 4

    @staticmethod
    def from_any(mode: Any) -> GatherScatterMode:
        """A mode or its name; None is ``FILL_OR_DROP``."""
        if isinstance(mode, GatherScatterMode):
            return mode
        if mode not in _MODES:
            raise ValueError(f'Unknown gather mode "{mode}"')
        return _MODES[mode]


_MODES = {
    None: GatherScatterMode.FILL_OR_DROP,
    "fill": GatherScatterMode.FILL_OR_DROP,
    "drop": GatherScatterMode.FILL_OR_DROP,
    "clip": GatherScatterMode.CLIP,
    "promise_in_bounds": GatherScatterMode.PROMISE_IN_BOUNDS,
}


class GatherDimensionNumbers(NamedTuple):
    """How the dimensions of operand, indices and result of a gather correspond.

    Attributes:
      offset_dims: dimensions of the result that run over a slice.
      collapsed_slice_dims: operand dimensions whose slices have size 1 and are left out of the result.
      start_index_map: the operand dimension of each component of an index vector.
      operand_batching_dims: operand dimensions that go along with ``start_indices_batching_dims``.
      start_indices_batching_dims: the dimensions of the indices that they go along with.
    """

    offset_dims: Dims
    collapsed_slice_dims: Dims
    start_index_map: Dims
    operand_batching_dims: Dims = ()
    start_indices_batching_dims: Dims = ()


def gather(
    operand: Any,
    start_indices: Any,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Any,
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: Any = None,
    fill_value: Any = None,
) -> Any:
    """Slices of ``operand`` at ``start_indices``; these are promised to be in bounds unless ``mode`` says otherwise.

    ``fill_value`` takes the place of slices that leave the array when ``mode`` is ``FILL_OR_DROP``; by default NaN, the
    lowest signed integer, or the highest unsigned one.

    >>> import polyax.numpy as jnp
    >>> from polyax import lax
    >>> rows = lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))
    >>> lax.gather(jnp.arange(6).reshape(3, 2), jnp.array([[2], [0]]), rows, slice_sizes=(1, 2)).tolist()
    [[4, 5], [0, 1]]
    """
    mode = GatherScatterMode.from_any("promise_in_bounds" if mode is None else mode)
    if mode is GatherScatterMode.FILL_OR_DROP and fill_value is None:
        fill_value = default_fill(aval_of(operand).dtype)
    return gather_p.bind1(
        operand,
        start_indices,
        dimension_numbers=GatherDimensionNumbers(*map(shape_tuple, dimension_numbers)),
        slice_sizes=shape_tuple(slice_sizes),
        unique_indices=bool(unique_indices),
        indices_are_sorted=bool(indices_are_sorted),
        mode=mode,
        fill_value=fill_value if mode is GatherScatterMode.FILL_OR_DROP else None,
    )


def default_fill(dtype: Any) -> Any:
    if dtypes.is_inexact(dtype):
        return math.nan  # always the same object: one NaN isn't equal to another, and programs are found by parameters
    if dtype == np.bool_:
        return True
    info = dtypes.iinfo(dtype.physical if dtypes.is_extended(dtype) else dtype)
    return int(info.max if dtypes.is_unsigned(dtype) or dtypes.is_extended(dtype) else info.min)


# --- type -----------------------------------------------------------------------------------------------------------


@def_rule(gather_p, "abstract_eval")
def _abstract(
    operand: ShapedArray, indices: ShapedArray, *, dimension_numbers: Any, slice_sizes: Dims, **params: Any
) -> list[ShapedArray]:
    d = dimension_numbers
    rank = indices.ndim - 1 + len(d.offset_dims)
    _check_numbers(operand, indices, d, rank)
    _check_slices(operand, indices, d, slice_sizes)
    left_out = {*d.collapsed_slice_dims, *d.operand_batching_dims}
    batch, offset = iter(indices.shape[:-1]), iter([n for i, n in enumerate(slice_sizes) if i not in left_out])
    shape = tuple(next(offset) if i in d.offset_dims else next(batch) for i in range(rank))
    return [ShapedArray(shape, operand.dtype, operand.weak_type)]


def _check_numbers(operand: ShapedArray, indices: ShapedArray, d: GatherDimensionNumbers, rank: int) -> None:
    CHECKS.integers(indices)
    CHECKS.ordered("offset_dims", d.offset_dims)
    for i, dim in enumerate(d.offset_dims):
        if not 0 <= dim < rank:
            raise TypeError(
                f"Offset dimension {i} in gather op is out of bounds; got {dim}, but should have been in [0, {rank})"
            )
    CHECKS.components(indices, "start_index_map", d.start_index_map, operand.ndim)
    CHECKS.ordered_within("collapsed_slice_dims", d.collapsed_slice_dims, operand.ndim)
    CHECKS.distinct("operand_batching_dims", d.operand_batching_dims)
    CHECKS.ordered_within("operand_batching_dims", d.operand_batching_dims, operand.ndim)
    for name, dims in (("collapsed_slice_dims", d.collapsed_slice_dims), ("start_index_map", d.start_index_map)):
        CHECKS.disjoint((name, "operand_batching_dims"), dims, d.operand_batching_dims)
    batching = d.operand_batching_dims, d.start_indices_batching_dims
    CHECKS.batching(operand, indices, "start_indices_batching_dims", *batching)


def _check_slices(operand: ShapedArray, indices: ShapedArray, d: GatherDimensionNumbers, slice_sizes: Dims) -> None:
    if len(slice_sizes) != operand.ndim:
        raise TypeError(
            "Gather op must have one slice size for every input dimension; "
            f"got: len(slice_sizes)={len(slice_sizes)}, input_shape.rank={operand.ndim}"
        )
    if len(slice_sizes) != len(d.offset_dims) + len(d.collapsed_slice_dims) + len(d.operand_batching_dims):
        raise TypeError(
            "All components of the offset index in a gather op must either be a offset dimension or explicitly "
            f"collapsed/batching; got len(slice_sizes)={len(slice_sizes)}, output_slice_sizes={d.offset_dims}, "
            f"collapsed_slice_dims={d.collapsed_slice_dims}, operand_batching_dims={d.operand_batching_dims}."
        )
    for i, (n, size) in enumerate(zip(slice_sizes, operand.shape, strict=True)):
        if not 0 <= n <= size and 0 not in indices.shape:
            raise TypeError(
                f"Slice size at index {i} in gather op is out of range, must be within [0, {size} + 1), got {n}."
            )
    _check_bounds(d.collapsed_slice_dims, slice_sizes, "only collapse slice dims with bound 1")
    _check_bounds(d.operand_batching_dims, slice_sizes, "only have operand batching dims with bound 0/1")


def _check_bounds(dims: Dims, slice_sizes: Dims, can: str) -> None:
    for position, i in enumerate(dims):
        if slice_sizes[i] > 1:
            raise TypeError(f"Gather op can {can}, but bound is {slice_sizes[i]} for index {i} at position {position}.")


# --- derivatives and batching ---------------------------------------------------------------------------------------


@def_rule(gather_p, "jvp")
def _jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    """Linear in the operand; what is filled in is constant."""
    y = gather_p.bind1(*primals, **params)
    if type(tangents[0]) is Zero:
        return [y], [Zero.of(y)]
    params["fill_value"] = None if params["fill_value"] is None else 0
    return [y], [gather_p.bind1(tangents[0], primals[1], **params)]


gather_p.linear_in = (0,)  # its transpose stands with scatter_add, which it is


@def_rule(gather_p, "batch")
def _batch(axis: Any, args: Any, dims: Any, *, dimension_numbers: Any, slice_sizes: Dims, **params: Any) -> Any:
    """A batched operand gives one more offset or batching dimension, batched indices one more batch dimension."""
    (operand, indices), (operand_dim, indices_dim) = args, dims
    d = dimension_numbers
    offset_dims, index_batching = up(d.offset_dims), d.start_indices_batching_dims
    if indices_dim is not None:
        indices, index_batching = move_axis(indices, indices_dim, 0), up(index_batching)
    if operand_dim is not None:
        operand = move_axis(operand, operand_dim, 0)
        d = d._replace(
            collapsed_slice_dims=up(d.collapsed_slice_dims),
            start_index_map=up(d.start_index_map),
            operand_batching_dims=up(d.operand_batching_dims),
        )
        if indices_dim is None:
            offset_dims, slice_sizes = (0, *offset_dims), (axis.size, *slice_sizes)
        else:
            slice_sizes = (min(1, axis.size), *slice_sizes)
            d = d._replace(operand_batching_dims=(0, *d.operand_batching_dims))
            index_batching = (0, *index_batching)
    elif indices_dim is not None:  # what is promised of one element's indices isn't so of all of them together
        params |= {"unique_indices": False, "indices_are_sorted": False}
    d = d._replace(offset_dims=offset_dims, start_indices_batching_dims=index_batching)
    return gather_p.bind_all(operand, indices, dimension_numbers=d, slice_sizes=slice_sizes, **params), [0]


def up(dims: Dims) -> Dims:
    """Dimensions renumbered for a new one in front."""
    return tuple(d + 1 for d in dims)
