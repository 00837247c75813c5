"""Loops in NumPy that say what windows are."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from polyax import lax

KNOWN = {"sum": (lax.add, 0.0, np.sum), "max": (lax.max, -np.inf, np.max), "min": (lax.min, np.inf, np.min)}


def dilated(n: int, by: int) -> int:
    """The extent of ``n`` elements with gaps between them."""
    return (n - 1) * by + 1 if n else 0


def by_loop(x: np.ndarray, fold: Any, size: Any, strides: Any, padding: Any, base: Any, dilation: Any) -> np.ndarray:
    """``fold`` of the list of elements in each window."""
    grid = [dilated(n, b) + lo + hi for n, b, (lo, hi) in zip(x.shape, base, padding)]
    room = [n - dilated(w, d) for n, w, d in zip(grid, size, dilation)]
    shape = [r // s + 1 if r >= 0 else 0 for r, s in zip(room, strides)]
    out = np.empty(shape)
    for place in np.ndindex(*shape):
        elements = []
        for k in itertools.product(*map(range, size)):
            at = [i * s + j * d - lo for i, s, j, d, (lo, _) in zip(place, strides, k, dilation, padding)]
            if all(a % b == 0 and 0 <= a // b < n for a, b, n in zip(at, base, x.shape)):
                elements.append(x[tuple(a // b for a, b in zip(at, base))])
        out[place] = fold(elements)
    return out


def expected(x: np.ndarray, fold: Any, params: dict[str, Any]) -> np.ndarray:
    ones = (1,) * x.ndim
    size, strides = params["window_dimensions"], params.get("window_strides", ones)
    base, dilation = params.get("base_dilation", ones), params.get("window_dilation", ones)
    padding = params.get("padding", "VALID")
    if isinstance(padding, str):
        extents = [dilated(w, d) for w, d in zip(size, dilation)]
        padding = lax.padtype_to_pads([dilated(n, b) for n, b in zip(x.shape, base)], extents, strides, padding)
    return by_loop(x, fold, size, strides, padding, base, dilation)


def operand(*shape: int) -> np.ndarray:
    return np.random.default_rng(3).standard_normal(shape).astype(np.float32)


def differences(fun: Any, x: np.ndarray, step: float = 1e-5) -> np.ndarray:
    """The gradient of a function of float64 by central differences."""
    out = np.empty_like(x)
    for k in np.ndindex(*x.shape):
        moved = np.zeros_like(x)
        moved[k] = step
        out[k] = (float(fun(x + moved)) - float(fun(x - moved))) / (2 * step)
    return out
