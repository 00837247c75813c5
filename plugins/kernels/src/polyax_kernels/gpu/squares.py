"""Squares that a group of threads turns around: a rewrite of kernels, of which no emitter knows.

``out[i, j] = a[j, i]`` read as it is written takes one element of each line of memory that it touches. Here a group has
a square of points and memory that its threads share: neighbouring threads read ``a`` along its rows into that, then
write ``out`` along its own. It is what ``emit/tiles.py`` does for a host, with conditions in place of shorter loops.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

from polyax_kernels.emit.tiles import crossed, crossing
from polyax_kernels.ir.expr import Axis, Expr, const, index, load, op, rewriter
from polyax_kernels.ir.kernel import Kernel, Operand, Stage, Store, map_stores
from polyax_kernels.passes.for_emission import as_expr, flatten

LOG = 5
SIDE = 1 << LOG
"""Points along a side of a square: as many threads read or write a line of memory together."""
PITCH = SIDE + 1
"""Elements from one row of scratch to the next: threads that read a column of it don't meet in one bank."""
LEAST = 1 << 14
"""Points below which all that is read lies in a cache."""


def across(kernel: Kernel, sizes: Sequence[int], local_bytes: int) -> int | None:
    """The number of the axis of the flat ``kernel`` whose squares with the last one are worth it; ``sizes`` are those
    of the grid, and ``local_bytes`` the memory that a group has."""
    axis = crossing(kernel, known=False)
    if axis is None:
        return None
    n = kernel.grid.index(axis)
    scratch = sum(x.dtype.itemsize for x in crossed(kernel, axis, known=False)) * SIDE * PITCH
    fits = min(sizes[n], sizes[-1]) >= SIDE and scratch <= local_bytes
    return n if fits and prod(sizes) >= LEAST else None


def in_squares(kernel: Kernel, n: int) -> Kernel:
    """The kernel whose points are squares of axis number ``n`` and the last one of its grid."""
    kernel = flatten(kernel)
    other, last = kernel.grid[n], kernel.grid[-1]
    squares = {other: _number_of(other), last: _number_of(last)}
    reading, writing = Axis(SIDE * SIDE, "t"), Axis(SIDE * SIDE, "t")
    fill, empty = _PointsOfSquare(squares, reading, other), _PointsOfSquare(squares, writing, last)
    operands, fills, near = list(kernel.operands), list[Store](), dict[Expr, Expr]()
    for x in crossed(kernel, other, known=False):
        operands.append(Operand((SIDE * PITCH,), x.dtype, "local"))
        slot = len(operands) - 1
        fills.append(Store(slot, (fill.place(other, last),), fill(x)))
        near[x] = load(slot, x.dtype, (empty.place(other, last),))
    (stage,) = kernel.stages
    stores = map_stores(map_stores(stage.stores, rewriter(near.get)), empty)
    stored = [replace(s, mask=empty.inside if s.mask is None else op("and", s.mask, empty.inside)) for s in stores]
    stages = Stage((reading,), tuple(fills)), Stage((writing,), tuple(stored))
    return replace(
        kernel, grid=tuple([squares.get(a, a) for a in kernel.grid]), stages=stages, operands=tuple(operands)
    )


def _number_of(axis: Axis) -> Axis:
    """The squares along ``axis``."""
    if isinstance(axis.extent, int):
        return Axis(-(-axis.extent // SIDE), axis.name)
    return Axis(op("floordiv", axis.extent + (SIDE - 1), const(SIDE)), axis.name)


class _PointsOfSquare:
    """How threads go through the points of a square: neighbours are neighbours along the axis ``near``.

    Where a square hangs over the end of an axis, what is outside of it reads the last point.
    """

    def __init__(self, squares: Mapping[Axis, Axis], thread: Axis, near: Axis) -> None:
        t = index(thread)
        self.lanes = {a: t & (SIDE - 1) if a is near else op("shift_right_logical", t, const(LOG)) for a in squares}
        points = {a: index(squares[a]) * SIDE + lane for a, lane in self.lanes.items()}
        extents = {a: as_expr(a.extent) for a in squares}
        self.inside = op("and", *[points[a] < extents[a] for a in squares])
        """Whether a thread's point is one of the kernel's."""
        within = {index(a): op("min", points[a], extents[a] - 1) for a in squares}
        self._rewrite = rewriter(within.get)

    def __call__(self, x: Expr) -> Expr:
        """``x`` at a thread's point."""
        return self._rewrite(x)

    def place(self, row: Axis, column: Axis) -> Expr:
        """Where that is in scratch."""
        return self.lanes[row] * PITCH + self.lanes[column]
