"""Blocks: a grid axis walked several points at a time, so that these points can be computed side by side.

A rewrite of kernels replaces the axis by that of the blocks' first points and gives stages an axis of lanes; only the
walker, which opens the loops, knows of it.
"""

from __future__ import annotations

from dataclasses import dataclass

from polyax_kernels.ir.expr import Axis, Expr, index


@dataclass(frozen=True)
class Blocks:
    """How a grid axis is walked: ``base`` is the first point of a block, ``count`` the number of its points."""

    lanes: int
    base: Axis
    count: Axis
    lane: Axis
    ragged: bool = False
    """Whether blocks that lack points run the code of the others: it is compiled once, for any number of them."""

    def point(self) -> Expr:
        """The index of the axis that was there before."""
        return index(self.base) + index(self.lane)


def blocks_of(axis: Axis, lanes: int) -> Blocks:
    """``lanes`` points of ``axis`` at a time."""
    count = Axis(lanes + 1, "count")
    return Blocks(lanes, Axis(axis.extent, f"{axis.name}_base"), count, Axis(index(count), f"{axis.name}_lane"))
