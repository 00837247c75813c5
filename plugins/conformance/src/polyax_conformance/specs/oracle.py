"""Independent answers: NumPy in float64, and derivatives by central differences of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

STEP = 1e-6
"""With float64 oracles of order one, both rounding and truncation stay below 1e-9 of the result."""


def widen(x: Any) -> Any:
    """Floats to float64; everything else as it is."""
    x = np.asarray(x)
    return x.astype(np.float64) if x.dtype.kind == "f" else x


def is_float(x: Any) -> bool:
    return np.asarray(x).dtype.kind == "f"


def directional(fun: Callable[..., Any], args: Sequence[Any], tangents: Sequence[Any]) -> np.ndarray:
    """The derivative of ``fun`` at ``args`` along ``tangents`` (None where an argument isn't moved)."""

    def moved(by: float) -> np.ndarray:
        return np.asarray(fun(*(widen(x) if t is None else widen(x) + by * widen(t) for x, t in zip(args, tangents))))

    return (moved(STEP) - moved(-STEP)) / (2 * STEP)


def gradient(fun: Callable[..., Any], args: Sequence[Any], which: int) -> np.ndarray:
    """The gradient of the scalar function ``fun`` with respect to argument ``which``, one coordinate at a time."""
    x = widen(args[which])
    out = np.zeros(x.shape)
    for index in np.ndindex(x.shape):
        unit = np.zeros(x.shape)
        unit[index] = 1
        tangents = [unit if i == which else None for i in range(len(args))]
        out[index] = directional(fun, args, tangents)
    return out
