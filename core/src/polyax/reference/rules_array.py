"""Shapes, slices, reductions and products under NumPy."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from polyax.ops import basis, contract, index, joining, reduce, shape, slicing
from polyax.reference.table import NARROW, rule, rules, wide

Sizes = tuple[int, ...]

# --- shapes ---------------------------------------------------------------------------------------------------------


@rule(basis.broadcast_in_dim_p)
def broadcast_in_dim(x: Any, *, shape: Sizes, broadcast_dimensions: Sizes) -> Any:
    sizes = [1] * len(shape)
    for dim, n in zip(broadcast_dimensions, np.shape(x), strict=True):
        sizes[dim] = n
    return np.broadcast_to(np.reshape(x, sizes), shape)


@rule(basis.iota_p)
def iota(*, dtype: Any, shape: Sizes, dimension: int) -> Any:
    sizes = [1] * len(shape)
    sizes[dimension] = shape[dimension]
    return np.broadcast_to(np.arange(shape[dimension]).astype(dtype).reshape(sizes), shape)


rule(basis.reshape_p)(lambda x, new_sizes, dimensions: np.reshape(x, new_sizes))
rule(basis.squeeze_p)(lambda x, dimensions: np.squeeze(x, dimensions))
rule(basis.transpose_p)(lambda x, permutation: np.transpose(x, permutation))
rule(shape.rev_p)(lambda x, dimensions: np.flip(x, dimensions))
rule(joining.concatenate_p)(lambda *operands, dimension: np.concatenate(operands, dimension))
rules(joining.split_p)(lambda x, sizes, axis: np.split(x, np.cumsum(sizes)[:-1], axis))

# --- slices ---------------------------------------------------------------------------------------------------------


@rule(slicing.slice_p)
def slice_(x: Any, *, start_indices: Sizes, limit_indices: Sizes, strides: Sizes | None) -> Any:
    return x[tuple(map(slice, start_indices, limit_indices, strides or (1,) * len(start_indices)))]


@rule(slicing.pad_p)
def pad(x: Any, value: Any, *, padding_config: tuple[tuple[int, int, int], ...]) -> Any:
    """First spreads the elements, then copies the window that the low and high paddings leave."""
    spread = np.full([n + max(n - 1, 0) * inner for n, (*_, inner) in zip(x.shape, padding_config, strict=True)], value)
    spread[tuple(slice(None, None, inner + 1) for *_, inner in padding_config)] = x
    result = np.full([n + lo + hi for n, (lo, hi, _) in zip(spread.shape, padding_config, strict=True)], value)
    source, target = [], []
    for n, m, (lo, *_) in zip(spread.shape, result.shape, padding_config, strict=True):
        begin, end = max(0, lo), max(min(m, n + lo), max(0, lo))
        target.append(slice(begin, end))
        source.append(slice(begin - lo, end - lo))
    if result.size:
        result[tuple(target)] = spread[tuple(source)]
    return result


def _clamped(starts: Any, sizes: Sizes, shape: Sizes) -> tuple[slice, ...]:
    return tuple(
        slice(begin := min(max(int(i), 0), m - n), begin + n) for i, n, m in zip(starts, sizes, shape, strict=True)
    )


@rule(index.dynamic_slice_p)
def dynamic_slice(x: Any, *starts: Any, slice_sizes: Sizes) -> Any:
    return x[_clamped(starts, slice_sizes, x.shape)]


@rule(index.dynamic_update_slice_p)
def dynamic_update_slice(x: Any, update: Any, *starts: Any) -> Any:
    result = np.array(x)
    result[_clamped(starts, update.shape, x.shape)] = update
    return result


# --- reductions -----------------------------------------------------------------------------------------------------


def _lowest(dtype: Any) -> Any:
    return dtype.type(False) if dtype == np.bool_ else np.iinfo(dtype).min if dtype.kind in "iu" else dtype.type("-inf")


def _highest(dtype: Any) -> Any:
    return dtype.type(True) if dtype == np.bool_ else np.iinfo(dtype).max if dtype.kind in "iu" else dtype.type("inf")


def _fold(ufunc: Any, start: Callable[[Any], Any]) -> Callable[..., Any]:
    def fold(x: Any, *, axes: Sizes) -> Any:
        operand = wide(x)
        return ufunc.reduce(operand, axis=axes, dtype=operand.dtype, initial=start(operand.dtype)).astype(x.dtype)

    return fold


rule(basis.reduce_sum_p)(_fold(np.add, lambda d: d.type(0)))
rule(reduce.reduce_prod_p)(_fold(np.multiply, lambda d: d.type(1)))
rule(reduce.reduce_max_p)(_fold(np.maximum, _lowest))
rule(reduce.reduce_min_p)(_fold(np.minimum, _highest))
rule(reduce.reduce_and_p)(_fold(np.bitwise_and, lambda d: np.invert(d.type(0))))
rule(reduce.reduce_or_p)(_fold(np.bitwise_or, lambda d: d.type(0)))
rule(reduce.reduce_xor_p)(_fold(np.bitwise_xor, lambda d: d.type(0)))

for _primitive, _find in ((reduce.argmax_p, np.argmax), (reduce.argmin_p, np.argmin)):
    rule(_primitive)(lambda x, axes, index_dtype, f=_find: f(wide(x), axis=axes[0]).astype(index_dtype))

# --- products -------------------------------------------------------------------------------------------------------


@rule(contract.dot_general_p)
def dot_general(lhs: Any, rhs: Any, *, dimension_numbers: Any, precision: Any, preferred_element_type: Any) -> Any:
    """One batched matrix product, after bringing both operands into the order batch, rest, contracted."""
    (lc, rc), (lb, rb) = dimension_numbers
    dtype = lhs.dtype if preferred_element_type is None else preferred_element_type
    left, l_rest = _as_matrices(lhs, lb, lc, dtype)
    right, r_rest = _as_matrices(rhs, rb, rc, dtype)
    product = np.matmul(left, np.swapaxes(right, -1, -2))
    return product.reshape([lhs.shape[i] for i in lb] + l_rest + r_rest).astype(dtype)


def _as_matrices(x: Any, batch: Sizes, contracted: Sizes, dtype: Any) -> tuple[Any, list[int]]:
    rest = [i for i in range(x.ndim) if i not in batch and i not in contracted]
    sizes = [[x.shape[i] for i in dims] for dims in (batch, rest, contracted)]
    ordered = np.transpose(x, (*batch, *rest, *contracted)).astype(np.float32 if dtype in NARROW else dtype)
    return ordered.reshape([prod(s) for s in sizes]), sizes[1]
