"""Stages that put the lanes of rows in scratch together, for which emitters may have a way of their own.

``for row: target[row] = source[row, 0] + source[row, 1] + ...``, where there are as many rows as elements in each: what
a fold of a whole kernel is made of where rows are computed together (``row_blocks.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from polyax_kernels.ir.expr import Axis, Expr, const, fold, index, load
from polyax_kernels.ir.kernel import Stage, Store


def totalling(targets: Mapping[int, Expr], sources: Mapping[int, int], row: Axis, lanes: int) -> Stage:
    """The stage. ``targets``: a fold that says how its lanes are combined, by slot; ``sources``: the slot of these."""
    stores, lane = list[Store](), Axis(lanes - 1, "lane")
    for target, x in targets.items():
        first, other = (load(sources[target], x.dtype, (at,)) for at in _places(row, lane))
        stores.append(Store(target, (index(row),), fold(x.attr.combine, (lane,), (first,), (other,))))
    return Stage((row,), tuple(stores))


def _places(row: Axis, lane: Axis) -> tuple[Expr, Expr]:
    """Of the first element of a row, and of another one."""
    start = index(row) * row.extent
    return start + const(0), start + (index(lane) + 1)


class Totals(NamedTuple):
    """``target[row]`` is what the first ``lanes`` of ``side`` elements of a row of ``source`` combine to; there are as
    many rows."""

    source: int
    target: int
    side: int
    lanes: int
    combine: str
    dtype: np.dtype


def totals_of(stage: Stage) -> list[Totals]:
    """What a stage does, if it puts the lanes of rows of scratch together, and nothing else."""
    if len(stage.axes) != 1 or any(s.value.kind != "fold" or s.mask is not None for s in stage.stores):
        return []
    found = [_total(store, stage.axes[0]) for store in stage.stores]
    return [x for x in found if x is not None] if None not in found else []


def _total(store: Store, row: Axis) -> Totals | None:
    x, (at,) = store.value, store.indices
    if len(x.args) != 2 or len(x.attr.axes) != 1 or any(a.kind != "load" or a.attr.masked for a in x.args):
        return None
    (lane,), (first, other), side = x.attr.axes, x.args, row.extent
    same = first.attr.slot == other.attr.slot and (first.args[0], other.args[0]) == _places(row, lane)
    if not same or at is not index(row) or not isinstance(side, int) or not isinstance(lane.extent, int):
        return None
    return Totals(first.attr.slot, store.slot, side, lane.extent + 1, x.attr.combine, x.dtype)
