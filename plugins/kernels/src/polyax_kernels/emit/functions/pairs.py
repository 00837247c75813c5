"""Sums and products with what rounding lost of them, which is a number of the same type."""

from __future__ import annotations

from polyax_kernels.emit.functions.blocks import V, fma


def product(x: V, y: V | float) -> tuple[V, V]:
    high = x * y
    return high, fma(x, y, -high)


def ordered_sum(x: V, y: V) -> tuple[V, V]:
    """For ``|x| >= |y|``."""
    high = x + y
    return high, y - (high - x)


def any_sum(x: V, y: V) -> tuple[V, V]:
    high = x + y
    other = high - x
    return high, (x - (high - other)) + (y - other)
