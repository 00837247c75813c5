"""Reductions with computations, over whole axes and in windows."""

from __future__ import annotations

from typing import Any

import numpy as np

import polyax.numpy as jnp
from polyax import lax
from polyax_conformance.specs.case import Case, case, values
from polyax_conformance.specs.primitives.data import SIGNED, X, Y

ROWS = np.array([[2], [0], [2]], np.int32)
PUT_ROWS = lax.ScatterDimensionNumbers((1,), (0,), (0,))


def smooth_or(a: Any, b: Any) -> Any:
    return a + b - a * b


def compose(a: Any, b: Any) -> Any:
    """Of the functions ``x -> a0 x + a1``: associative, and not commutative."""
    return a[0] * b[0], b[0] * a[1] + b[1]


def windows(computation: Any, init: float, **params: Any) -> Any:
    params = {"window_dimensions": (2, 2), "window_strides": (1, 1), "padding": "VALID", **params}
    return lambda x: lax.reduce_window(x, init, computation, **params)


FOLDS = {"sum": (lax.add, 0.0), "max": (lax.max, -np.inf), "min": (lax.min, np.inf)}
SHAPES: dict[str, dict[str, Any]] = {
    "valid": {},
    "strided": {"window_strides": (2, 1), "padding": "SAME"},
    "dilated": {"base_dilation": (1, 2), "window_dilation": (2, 1), "padding": ((1, 0), (0, 1))},
}

CASES: dict[str, Case] = {
    "reduce": case(lambda x: lax.reduce(x, np.float64(0.0), smooth_or, (1,)), X),
    "reduce of two": case(lambda x, y: lax.reduce((x, y), (np.float64(1), np.float64(0)), compose, (1,)), X, Y),
    "reduce with init": case(lambda x, init: lax.reduce(x, init, lax.mul, (0, 1)), X, np.float64(1.5)),
    **{
        f"reduce_window_{name}, {shape}": case(windows(*fold, **params), SIGNED)
        for name, fold in FOLDS.items()
        for shape, params in SHAPES.items()
    },
    "reduce_window": case(windows(smooth_or, 0.0), X),
    "reduce_window, product": case(windows(lax.mul, 1.0, **SHAPES["strided"]), X),
    "reduce_window of integers": values(windows(lax.add, 0), ROWS * np.arange(3, dtype=np.int32)),
    "scatter_apply": case(
        lambda x, i: lax.scatter_apply(jnp.asarray(x), i, jnp.sin, PUT_ROWS, update_shape=(2, 4), unique_indices=True),
        X,
        ROWS[:2],
    ),
    "scatter_apply, repeated": case(
        lambda x, i: lax.scatter_apply(jnp.asarray(x), i, jnp.sin, PUT_ROWS, update_shape=(3, 4)),
        X,
        ROWS,
        modes=("fwd",),
        again=("fwd",),
    ),
}
