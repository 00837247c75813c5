"""Which schedule a kernel gets: a pure function of the kernel, so that results repeat and decisions can be shown."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from polyax_kernels.emit import columns, cuts, row_folds, short_rows
from polyax_kernels.emit.indices import index_dtype
from polyax_kernels.emit.lanes import suits
from polyax_kernels.emit.tiles import crossing
from polyax_kernels.ir.dependences import goes_on
from polyax_kernels.ir.expr import INT, Axis, Expr, consing, folds_of, postorder
from polyax_kernels.ir.kernel import Kernel, Schedule, kernel_roots
from polyax_kernels.ir.limits import Limits
from polyax_kernels.ir.scalars import cost
from polyax_kernels.ir.strides import NEAR, steps_across, stride
from polyax_kernels.passes import residues
from polyax_kernels.passes.for_emission import flatten
from polyax_kernels.passes.straight import without_short_folds

TILED = 1 << 14
"""Points below which arrays lie in the nearest cache: squares would gain little there, and are more code to compile."""
ROWS = 16
"""Rows whose lanes are computed together where each would read the same again."""
ACCUMULATED = 1 << 14
"""Bytes of accumulators that stay in the nearest cache besides what is read."""
REREAD = 1 << 19
"""Bytes that rows may each read again: as much as the second cache surely holds."""
RUNNING, DEEP = 4, 16
"""Rows whose running values are computed side by side, since each waits for the one before it; and rows of values that
take elementary functions, which are vectors then."""
LONG = 12
"""What a step with an elementary function costs, at least."""


def choose(kernel: Kernel, limits: Limits | None = None) -> Schedule:
    """Splits the first grid axis among threads; strided folds run in ``limits.lanes`` lanes along the last one, and
    what is read across that axis is read in squares of ``limits.tile`` points a side."""
    limits = limits or Limits()
    with consing():
        chosen = _shape(kernel, limits)
    return replace(chosen, index_dtype=index_dtype(kernel, limits)) if limits.index_dtype != INT else chosen


def _shape(kernel: Kernel, limits: Limits) -> Schedule:
    """All but the width of indices."""
    if kernel.ordered:
        return Schedule(parallel=0)
    flat = without_short_folds(flatten(kernel))
    if not kernel.grid:
        return Schedule(parallel=0, cut=_many(kernel) and cuts.suits(flat))
    if limits.lanes > 1 and short_rows.suits(flat):
        return Schedule(short_rows=True)
    if limits.lanes > 1 and row_folds.suits(flat):
        return Schedule(row_blocks=True)
    if limits.tile > 1 and _many(kernel) and (axis := crossing(flat)) is not None:
        side = _side(limits.tile, axis, kernel.grid[-1])
        return Schedule(tile=side, grain=side if axis is kernel.grid[0] else 1)
    if limits.lanes > 1 and columns.suits(flat):
        return Schedule(parallel=min(1, len(kernel.grid) - 1), columns=True)
    lanes = _lanes(flat, limits.lanes)
    if lanes > 1 and rereads(flat):
        return Schedule(lanes=min(lanes, limits.lanes // ROWS), rows=ROWS)
    return Schedule(lanes=lanes, cut=lanes == 1 and _many(kernel) and (cuts.suits(flat) or residues.suits(flat)))


def _side(most: int, *axes: Axis) -> int:
    """The side of squares, a power of two, of which those along short axes are whole ones."""
    least = min([most, *[axis.extent for axis in axes if isinstance(axis.extent, int)]])
    return 1 << (least.bit_length() - 1)


def _many(kernel: Kernel) -> bool:
    """Whether the kernel has so many points that squares and cuts pay; how many there are may not be known."""
    axes = [(*kernel.grid, *stage.axes) for stage in kernel.stages]
    known = [[axis.extent for axis in along if isinstance(axis.extent, int)] for along in axes]
    return any(len(k) < len(a) or prod(k) >= TILED for k, a in zip(known, axes, strict=True))


def _lanes(kernel: Kernel, most: int) -> int:
    """Strided folds want lanes, and so do stages that store with a stride, or wait for the step before."""
    if _many(kernel) and runs(kernel):
        return _at_most(kernel, min(most, DEEP if _steps_are_long(kernel) else RUNNING))
    if not (suits(kernel) and strided(kernel)) and not stores_strided(kernel):
        return 1
    folds = folds_of(*kernel_roots(kernel))
    kept = sum(x.dtype.itemsize for x in (*folds, *(o for o in kernel.operands if o.role == "local")))
    near = min(most, max(1, ACCUMULATED // kept)) if folds else most
    return _at_most(kernel, near)


def _at_most(kernel: Kernel, lanes: int) -> int:
    """No more lanes than there are points."""
    extent = kernel.grid[-1].extent
    return min(lanes, extent) if isinstance(extent, int) else lanes


def runs(kernel: Kernel) -> bool:
    """Whether the stages of the flat ``kernel`` go on from what they wrote, step by step as memory lies."""
    stages = kernel.stages
    if folds_of(*kernel_roots(kernel)) or not all(stage.axes and goes_on(stage) for stage in stages):
        return False
    places = [(store.indices[0], stage.axes[-1]) for stage in stages for store in stage.stores]
    return all(stride(at, inner) in (-1, 1) for at, inner in places)


def _steps_are_long(kernel: Kernel) -> bool:
    return max(cost(x) for x in postorder(*kernel_roots(kernel))) >= LONG


def stores_strided(kernel: Kernel) -> bool:
    """Whether stages of the flat ``kernel`` step through memory along their last axis, but not along the grid's."""
    last, stages = kernel.grid[-1], kernel.stages
    if folds_of(*kernel_roots(kernel)) or not all(stage.axes for stage in stages):
        return False
    places = [(store.indices[0], stage.axes[-1]) for stage in stages for store in stage.stores]
    return all(stride(at, last) in NEAR and stride(at, inner) not in (0, *NEAR) for at, inner in places)


def rereads(kernel: Kernel) -> bool:
    """Whether each point of the axis before the last reads the same elements of an array, more than a cache holds."""
    folds = folds_of(*kernel_roots(kernel))
    if len(kernel.grid) < 2 or not folds:
        return False
    before, last = kernel.grid[-2:]
    return any(
        stride(x.args[0], before) == 0
        and stride(x.args[0], last) in NEAR
        and _span(fold, last) * x.dtype.itemsize > REREAD
        for fold in folds
        for x in postorder(*fold.args)
        if x.kind == "load"
    )


def _span(fold: Expr, last: Axis) -> int:
    """The elements that folds read along ``last``; 0 if that isn't known."""
    return prod([a.extent if isinstance(a.extent, int) else 0 for a in (*fold.attr.axes, last)])


def strided(kernel: Kernel) -> bool:
    """Whether a load of the flat ``kernel`` steps through memory along a fold's last axis, but not along the grid's."""
    loads = [
        (x.args[0], fold.attr.axes[-1])
        for fold in folds_of(*kernel_roots(kernel))
        for x in postorder(*fold.args)
        if x.kind == "load"
    ]
    return any(steps_across(at, inner, kernel.grid[-1]) for at, inner in loads)
