"""Sorts, by stable passes from the last key to the first, as TopK gives the first of equals first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polyax_onnx.rules.table import rule
from polyax_onnx.writer import Tensor

_WIDER = {"bool": "int32", "uint16": "int32", "uint32": "int64", "int16": "int32", "float16": "float32"}


def _keys(x: Tensor, largest: bool) -> list[Tensor]:
    """What orders ``x``, NaNs behind all others; if the largest is first, zeros by their signs as well."""
    x = x.cast(_WIDER.get(x.dtype.name, x.dtype))
    if not x.is_float:
        return [x]
    keys = [x.nan().cast("int32"), x.nan().where(0, x)]
    if largest:
        negative = (x == 0) & (x.like(1) / x < 0)
        keys.append((~negative).cast("int32"))
    return keys


def _picked(x: Tensor, places: Tensor, axis: int) -> Tensor:
    return x.op("GatherElements", places, shape=places.shape, axis=axis)


def _order(keys: Sequence[Tensor], axis: int, largest: bool) -> Tensor:
    """The places of elements in their order."""
    order = None
    for key in reversed(keys):
        now = key if order is None else _picked(key, order, axis)
        size = now.model.ints(now.shape[axis])
        names = now.model.add("TopK", [now, size], 2, axis=axis, largest=int(largest), sorted=1)
        places = Tensor(now.model, names[1], np.int64, now.shape)
        order = places if order is None else _picked(order, places, axis)
    assert order is not None
    return order


@rule("sort")
def _sort(*operands: Tensor, dimension: int, num_keys: int, **_: Any) -> list[Tensor]:
    keys = [k for x in operands[:num_keys] for k in _keys(x, largest=False)]
    order = _order(keys, dimension, largest=False)
    return [_picked(x, order, dimension) for x in operands]


@rule("top_k")
def _top_k(x: Tensor, *, k: int, axis: int) -> list[Tensor]:
    order = _order(_keys(x, largest=True), axis, largest=True)
    shape = [k if i == axis else n for i, n in enumerate(x.shape)]
    order = order.slice([0] * len(shape), shape, [1] * len(shape))
    return [_picked(x, order, axis), order.cast("int32")]
