"""Sorts and cumulative operations under NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyax.ops import cumulative, recurrence, sort
from polyax.reference.table import rule, rules, wide


@rules(sort.sort_p)
def sort_(*operands: Any, dimension: int, is_stable: bool, num_keys: int) -> Any:
    """Stable, NaNs last, zeros of both signs equal. Sorting by the last key first sorts by all of them."""
    keys = [wide(x) for x in operands[:num_keys]]
    order = np.argsort(keys[-1], dimension, kind="stable")
    for key in reversed(keys[:-1]):
        inner = np.argsort(np.take_along_axis(key, order, dimension), dimension, kind="stable")
        order = np.take_along_axis(order, inner, dimension)
    return [np.take_along_axis(x, order, dimension) for x in operands]


@rules(sort.top_k_p)
def top_k(x: Any, *, k: int, axis: int) -> Any:
    """The reverse of a stable sort of the reversed array, so that of equals the first comes first."""
    keys = np.moveaxis(_in_total_order(x), axis, -1)
    chosen = (
        _candidates(keys, k) if FEW * k < keys.shape[-1] else np.broadcast_to(np.arange(keys.shape[-1]), keys.shape)
    )
    backwards = np.argsort(np.flip(np.take_along_axis(keys, chosen, -1), -1), -1, kind="stable")
    order = np.take(chosen.shape[-1] - 1 - np.flip(backwards, -1), range(k), -1)
    places = np.moveaxis(np.take_along_axis(chosen, order, -1), -1, axis)
    return np.take_along_axis(x, places, axis), places.astype(np.int32)


def _in_total_order(x: Any) -> Any:
    """Keys that are ordered as -NaN < -inf < ... < -0 < +0 < ... < inf < NaN."""
    if x.dtype.kind not in "fV":
        return wide(x)
    bits = x.view(f"i{x.dtype.itemsize}")
    return np.where(bits < 0, np.iinfo(bits.dtype).max ^ bits, bits)


FEW = 16
"""The part of a row up to which its largest elements are found without sorting all of them."""


def _candidates(keys: Any, k: int) -> Any:
    """The places of the ``k`` largest elements of each row, in order: all above the k-th, and the first equal to it."""
    n = keys.shape[-1]
    if k == 0:
        return np.zeros((*keys.shape[:-1], 0), np.intp)
    least = np.partition(keys, n - k, -1)[..., n - k : n - k + 1]
    above, equal = keys > least, keys == least
    room = k - above.sum(-1, keepdims=True)
    chosen = above | (equal & (np.cumsum(equal, -1) <= room))
    return np.nonzero(chosen)[-1].reshape(*keys.shape[:-1], k)


def _accumulate(ufunc: Any, x: Any, axis: int, reverse: bool) -> Any:
    operand = np.flip(wide(x), axis) if reverse else wide(x)
    result = ufunc.accumulate(operand, axis, dtype=operand.dtype).astype(x.dtype)
    return np.flip(result, axis) if reverse else result


for _primitive, _ufunc in (
    (cumulative.cumsum_p, np.add),
    (cumulative.cumprod_p, np.multiply),
    (cumulative.cummax_p, np.maximum),
    (cumulative.cummin_p, np.minimum),
    (cumulative.cumlogsumexp_p, np.logaddexp),
):
    rule(_primitive)(lambda x, axis, reverse, f=_ufunc: _accumulate(f, x, axis, reverse))


@rule(recurrence.linear_recurrence_p)
def linear_recurrence(factors: Any, summands: Any, *, axis: int, reverse: bool) -> Any:
    way = slice(None, None, -1 if reverse else 1)
    a, b = (np.moveaxis(wide(x), axis, 0)[way] for x in (factors, summands))
    y = np.copy(b)
    for i in range(1, len(y)):
        y[i] += a[i] * y[i - 1]
    return np.moveaxis(y[way], 0, axis).astype(summands.dtype)
