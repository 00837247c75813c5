"""What indexes with arrays: slices that begin somewhere, gathers and scatters."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from polyax_onnx.rules.table import rule
from polyax_onnx.writer import NotInOnnx, Tensor


def _clipped(x: Tensor, highest: Sequence[int]) -> Tensor:
    return x.op("Max", 0).op("Min", x.model.constant(highest, np.int64))


def _starts(x: Tensor, starts: Sequence[Tensor], sizes: Sequence[int]) -> Tensor:
    """Where a slice begins, as far as there is room for it."""
    columns = [s.cast("int64").reshape([1]) for s in starts]
    return _clipped(columns[0].concat(columns[1:], 0), [m - n for m, n in zip(x.shape, sizes, strict=True)])


@rule("dynamic_slice")
def _dynamic_slice(x: Tensor, *starts: Tensor, slice_sizes: Sequence[int]) -> Tensor:
    if not starts:
        return x.op("Identity")
    begin = _starts(x, starts, slice_sizes)
    axes = x.model.ints(*range(len(starts)))
    return x.op("Slice", begin, begin + x.model.ints(*slice_sizes), axes, shape=slice_sizes)


@rule("dynamic_update_slice")
def _dynamic_update_slice(x: Tensor, update: Tensor, *starts: Tensor) -> Tensor:
    if not starts or 0 in update.shape:
        return x.op("Identity", shape=x.shape) if starts else update.op("Identity")
    places = x.model.constant(np.moveaxis(np.indices(update.shape), 0, -1), np.int64)
    return x.op("ScatterND", places + _starts(x, starts, update.shape), update, shape=x.shape)


class _Places:
    """Where slices lie: for each element of (batch dimensions, slice dimensions that aren't left out) its coordinates,
    of starts that are clipped; and which of them were inside."""

    def __init__(self, x: Tensor, indices: Tensor, d: Any, window: Sequence[int]) -> None:
        self.batch, rank = indices.shape[:-1], len(x.shape)
        kept = [i for i in range(rank) if i not in d.collapsed_slice_dims and i not in d.operand_batching_dims]
        self.shape = (*self.batch, *(window[i] for i in kept))
        wanted = indices.cast("int64")
        starts = _clipped(wanted, [x.shape[i] - window[i] for i in d.start_index_map])
        self.inside = (starts == wanted).cast("int32").reduce("ReduceMin", [len(self.batch)]).cast("bool")
        column = [list(d.start_index_map).index(i) if i in d.start_index_map else -1 for i in range(rank)]
        zeros = x.model.constant(0, np.int64).expand([*self.batch, 1])
        which = x.model.constant([indices.shape[-1] if c < 0 else c for c in column], np.int64)
        spread = starts.concat([zeros], len(self.batch))
        spread = spread.op("Gather", which, shape=[*self.batch, rank], axis=len(self.batch))
        fixed = self._fixed(kept, window, rank, d)
        self.at = spread.reshape([*self.batch, *[1] * len(kept), rank]) + x.model.constant(fixed, np.int64)

    def _fixed(self, kept: Sequence[int], window: Sequence[int], rank: int, d: Any) -> np.ndarray:
        """What doesn't depend on indices: offsets in a slice, and the element of a batch that it is for."""
        fixed, n = np.zeros((*self.shape, rank), np.int64), len(self.batch)
        along = {dim: n + k for k, dim in enumerate(kept)}
        along.update(zip(d.operand_batching_dims, d.start_indices_batching_dims, strict=True))
        for dim, axis in along.items():
            row = np.arange(self.shape[axis])
            fixed[..., dim] = row.reshape([-1 if i == axis else 1 for i in range(len(self.shape))])
        return fixed

    def inside_all(self) -> Tensor:
        return self.inside.reshape([*self.batch, *[1] * (len(self.shape) - len(self.batch))])


def _check(*tensors: Tensor) -> None:
    if any(0 in t.shape for t in tensors):
        raise NotInOnnx("gathers and scatters of nothing aren't those of ONNX")


@rule("gather")
def _gather(x: Tensor, indices: Tensor, *, dimension_numbers: Any, slice_sizes: Any, mode: Any, **p: Any) -> Tensor:
    _check(x, indices)
    if not x.shape or 0 in slice_sizes:
        raise NotInOnnx("GatherND needs a dimension, and something to gather")
    places = _Places(x, indices, dimension_numbers, slice_sizes)
    result = x.op("GatherND", places.at, shape=places.shape)
    if "FILL" in str(mode):
        result = places.inside_all().where(result, _fill(x, p["fill_value"]))
    n, order = len(places.batch), list(dimension_numbers.offset_dims)
    others = [i for i in range(len(places.shape)) if i not in order]
    target = dict(zip(order, range(n, len(places.shape)))) | dict(zip(others, range(n)))
    return result.transpose([target[i] for i in range(len(places.shape))])


def _fill(x: Tensor, value: Any) -> Any:
    if value is not None:
        return x.like(value)
    if x.is_float:
        return x.like(np.nan)
    info = None if x.is_bool else np.iinfo(x.dtype)
    return x.like(True if info is None else info.min if info.min < 0 else info.max)


_HOW = {"scatter": "none", **dict.fromkeys(("scatter-add", "scatter-sub"), "add"), "scatter-mul": "mul"}
for _name, _how in (*_HOW.items(), ("scatter-min", "min"), ("scatter-max", "max")):

    @rule(_name)
    def _scatter(
        x: Tensor, indices: Tensor, updates: Tensor, *, dimension_numbers: Any, mode: Any, how: str = _how,
        negated: bool = _name == "scatter-sub", **_: Any,
    ) -> Tensor:  # fmt: skip
        """Into one row of all elements, and one more for what is dropped."""
        if 0 in (*x.shape, *updates.shape):
            return x.op("Identity")
        _check(indices)
        d = dimension_numbers
        if (x.is_bool and how != "none") or (how in ("min", "max") and x.is_float):
            raise NotInOnnx("ScatterElements treats NaNs and truth values otherwise")
        places = _Places(x, indices, d.gather_numbers(), d.window(x.shape, updates.shape))
        strides = [prod(x.shape[i + 1 :]) for i in range(len(x.shape))]
        flat = (places.at * x.model.constant(strides, np.int64)).reduce("ReduceSum", [len(places.shape)])
        size = prod(x.shape)
        if "CLIP" not in str(mode):
            flat = places.inside_all().where(flat, size)
        order = [i for i in range(len(updates.shape)) if i not in d.update_window_dims]
        moved = (-updates if negated else updates).transpose([*order, *d.update_window_dims])
        row = x.reshape([size]).concat([x.like(0).reshape([1])], 0)
        count = prod(updates.shape)
        written = row.op(
            "ScatterElements", flat.reshape([count]), moved.reshape([count]), shape=[size + 1], axis=0, reduction=how
        )
        return written.slice([0], [size], [1]).reshape(x.shape)
