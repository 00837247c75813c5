"""The element that is preferred in each window, made of slices: what max pooling's derivatives run as."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np

from polyax.ir.aval import aval_of
from polyax.ir.primitive import Primitive
from polyax.ops.basis import add, eq, full, iota, reshape, select_n, zeros_like
from polyax.ops.conv_shapes import Sizes, dilated
from polyax.ops.gather import GatherScatterMode
from polyax.ops.scatter import ScatterDimensionNumbers, scatter_add
from polyax.ops.slicing import pad, slice
from polyax.ops.window_folds import Arrays, Windows, fold_windows

SIDE_BY_SIDE = 64
"""The elements of a window up to which its cotangent is offered to each of them; beyond, it is scattered."""


def plain_windows(window_dimensions: Sizes, window_strides: Sizes, padding: Any) -> Windows:
    """Windows without dilation."""
    ones = (1,) * len(window_dimensions)
    return Windows(window_dimensions, window_strides, padding, ones, ones)


def _preferred(select: Primitive) -> Callable[[Arrays, Arrays], Arrays]:
    """Of two lists the one whose first array is preferred; the earlier one, of equals."""

    def combine(a: Arrays, b: Arrays) -> Arrays:
        first = select.bind1(a[0], b[0])
        return [select_n(first, y, x) for x, y in zip(a, b, strict=True)]

    return combine


def gather_selected(tangents: Any, operand: Any, select: Primitive, windows: Windows) -> Any:
    """``select_and_gather_add``; 0 for windows without elements."""
    (_, chosen), found = fold_windows(_preferred(select), [operand, tangents], windows)
    return chosen if found is None else select_n(found, zeros_like(chosen), chosen)


def scatter_selected(source: Any, operand: Any, select: Primitive, windows: Windows) -> Any:
    """``select_and_scatter_add``: finds the preferred places, and offers each element of ``source`` to its window."""
    shape = np.shape(operand)
    numbers = reshape(iota(np.int32, math.prod(shape)), shape)
    (_, places), found = fold_windows(_preferred(select), [operand, numbers], windows)
    if found is not None:
        places = select_n(found, full(np.shape(places), -1, np.int32), places)
    if math.prod(windows.window_dimensions) > SIDE_BY_SIDE or 0 in np.shape(source):
        return _scattered(source, places, shape)
    return _offered(source, places, numbers, windows)


def _scattered(source: Any, places: Any, shape: Sizes) -> Any:
    size = math.prod(np.shape(source))
    zero = full((math.prod(shape),), 0, aval_of(source).dtype)
    numbers = ScatterDimensionNumbers((), (0,), (0,))
    sums = scatter_add(
        zero, reshape(places, (size, 1)), reshape(source, (size,)), numbers, mode=GatherScatterMode.FILL_OR_DROP
    )
    return reshape(sums, shape)


def _offered(source: Any, places: Any, numbers: Any, windows: Windows) -> Any:
    """The sum over the positions within a window: what stands there takes the element if its number was chosen."""
    shape, count = np.shape(numbers), np.shape(source)
    grid = tuple(map(dilated, shape, windows.base_dilation))
    total: Any = None
    for k in product(*map(range, windows.window_dimensions)):
        config = [
            (start := j * d - lo, n - start - dilated(m, s), s - 1)
            for j, d, (lo, _), n, m, s in zip(
                k, windows.window_dilation, windows.padding, grid, count, windows.window_strides, strict=True
            )
        ]
        there = _every(pad(places, np.int32(-1), config), windows.base_dilation)
        offer = _every(pad(source, aval_of(source).dtype.type(0), config), windows.base_dilation)
        taken = select_n(eq(there, numbers), zeros_like(offer), offer)
        total = taken if total is None else add(total, taken)
    return total


def _every(x: Any, steps: Sequence[int]) -> Any:
    """The elements of ``x`` that are ``steps`` apart."""
    if all(s == 1 for s in steps):
        return x
    return slice(x, (0,) * len(steps), np.shape(x), steps)
