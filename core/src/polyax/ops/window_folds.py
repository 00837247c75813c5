"""Folds over axes and windows, made of slices: what derivatives are taken of, and what runs any associative operation.

A fold combines lists of arrays of one shape, in order. Knows no program: the operation is a function of two lists.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from polyax.ops.basis import broadcast_in_dim, full, select_n, squeeze
from polyax.ops.compare import bitwise_and, bitwise_or
from polyax.ops.conv_shapes import Pads, Sizes, dilated, output_sizes
from polyax.ops.slicing import pad, slice, slice_in_dim

Arrays = Sequence[Any]
Combine = Callable[[Arrays, Arrays], Arrays]


class Windows(NamedTuple):
    """Which elements each window holds: one entry per dimension of the operand."""

    window_dimensions: Sizes
    window_strides: Sizes
    padding: Pads
    base_dilation: Sizes
    window_dilation: Sizes

    def shape(self, operand: Sizes) -> Sizes:
        """How many windows there are."""
        return output_sizes(operand, *self)

    def with_batch(self, dim: int) -> Windows:
        """Those of an operand with one more dimension, along which windows have one element."""
        added = (1, 1, (0, 0), 1, 1)
        return Windows._make((*xs[:dim], x, *xs[dim:]) for xs, x in zip(self, added, strict=True))

    @property
    def wide(self) -> list[int]:
        """The dimensions along which windows aren't just one element after the other."""
        apart = zip(*self[:4], strict=True)
        return [d for d, how in enumerate(apart) if how != (1, 1, (0, 0), 1)]

    @property
    def reach_outside(self) -> bool:
        """Whether a window may hold places where there is no element."""
        return any(lo > 0 or hi > 0 for lo, hi in self.padding) or any(d > 1 for d in self.base_dilation)


def fold_axes(combine: Combine, xs: Arrays, axes: Sequence[int]) -> Arrays:
    """All elements along ``axes``, none of which is empty, combined in row-major order."""
    for axis in sorted(axes, reverse=True):
        xs = [squeeze(x, (axis,)) for x in _fold_axis(combine, xs, axis)]
    return xs


def _fold_axis(combine: Combine, xs: Arrays, axis: int) -> Arrays:
    """Neighbours are combined until one is left; what has no neighbour waits until the end."""
    rest: Arrays | None = None
    while (n := np.shape(xs[0])[axis]) > 1:
        if n % 2:
            last = [slice_in_dim(x, n - 1, n, 1, axis) for x in xs]
            rest = last if rest is None else combine(last, rest)
        first, second = ([slice_in_dim(x, k, n - n % 2, 2, axis) for x in xs] for k in (0, 1))
        xs = combine(first, second)
    return xs if rest is None else combine(xs, rest)


def fold_windows(combine: Combine, xs: Arrays, windows: Windows) -> tuple[Arrays, Any | None]:
    """The elements of each window combined, and which windows have any: all, if that is None."""
    if not windows.reach_outside:
        return _fold_padded(combine, [_padded(x, windows) for x in xs], windows), None
    inside = full(np.shape(xs[0]), True)
    *outs, found = _fold_padded(_where_inside(combine), [_padded(x, windows) for x in (*xs, inside)], windows)
    return outs, found


def windows_in_turn(combine: Combine, xs: Arrays, inits: Arrays, windows: Windows) -> Arrays:
    """The elements of each window combined with scalar initial values, one after the other in row-major order."""
    counts = windows.shape(np.shape(xs[0]))
    values: Arrays = [broadcast_in_dim(i, counts, ()) for i in inits]
    if 0 in counts:
        return values
    inside = _padded(full(np.shape(xs[0]), True), windows) if windows.reach_outside else None
    xs = [_padded(x, windows) for x in xs]
    for place in np.ndindex(*windows.window_dimensions):
        first = [k * d for k, d in zip(place, windows.window_dilation, strict=True)]
        last = [k + (n - 1) * s + 1 for k, n, s in zip(first, counts, windows.window_strides, strict=True)]
        part = lambda x, first=first, last=last: slice(x, first, last, windows.window_strides)
        found = combine(values, [part(x) for x in xs])
        if inside is not None:
            found = [select_n(part(inside), v, y) for v, y in zip(values, found, strict=True)]
        values = found
    return values


def _padded(x: Any, windows: Windows) -> Any:
    config = [(lo, hi, d - 1) for (lo, hi), d in zip(windows.padding, windows.base_dilation, strict=True)]
    if all(c == (0, 0, 0) for c in config):
        return x
    return pad(x, x.dtype.type(0), config)


def _where_inside(combine: Combine) -> Combine:
    """``combine`` for lists whose last array says where there are elements; others leave the other side as it is."""

    def masked(a: Arrays, b: Arrays) -> Arrays:
        *xs, here = a
        *ys, there = b
        both = bitwise_and(here, there)
        chosen = [select_n(both, select_n(here, y, x), z) for x, y, z in zip(xs, ys, combine(xs, ys), strict=True)]
        return [*chosen, bitwise_or(here, there)]

    return masked


def _fold_padded(combine: Combine, xs: Arrays, windows: Windows) -> Arrays:
    """One dimension after the other, from the last on: in row-major order within each window."""
    for axis in reversed(range(np.ndim(xs[0]))):
        size, stride, dilation = (
            ns[axis] for ns in (windows.window_dimensions, windows.window_strides, windows.window_dilation)
        )
        xs = _fold_dimension(combine, xs, axis, size, stride, dilation)
    return xs


def _fold_dimension(combine: Combine, xs: Arrays, axis: int, size: int, stride: int, dilation: int) -> Arrays:
    """The elements of each window side by side, or, if windows overlap much, runs that double in length."""
    room = np.shape(xs[0])[axis] - dilated(size, dilation)
    count = room // stride + 1 if room >= 0 else 0

    def part(values: Arrays, start: int) -> Arrays:
        if not count:
            return [slice_in_dim(x, 0, 0, 1, axis) for x in values]
        return [slice_in_dim(x, start, start + (count - 1) * stride + 1, stride, axis) for x in values]

    if size == 1 or not count or size * count <= 2 * (room + 1) * size.bit_length():
        return _in_pairs(combine, [part(xs, k * dilation) for k in range(size)])
    return _doubling(combine, xs, axis, size, dilation, part)


def _in_pairs(combine: Combine, parts: list[Arrays]) -> Arrays:
    while len(parts) > 1:
        pairs = [combine(a, b) for a, b in zip(parts[::2], parts[1::2], strict=False)]
        parts = pairs + parts[len(parts) - len(parts) % 2 :]
    return parts[0]


def _doubling(
    combine: Combine, xs: Arrays, axis: int, size: int, dilation: int, part: Callable[[Arrays, int], Arrays]
) -> Arrays:
    """Runs of 1, 2, 4 ... elements from each place on; a window is made of those that its size is the sum of."""
    result: Arrays | None = None
    start, run = 0, 1
    while True:
        if size & run:
            piece = part(xs, start * dilation)
            result = piece if result is None else combine(result, piece)
            start += run
        if 2 * run > size:
            assert result is not None
            return result
        n, step = np.shape(xs[0])[axis], run * dilation
        first, second = ([slice_in_dim(x, k, n - step + k, 1, axis) for x in xs] for k in (0, step))
        xs = combine(first, second)
        run *= 2


def starting_with(combine: Combine, inits: Arrays, xs: Arrays, found: Any | None) -> Arrays:
    """``xs`` combined with scalar initial values before them; just these where there is nothing else."""
    stretched = [broadcast_in_dim(i, np.shape(x), ()) for i, x in zip(inits, xs, strict=True)]
    outs = combine(stretched, xs)
    return outs if found is None else [select_n(found, i, y) for i, y in zip(stretched, outs, strict=True)]
