"""How a kernel is spread over a device: a pure function of the kernel, the extents of its axes and the device's limits.

No platform's name and no measured time decide anything, so that results repeat.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Literal

import numpy as np

from polyax_kernels.emit.indices import index_dtype
from polyax_kernels.emit.schedule import choose as choose_for_host
from polyax_kernels.emit.schedule import strided
from polyax_kernels.gpu.rows import SHORT, by_rows, shared_axes
from polyax_kernels.gpu.scans import FEW, running
from polyax_kernels.gpu.squares import SIDE, across
from polyax_kernels.ir.dependences import Facts
from polyax_kernels.ir.expr import INT, Axis, Expr, folds_of, postorder
from polyax_kernels.ir.kernel import Kernel, kernel_roots
from polyax_kernels.ir.limits import Limits
from polyax_kernels.ir.strides import steps_across
from polyax_kernels.passes.for_emission import flatten
from polyax_kernels.passes.split import RESIDENT

Dimensions = tuple[int, ...]

THREADS = 256
"""Threads of a group that have points of their own."""
LEAST = 32
"""Threads that take their steps together: groups of fewer leave some idle."""
FEWEST = 64
"""Threads of a group, of which a compute unit has room for as many as keep it busy."""
ENOUGH = 16
"""Elements of a row for each thread: with fewer, threads mostly wait for each other."""
MOST_GROUPS = 65535
"""Along the second dimension, as some devices take no more; threads loop over what is left."""
RANGES = 8
"""Ranges of rows per compute unit, so that a late one delays little."""


@dataclass(frozen=True)
class GpuSchedule:
    """``points``: each thread has points of the grid of its own. ``groups``: a group of threads shares each point, its
    folds and its stages' loops. ``ranges``: each thread has a range of the first axis, as on the host."""

    mode: Literal["points", "groups", "ranges"]
    threads: tuple[int, int] = (1, 1)
    """The threads of a group along the last axis of the grid, and along all others."""
    lanes: int = 1
    columns: bool = False
    short_rows: bool = False
    """All three as in ``Schedule``."""
    groups: int = 1
    """In how many ranges the first axis is cut, at most."""
    across: int | None = None
    """The axis whose squares with the last one are what groups share, see ``in_squares``."""
    scans: bool = False
    """Whether what groups share is a row of running values, see ``shared_scan``."""
    rows: tuple[int, ...] | None = None
    """The axes of the grid whose points groups share, where loops over the others are theirs, see ``by_rows``."""
    atomic: bool = False
    """Whether points may update the same place at once."""
    index_dtype: np.dtype = INT
    """As in ``Schedule``."""

    def geometry(self, kernel: Kernel, scalars: Sequence[int]) -> tuple[Dimensions, Dimensions]:
        """How many groups, and how many threads each, a launch has."""
        sizes = extents(kernel.grid, scalars)
        if self.mode == "ranges":
            return (max(1, min(self.groups, *sizes[:1])) if sizes else 1,), (1,)
        if self.rows is not None:
            sizes = [sizes[n] for n in self.rows]
        if self.across is not None:
            for n in (self.across, -1):
                sizes[n] = -(-sizes[n] // SIDE)
        if self.mode == "groups":
            return (prod(sizes),), self.threads[:1]
        x, y = self.threads
        outer = min(MOST_GROUPS, -(-prod(sizes[:-1]) // y))
        return (-(-sizes[-1] // x) if sizes else 1, outer), self.threads


def extents(axes: Sequence[Axis], scalars: Sequence[int]) -> list[int]:
    """The extents in one launch."""
    return [a.extent if isinstance(a.extent, int) else _scalar(a.extent, scalars) for a in axes]


def _scalar(extent: Expr, scalars: Sequence[int]) -> int:
    """Where a launch isn't known, a large one is meant."""
    return scalars[extent.attr] if extent.attr < len(scalars) else 1 << 20


def choose(kernel: Kernel, limits: Limits, scalars: Sequence[int] = ()) -> GpuSchedule:
    """The schedule for launches with ``scalars``; only kernels that serve all sizes need them."""
    chosen = _shape(kernel, limits, scalars)
    return replace(chosen, index_dtype=index_dtype(kernel, limits)) if limits.index_dtype != INT else chosen


def _shape(kernel: Kernel, limits: Limits, scalars: Sequence[int]) -> GpuSchedule:
    """All but the width of indices."""
    if kernel.ordered:
        several = limits.group > 1 and _can_meet(kernel, limits.atomics)
        block = _block(extents(kernel.grid, scalars), limits, square=False)
        return GpuSchedule("points", block, atomic=True) if several else GpuSchedule("ranges")
    if limits.group == 1:
        host = choose_for_host(kernel, limits)
        groups = limits.units * RANGES if host.parallel else 1
        same = {name: getattr(host, name) for name in ("lanes", "columns", "short_rows")}
        return GpuSchedule("ranges", groups=groups, **same)
    sizes, flat = extents(kernel.grid, scalars), flatten(kernel)
    if (found := running(flat)) and found.length * found.x.dtype.itemsize * 2 <= limits.local_bytes:
        enough = max(LEAST, _power_of_two(-(-found.length // FEW)))
        return GpuSchedule("groups", (min(limits.group, limits.threads, enough), 1), scans=True)
    rows = shared_axes(kernel, sizes)
    shared = kernel if rows is None else by_rows(kernel, rows)
    row = _row(shared, scalars)
    if row >= SHORT and _shares(shared, limits, scalars):
        groups = prod(sizes if rows is None else [sizes[n] for n in rows])
        return GpuSchedule("groups", (_sharing(row, groups, limits), 1), rows=rows)
    if (other := across(flat, sizes, limits.local_bytes)) is not None:
        return GpuSchedule("groups", (min(THREADS, limits.threads), 1), across=other)
    return GpuSchedule("points", _block(sizes, limits, square=_beside(flat)))


def _sharing(row: int, groups: int, limits: Limits) -> int:
    """How many threads share a row: more of them, where there are few groups to fill the device, and fewer, where there
    are groups enough and each would have few elements to itself."""
    threads = min(limits.group, _power_of_two(row))
    while threads > FEWEST and row < ENOUGH * threads and groups * threads > 2 * limits.units * RESIDENT:
        threads //= 2
    while 2 * threads <= min(limits.threads, row) and groups * threads < limits.units * THREADS:
        threads *= 2
    return min(threads, limits.threads)


def _can_meet(kernel: Kernel, sizes: frozenset[int]) -> bool:
    """Whether updates of the same place need no order: each combines what is there with a value that doesn't depend on
    it, of one of the ``sizes`` that can be updated at once."""
    stores = [store for stage in kernel.stages for store in stage.stores]
    read = {x.attr.slot for x in postorder(*kernel_roots(kernel)) if x.kind == "load"}
    return all(
        s.combine is not None and s.slot not in read and kernel.operands[s.slot].dtype.itemsize in sizes for s in stores
    )


def _block(sizes: Sequence[int], limits: Limits, *, square: bool) -> tuple[int, int]:
    """A short last axis leaves threads for the others, and so does one across which memory is read."""
    if not sizes:
        return 1, 1
    total, rows = min(THREADS, limits.threads), _power_of_two(prod(sizes[:-1]))
    x = min(max(SIDE, total // rows) if square else total, total, _power_of_two(sizes[-1]))
    return x, min(total // x, rows)


def _beside(flat: Kernel) -> bool:
    """Whether something is read in order along the axis before the last, so that rows of threads share lines of it."""
    loads = [x.args[0] for x in postorder(*kernel_roots(flat)) if x.kind == "load"]
    return len(flat.grid) > 1 and any(steps_across(at, flat.grid[-1], flat.grid[-2]) for at in loads)


def _power_of_two(n: int) -> int:
    """The least one that isn't less than ``n``."""
    return 1 << max(0, n - 1).bit_length()


def _row(kernel: Kernel, scalars: Sequence[int]) -> int:
    """The longest loop at a point of the grid, in elements."""
    nests = [*(x.attr.axes for x in folds_of(*kernel_roots(kernel))), *(stage.axes for stage in kernel.stages)]
    return max((prod(extents(axes, scalars)) for axes in nests), default=1)


def _shares(kernel: Kernel, limits: Limits, scalars: Sequence[int]) -> bool:
    """Whether a group does better at each point than a thread: rows lie along memory, or there are few of them."""
    facts = Facts(kernel)
    if not all(facts.independent(s) for s in kernel.stages if s.axes):
        return False
    few = prod(extents(kernel.grid, scalars)) < limits.units * THREADS
    return few or any(s.axes for s in kernel.stages) or not kernel.grid or not strided(flatten(kernel))
