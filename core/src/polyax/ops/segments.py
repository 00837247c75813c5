"""Reductions of segments: the elements whose ids are equal are combined, by one scatter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.dims import dim_index
from polyax.ir.errors import ConcretizationTypeError
from polyax.meshes.resharding import with_out_sharding
from polyax.ops.basis import broadcast_in_dim, expand_dims, full, named
from polyax.ops.gather import GatherScatterMode
from polyax.ops.scatter import ScatterDimensionNumbers, scatter_add, scatter_max, scatter_min, scatter_mul
from polyax.trace.tracer import Tracer

_DOC = """The {what} of the slices of ``data`` along its first dimension whose ids are equal.

    Args:
      data: an array.
      segment_ids: one integer for each slice; slices whose id is no segment are dropped. A number, or a single slice,
        counts once for each id.
      num_segments: the size of the result's first dimension; the largest id plus one, if it isn't given.
      mode: what is done with ids out of range, as for scatters.

    Raises:
      ValueError: there aren't as many ids as slices, or ``num_segments`` is negative.
      TypeError: ids that are no integers.
    """


def _segments(name: str, what: str, scatter: Callable[..., Any], start: Callable[[Any], Any]) -> Callable[..., Any]:
    @with_out_sharding
    def segment(
        data: Any,
        segment_ids: Any,
        num_segments: int | None = None,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        bucket_size: int | None = None,
        mode: Any = None,
        out_sharding: Any = None,
    ) -> Any:
        x, ids = aval_of(data), aval_of(segment_ids)
        if not dtypes.is_integer(ids.dtype):
            raise TypeError(f"{name} segment_ids must be integers, got {ids}.")
        slices = _slice_for_each_id(name, data, ids)
        count = _count(name, segment_ids, num_segments)
        none = full((count, *x.shape[1:]), start(x.dtype), x.dtype)
        numbers = ScatterDimensionNumbers(tuple(range(ids.ndim, np.ndim(slices))), (0,), (0,))
        kind = GatherScatterMode.FILL_OR_DROP if mode is None else mode
        flags = {"indices_are_sorted": indices_are_sorted, "unique_indices": unique_indices, "mode": kind}
        return scatter(none, expand_dims(segment_ids, (ids.ndim,)), slices, numbers, **flags)

    return named(segment, name, _DOC.format(what=what))


def _slice_for_each_id(name: str, data: Any, ids: ShapedArray) -> Any:
    """``data``, broadcast to the shape of the ids and of the slices."""
    x = aval_of(data)
    wanted = (*ids.shape, *x.shape[1:])
    missing = len(wanted) - x.ndim
    if missing < 0 or any(have not in (1, want) for have, want in zip(x.shape, wanted[missing:], strict=True)):
        raise ValueError(
            f"{name} needs one id for each slice of data along its first dimension: got {x} and {ids}, "
            f"and {x} doesn't broadcast to {ids.with_shape(wanted, dtype=x.dtype)}."
        )
    return data if x.shape == wanted else broadcast_in_dim(data, wanted, range(missing, len(wanted)))


def _count(name: str, ids: Any, given: int | None) -> int:
    if given is None:
        if isinstance(ids, Tracer):
            raise ConcretizationTypeError(
                f"{name} needs to know the number of segments while it is traced: give num_segments."
            )
        return max(int(np.max(np.asarray(ids), initial=-1)) + 1, 0)
    count = dim_index(given)
    if count < 0:
        raise ValueError(f"{name} num_segments must be non-negative, got {given}.")
    return count


def _extreme(highest: bool) -> Callable[[Any], Any]:
    def value(dtype: Any) -> Any:
        if dtypes.is_inexact(dtype):  # complex numbers too: they are ordered by their real parts first
            return np.inf if highest else -np.inf
        if dtype == np.bool_:
            return highest
        return dtypes.extremes(dtype)[highest]

    return value


segment_sum = _segments("segment_sum", "sum", scatter_add, lambda _: 0)
segment_prod = _segments("segment_prod", "product", scatter_mul, lambda _: 1)
segment_max = _segments("segment_max", "maximum", scatter_max, _extreme(highest=False))
segment_min = _segments("segment_min", "minimum", scatter_min, _extreme(highest=True))
