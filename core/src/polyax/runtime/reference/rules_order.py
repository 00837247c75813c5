"""Sorts and cumulative operations under NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyax.ops import cumulative, sort
from polyax.runtime.reference.table import rule, rules, wide


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
    backwards = np.argsort(np.flip(wide(x), axis), axis, kind="stable")
    order = np.take(x.shape[axis] - 1 - np.flip(backwards, axis), range(k), axis)
    return np.take_along_axis(x, order, axis), order.astype(np.int32)


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
