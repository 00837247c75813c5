"""Static slices and padding, each the transpose of the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polyax.ir.aval import ShapedArray
from polyax.ir.dims import dim_index, max_dim
from polyax.ir.dtypes import full_name
from polyax.ir.primitive import Primitive, def_rule
from polyax.meshes.factors import Factors, Place, factors, fitted, free_but
from polyax.ops.basis import (
    broadcast_in_dim,
    canonical_axis,
    full,
    full_like,
    match_axis,
    reduce_sum,
    same_dtype,
    select_n,
    shape_tuple,
    squeeze,
    sub,
)
from polyax.ops.define import linear, linear_jvp
from polyax.ops.zeros import zero_cotangents
from polyax.trace.symbolic import Zero, is_undef

__all__ = ["index_in_dim", "pad", "pad_p", "slice", "slice_in_dim", "slice_p"]

Sizes = tuple[int, ...]
PaddingConfig = tuple[tuple[int, int, int], ...]

slice_p = Primitive("slice")
pad_p = Primitive("pad")

# --- slice ----------------------------------------------------------------------------------------------------------


def slice(
    operand: Any, start_indices: Sequence[int], limit_indices: Sequence[int], strides: Sequence[int] | None = None
) -> Any:
    """``operand[start:limit:stride, ...]`` with one start, limit and stride per dimension.

    >>> import polyax.numpy as jnp
    >>> from polyax import lax
    >>> lax.slice(jnp.arange(6), (1,), (6,), (2,)).tolist()
    [1, 3, 5]
    """
    strides = None if strides is None else shape_tuple(strides)
    return slice_p.bind1(
        operand,
        start_indices=shape_tuple(start_indices),
        limit_indices=shape_tuple(limit_indices),
        strides=None if strides == (1,) * len(start_indices) else strides,
    )


@def_rule(slice_p, "abstract_eval")
def _slice_abstract(
    x: ShapedArray, *, start_indices: Sizes, limit_indices: Sizes, strides: Sizes | None
) -> list[ShapedArray]:
    starts, limits, steps = start_indices, limit_indices, strides or (1,) * x.ndim
    for name, given in (("start_indices", starts), ("limit_indices", limits), ("strides", steps)):
        if len(given) != x.ndim:
            raise TypeError(
                f"slice {name} must have length equal to the number of dimensions of the operand, "
                f"got {name} {given} for operand shape {x.shape}."
            )
    if any(b > n for b, n in zip(limits, x.shape, strict=True)):
        raise TypeError(
            "slice limit_indices must be less than or equal to operand shape, "
            f"got limit_indices {limits} for operand shape {x.shape}."
        )
    if any(a < 0 for a in starts):
        raise TypeError(f"slice start_indices must be greater than or equal to zero, got start_indices of {starts}.")
    if any(a > b for a, b in zip(starts, limits, strict=True)):
        raise TypeError(
            "slice limit_indices must be greater than or equal to start_indices, "
            f"got start_indices {starts} and limit_indices {limits}."
        )
    if any(s <= 0 for s in steps):
        raise TypeError(f"slice strides must be positive, got {steps}")
    shape = tuple((b - a - 1) // s + 1 for a, b, s in zip(starts, limits, steps, strict=True))
    return [ShapedArray(shape, x.dtype, x.weak_type)]


def _slice_transpose(
    ct: Any, x: ShapedArray, *, start_indices: Sizes, limit_indices: Sizes, strides: Sizes | None
) -> Any:
    """Zeros around and between the elements."""
    config = []
    for n, m, a, s in zip(x.shape, np.shape(ct), start_indices, strides or (1,) * x.ndim, strict=True):
        config.append((a, n - a - (m + (max_dim(m - 1, 0) * (s - 1) if s > 1 else 0)), s - 1))
    return pad(ct, full_like(ct, 0, shape=()), config)


def _slice_batch(
    axis: Any, args: Any, dims: Any, *, start_indices: Sizes, limit_indices: Sizes, strides: Sizes | None
) -> Any:
    (dim,) = dims

    def insert(values: Sizes, value: int) -> Sizes:
        return (*values[:dim], value, *values[dim:])

    steps = None if strides is None else insert(strides, 1)
    return [slice(args[0], insert(start_indices, 0), insert(limit_indices, axis.size), steps)], [dim]


linear(slice_p, _slice_transpose, _slice_batch)


@def_rule(slice_p, "factors")
def _slice_factors(x: ShapedArray, *, start_indices: Sizes, limit_indices: Sizes, strides: Sizes | None) -> Factors:
    """Dimensions of which everything is taken are free."""
    taken = zip(start_indices, limit_indices, strides or (1,) * x.ndim, strict=True)
    numbers = [d if part == (0, n, 1) else None for d, (n, part) in enumerate(zip(x.shape, taken, strict=True))]

    def local(place: Place, block: Any, **params: Any) -> list[Any]:
        limits = fitted(limit_indices, x.shape, np.shape(block))
        return slice_p.bind_all(block, **{**params, "limit_indices": limits})

    return factors([numbers], [numbers], local=local)


def slice_in_dim(operand: Any, start_index: int | None, limit_index: int | None, stride: int = 1, axis: int = 0) -> Any:
    """``slice`` along one dimension; negative and missing indices mean what they mean in Python."""
    shape = np.shape(operand)
    axis = canonical_axis(axis, len(shape))
    starts, limits, strides = [0] * len(shape), list(shape), [1] * len(shape)
    starts[axis] = _from_end(start_index, shape[axis], 0)
    limits[axis] = _from_end(limit_index, shape[axis], shape[axis])
    strides[axis] = dim_index(stride)
    return slice(operand, starts, limits, strides)


def _from_end(i: int | None, size: int, default: int) -> int:
    if i is None:
        return default
    return dim_index(i) + size if i < 0 else dim_index(i)


def index_in_dim(operand: Any, index: int, axis: int = 0, keepdims: bool = True) -> Any:
    """The slice at ``index`` along ``axis``."""
    size = np.shape(operand)[axis]
    i = index + size if index < 0 else index
    if not 0 <= i < size:
        raise IndexError(f"index {index} is out of bounds for axis {axis} with size {size}")
    result = slice_in_dim(operand, i, i + 1, 1, axis)
    return result if keepdims else squeeze(result, (axis,))


# --- pad ------------------------------------------------------------------------------------------------------------


def pad(operand: Any, padding_value: Any, padding_config: Sequence[tuple[int, int, int]]) -> Any:
    """``operand`` with (low, high, interior) elements of ``padding_value`` added per dimension.

    Negative low and high paddings cut off; interior padding goes between neighbours.

    >>> import polyax.numpy as jnp
    >>> from polyax import lax
    >>> lax.pad(jnp.arange(3), 9, [(1, -1, 1)]).tolist()
    [9, 0, 9, 1, 9]
    """
    operand, padding_value = same_dtype(operand, padding_value)
    config = tuple(tuple(map(dim_index, edges)) for edges in padding_config)
    return pad_p.bind1(operand, padding_value, padding_config=config)


def check_padding(x: ShapedArray, value: ShapedArray) -> None:
    """Raises TypeError unless both have one dtype."""
    if x.dtype != value.dtype:
        names = f"{full_name(x.dtype)} and {full_name(value.dtype)}"
        raise TypeError(f"pad operand and padding_value must be same dtype: got {names}.")


@def_rule(pad_p, "abstract_eval")
def _pad_abstract(x: ShapedArray, value: ShapedArray, *, padding_config: PaddingConfig) -> list[ShapedArray]:
    check_padding(x, value)
    if value.shape:
        raise ValueError(f"padding_value must be a scalar; got np.shape(padding_value)={value.shape}")
    if len(padding_config) != x.ndim:
        raise ValueError(
            "length of padding_config must equal the number of axes of operand, "
            f"got padding_config {padding_config} for operand shape {x.shape}"
        )
    if any(inner < 0 for *_, inner in padding_config):
        raise ValueError(f"interior padding in padding_config must be nonnegative, got padding_config {padding_config}")
    shape = tuple(
        lo + hi + n + (max_dim(n - 1, 0) * inner if inner else 0)
        for n, (lo, hi, inner) in zip(x.shape, padding_config, strict=True)
    )
    if any(n < 0 for n in shape):
        raise ValueError(
            f"Dimension size after padding is not at least 0, got result shape {shape}, "
            f"for padding_config {padding_config} and operand shape {x.shape}"
        )
    return [ShapedArray(shape, x.dtype, x.weak_type and value.weak_type)]


pad_p.jvp = linear_jvp(pad_p)
pad_p.factors = lambda x, value, *, padding_config: free_but(
    [x, value], 1, [d for d, config in enumerate(padding_config) if any(config)]
)


@def_rule(pad_p, "transpose")
def _pad_transpose(cts: Any, operand: Any, value: Any, *, padding_config: PaddingConfig) -> list[Any]:
    """Cuts the padding off; the padding value gets the sum of what was cut."""
    (ct,) = cts
    if type(ct) is Zero:
        return zero_cotangents(operand, value)
    uncut = pad(ct, full_like(ct, 0, shape=()), [(-lo, -hi, 0) for lo, hi, _ in padding_config])
    inside = slice(uncut, (0,) * np.ndim(ct), np.shape(uncut), [inner + 1 for *_, inner in padding_config])
    to_value = None
    if is_undef(value):
        everything = range(np.ndim(ct))
        to_value = sub(reduce_sum(ct, everything), reduce_sum(inside, everything))
    return [inside if is_undef(operand) else None, to_value]


@def_rule(pad_p, "batch")
def _pad_batch(axis: Any, args: Any, dims: Any, *, padding_config: PaddingConfig) -> Any:
    """With one value per example: pads with zeros, then chooses by a mask padded likewise."""
    (x, value), (x_dim, value_dim) = args, dims
    if value_dim is None:
        config = (*padding_config[:x_dim], (0, 0, 0), *padding_config[x_dim:])
        return [pad(x, value, config)], [x_dim]
    x = match_axis(axis, x_dim, 0, x)
    config = ((0, 0, 0), *padding_config)
    padded = pad(x, full_like(x, 0, shape=()), config)
    is_padding = pad(full(np.shape(x), False), True, config)
    return [select_n(is_padding, padded, broadcast_in_dim(value, np.shape(padded), (0,)))], [0]
