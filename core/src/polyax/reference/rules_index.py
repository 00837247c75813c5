"""Gathers, scatters and random bits under NumPy: everything that indexes with arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from polyax.ops import bits, gather, scatter
from polyax.ops.gather import GatherDimensionNumbers, GatherScatterMode
from polyax.reference.table import rule, rules

Sizes = tuple[int, ...]


def positions(indices: Any, d: GatherDimensionNumbers, shape: Sizes, window: Sizes) -> tuple[list[Any], Any]:
    """Where the slices lie, and which of them lie inside the array.

    The first result has, for each dimension of the operand, its index at (batch dimensions, slice dimensions that are
    not left out); starts are clamped, so that these can always be used.
    """
    batch = indices.shape[:-1]
    kept = [i for i in range(len(shape)) if i not in d.collapsed_slice_dims and i not in d.operand_batching_dims]
    full = (*batch, *(window[i] for i in kept))
    inside = np.ones(batch, bool)
    coordinates = []
    for dim, size in enumerate(shape):
        start: Any = np.zeros(batch, np.int64)
        if dim in d.start_index_map:
            wanted = indices[..., d.start_index_map.index(dim)]
            wanted = np.minimum(wanted, min(np.iinfo(np.int64).max, np.iinfo(wanted.dtype).max)).astype(np.int64)
            start = np.clip(wanted, 0, size - window[dim])
            inside &= wanted == start
        elif dim in d.operand_batching_dims:
            along = d.start_indices_batching_dims[d.operand_batching_dims.index(dim)]
            start = np.moveaxis(
                np.broadcast_to(np.arange(size), (*batch[:along], *batch[along + 1 :], size)), -1, along
            )
        start = start.reshape(batch + (1,) * len(kept))
        if dim in kept:
            offset = [1] * len(kept)
            offset[kept.index(dim)] = window[dim]
            start = start + np.arange(window[dim]).reshape(offset)
        coordinates.append(np.broadcast_to(start, full))
    return coordinates, inside


@rule(gather.gather_p)
def gather_(
    x: Any, indices: Any, *, dimension_numbers: Any, slice_sizes: Sizes, mode: Any, fill_value: Any, **flags: Any
) -> Any:
    where, inside = positions(indices, dimension_numbers, x.shape, slice_sizes)
    n = indices.ndim - 1
    if not x.size:
        result = np.zeros(np.broadcast_shapes(*(w.shape for w in where)), x.dtype)
    else:
        result = x[tuple(where)] if where else np.broadcast_to(x, inside.shape)
    if mode is GatherScatterMode.FILL_OR_DROP:
        fill = np.asarray(gather.default_fill(x.dtype) if fill_value is None else fill_value).astype(x.dtype)
        result = np.where(inside.reshape(inside.shape + (1,) * (result.ndim - n)), result, fill)
    return np.moveaxis(result, range(n, result.ndim), dimension_numbers.offset_dims)


def _scatter(combine: Callable[[Any, Any, Any], None]) -> Callable[..., Any]:
    """``combine(flat operand, flat positions, flat updates)`` writes in place, in row-major order of the updates."""

    def apply(x: Any, indices: Any, updates: Any, *, dimension_numbers: Any, mode: Any, **flags: Any) -> Any:
        d = dimension_numbers
        n = indices.ndim - 1
        where, inside = positions(indices, d.gather_numbers(), x.shape, d.window(x.shape, updates.shape))
        ordered = np.moveaxis(updates, d.update_window_dims, range(n, updates.ndim))
        chosen = np.ones(ordered.shape, bool)
        if mode is not GatherScatterMode.CLIP:
            chosen = np.broadcast_to(inside.reshape(inside.shape + (1,) * (ordered.ndim - n)), ordered.shape)
        result = np.array(x, order="C")
        flat: Any = np.zeros(ordered.shape, np.int64)
        for w, stride in zip(where, result.strides, strict=True):
            flat = flat + w * (stride // x.dtype.itemsize)
        if chosen.any():
            combine(result.reshape(-1), flat[chosen], ordered[chosen])
        return result

    return apply


def _assign(x: Any, where: Any, updates: Any) -> None:
    x[where] = updates


rule(scatter.scatter_p)(_scatter(_assign))
rule(scatter.scatter_add_p)(_scatter(np.add.at))
rule(scatter.scatter_sub_p)(_scatter(np.subtract.at))
rule(scatter.scatter_mul_p)(_scatter(np.multiply.at))
rule(scatter.scatter_min_p)(_scatter(np.minimum.at))
rule(scatter.scatter_max_p)(_scatter(np.maximum.at))

# --- random bits ----------------------------------------------------------------------------------------------------

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


@rules(bits.threefry2x32_p)
def threefry2x32(key0: Any, key1: Any, count0: Any, count1: Any) -> tuple[Any, Any]:
    """Five groups of four rounds, each followed by an injection of key words."""
    keys = (key0, key1, key0 ^ key1 ^ np.uint32(0x1BD11BDA))
    x, y = count0 + keys[0], count1 + keys[1]
    for group in range(5):
        for r in _ROTATIONS[group % 2]:
            x = x + y
            y = ((y << np.uint32(r)) | (y >> np.uint32(32 - r))) ^ x
        x = x + keys[(group + 1) % 3]
        y = y + keys[(group + 2) % 3] + np.uint32(group + 1)
    return x, y
