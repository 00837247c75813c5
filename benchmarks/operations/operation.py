"""An operation of the sweep: a function of a JAX-style module and arrays, and arrays of every size for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isqrt
from typing import Any

import numpy as np

SIZES = {"small": 1_000, "cache": 100_000, "memory": 10_000_000}
"""Elements of the largest argument: a few kilobytes, what lies in a core's cache, and what doesn't."""
Arrays = tuple[Any, ...]
Inputs = Callable[[int], Arrays]


@dataclass(frozen=True)
class Operation:
    """``call(m, *arrays)`` computes it with the module ``m``, as does ``torch(t, *arrays)`` with PyTorch."""

    name: str
    call: Callable[..., Any]
    inputs: Inputs
    sizes: tuple[str, ...] = tuple(SIZES)
    gradient: bool = True
    torch: Callable[..., Any] | None = None


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def normal(*shape: int, dtype: str = "float32") -> Any:
    return rng().standard_normal(shape).astype(dtype)


def vector(n: int) -> Arrays:
    return (normal(n),)


def vectors(n: int) -> Arrays:
    return normal(n), normal(n)[::-1].copy()


def positive(n: int) -> Arrays:
    return (rng().uniform(0.1, 2.0, n).astype("float32"),)


def unit(n: int) -> Arrays:
    """Inside of (-1, 1), where inverse functions are defined."""
    return (rng().uniform(-0.9, 0.9, n).astype("float32"),)


def share(n: int) -> Arrays:
    """Inside of (0, 1)."""
    return (unit(n)[0] / 2 + np.float32(0.5),)


def above_one(n: int) -> Arrays:
    return (rng().uniform(1.1, 9.0, n).astype("float32"),)


def square(n: int) -> Arrays:
    side = isqrt(n)
    return (normal(side, side),)


def short_rows(n: int) -> Arrays:
    return (normal(n // 32, 32),)


def cube(n: int) -> Arrays:
    """Three dimensions, of which none is like another."""
    side = round((n / 6) ** (1 / 3))
    return (normal(side, 2 * side, 3 * side),)


def whole(n: int, most: int = 1 << 20) -> Arrays:
    return (rng().integers(0, most, n).astype("int32"),)


def cast(inputs: Inputs, dtype: str) -> Inputs:
    """The same arrays in another type, which NumPy may not have by itself."""
    import ml_dtypes

    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    return lambda n: tuple(a.astype(kind) for a in inputs(n))
