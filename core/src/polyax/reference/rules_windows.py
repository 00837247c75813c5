"""Windows: NumPy's views for the known reductions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from polyax.control.folds.reducers import identity
from polyax.ops import windows as ops
from polyax.ops.conv_shapes import dilated
from polyax.ops.window_folds import Windows
from polyax.reference.rules_array import pad
from polyax.reference.table import rule, wide


def windows_of(x: np.ndarray, windows: Windows, fill: Any) -> np.ndarray:
    """All windows of ``x``: (positions..., window...)."""
    size, strides, padding, base, dilation = windows
    config = tuple((lo, hi, d - 1) for (lo, hi), d in zip(padding, base, strict=True))
    padded = pad(x, x.dtype.type(fill), padding_config=config)
    extents = list(map(dilated, size, dilation))
    if 0 in windows.shape(x.shape):
        return np.zeros((*windows.shape(x.shape), *size), x.dtype)
    view = np.lib.stride_tricks.sliding_window_view(padded, extents)
    return view[tuple(slice(None, None, s) for s in (*strides, *dilation))]


def _reduction(ufunc: Any, monoid: str) -> Callable[..., np.ndarray]:
    def reduce(x: np.ndarray, **params: Any) -> np.ndarray:
        operand = wide(x)
        view = windows_of(operand, Windows(**params), identity(monoid, operand.dtype))
        return ufunc.reduce(view, tuple(range(x.ndim, 2 * x.ndim)), dtype=operand.dtype).astype(x.dtype)

    return reduce


rule(ops.reduce_window_sum_p)(_reduction(np.add, "add"))
rule(ops.reduce_window_max_p)(_reduction(np.maximum, "max"))
rule(ops.reduce_window_min_p)(_reduction(np.minimum, "min"))
