"""Grids of rows: where many points need the same long fold, a group of threads takes all of them, and folds once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from polyax_kernels.ir.dependences import Facts, union
from polyax_kernels.ir.expr import Axis, Expr, folds_of
from polyax_kernels.ir.kernel import Kernel, Stage, kernel_roots

SHORT = 32
"""Rows of fewer elements are one thread's work."""
ALONE = 1 << 16
"""Points that one group may have to itself, if all of them need the same fold."""


def shared_axes(kernel: Kernel, sizes: Sequence[int]) -> tuple[int, ...] | None:
    """Which axes of the grid, of these ``sizes``, long folds depend on; None if on all, or if there are no such folds.

    Scratch is private to a point of the grid, so points that have some stay alone.
    """
    facts = Facts(kernel)
    long = [x for x in folds_of(*kernel_roots(kernel)) if _length(x.attr.axes) >= SHORT]
    used = union(facts.axes[x] for x in long)
    positions = tuple(n for n, axis in enumerate(kernel.grid) if used & facts.bit(axis))
    points = prod(size for n, size in enumerate(sizes) if n not in positions)
    has_scratch = any(o.role == "local" for o in kernel.operands)
    if not long or has_scratch or points < 2 or (not positions and points > ALONE):
        return None
    return positions


def _length(axes: Sequence[Axis]) -> int:
    """Where a launch isn't known, a long one is meant."""
    return prod(SHORT if isinstance(axis.extent, Expr) else axis.extent for axis in axes)


def by_rows(kernel: Kernel, positions: Sequence[int]) -> Kernel:
    """The kernel whose grid has these axes alone; the others are loops of its stages."""
    inner = tuple(axis for n, axis in enumerate(kernel.grid) if n not in positions)
    stages = tuple(Stage((*inner, *stage.axes), stage.stores) for stage in kernel.stages)
    return replace(kernel, grid=tuple(kernel.grid[n] for n in positions), stages=stages)
