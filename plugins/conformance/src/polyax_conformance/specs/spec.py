"""Specification tables: a row is a function of an array module and its arguments; NumPy gives the expected results."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

Draw = Callable[[np.random.Generator], np.ndarray]


@dataclass(frozen=True)
class TableRow:
    """``fun(xp, *args)`` is run with polyax's ``numpy`` and compared to ``oracle(*args)``, or to itself under NumPy."""

    name: str
    fun: Callable[..., Any]
    draws: tuple[Draw, ...]
    oracle: Callable[..., Any] | None = None
    differentiable: bool = True
    sample: bool = False
    rtol: float = 2e-5
    atol: float = 2e-5

    def args(self, batch: int = 0) -> list[np.ndarray]:
        """The arguments; with ``batch``, that many sets of them, stacked."""
        rng = np.random.default_rng(zlib.crc32(self.name.encode()))
        if not batch:
            return [draw(rng) for draw in self.draws]
        return [np.stack(column) for column in zip(*([draw(rng) for draw in self.draws] for _ in range(batch)))]

    def expected(self, *args: Any) -> Any:
        return self.oracle(*args) if self.oracle else self.fun(np, *args)


def normal(*shape: int, scale: float = 1.0, shift: float = 0.0) -> Draw:
    return lambda rng: (scale * rng.standard_normal(shape) + shift).astype(np.float32)


def uniform(low: float, high: float, *shape: int) -> Draw:
    return lambda rng: rng.uniform(low, high, shape).astype(np.float32)


def integers(low: int, high: int, *shape: int) -> Draw:
    return lambda rng: rng.integers(low, high, shape).astype(np.int32)


def booleans(*shape: int) -> Draw:
    return lambda rng: rng.random(shape) < 0.5


def parameters(specs: list[TableRow]) -> list[Any]:
    """Rows for ``pytest.mark.parametrize``."""
    return [pytest.param(s, id=s.name, marks=[pytest.mark.sample] if s.sample else []) for s in specs]
