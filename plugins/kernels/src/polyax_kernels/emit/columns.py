"""Folds down a few columns: as many rows are taken side by side as fill vectors.

``out[j] = sum_k a[k, j]`` has an accumulator for each element of some rows, which lie next to each other as these do:
``for k: for lane: acc[lane] += a[k * lanes + lane]``. The accumulators of each column are put together in the end. What
doesn't depend on ``k`` is computed once, for all lanes. It is a rewrite of kernels: no emitter knows of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import gcd, prod
from typing import NamedTuple

import numpy as np

from polyax_kernels.emit import lanes
from polyax_kernels.emit.lanes import MANY, TOGETHER, paired, steps
from polyax_kernels.ir.dependences import Facts, rounds
from polyax_kernels.ir.expr import Axis, Expr, const, folds_of, index, load, op, postorder, rewrite
from polyax_kernels.ir.kernel import Kernel, Operand, Stage, Store, kernel_roots, map_stores, store_roots
from polyax_kernels.ir.strides import stride

VECTOR = 64
"""Bytes of the widest vectors."""
MOST = 32
"""Columns, at most: of more, threads take some each, and vectors are nearly full without."""


def suits(kernel: Kernel) -> bool:
    """Whether the flat ``kernel`` folds long columns of which the elements lie next to each other."""
    if not kernel.grid or not lanes.suits(kernel) or any(o.role == "local" for o in kernel.operands):
        return False
    folds, column = folds_of(*kernel_roots(kernel)), kernel.grid[-1]
    if not isinstance(column.extent, int) or not 1 < column.extent < MOST:
        return False
    return all(_is_long(kernel, x) for x in folds) and all(_down(kernel, x, column) for x in folds)


def _rows(columns: int, folds: Sequence[Expr]) -> int:
    """So many that their accumulators are whole vectors; two at least, which wait for each other less."""
    elements = VECTOR // max(x.dtype.itemsize for x in folds)
    return max(2, elements // gcd(elements, columns))


def _is_long(kernel: Kernel, fold: Expr) -> bool:
    extents = [axis.extent for axis in (*kernel.grid, *fold.attr.axes)]
    known = [n for n in extents if isinstance(n, int)]
    long = isinstance(extents[-1], int) and extents[-1] >= TOGETHER * VECTOR
    return long and len(known) == len(extents) and prod(known) >= MANY


def _down(kernel: Kernel, fold: Expr, column: Axis) -> bool:
    """Whether a fold over one axis uses its index for nothing but to go from row to row."""
    found = _leaves(fold, Facts(kernel)) if len(fold.attr.axes) == 1 else None
    return found is not None and bool(found.loads) and all(_steps(x, fold.attr.axes[0], column) for x in found.loads)


def _steps(x: Expr, along: Axis, column: Axis) -> bool:
    """Whether a load goes on by an element from column to column, and by all columns from row to row."""
    return not x.attr.masked and (stride(x.args[0], column), stride(x.args[0], along)) == (1, column.extent)


class _FoldLeaves(NamedTuple):
    """What the body of a fold is computed from: loads that depend on its index, and what doesn't depend on it."""

    loads: list[Expr]
    others: list[Expr]


def _leaves(fold: Expr, facts: Facts) -> _FoldLeaves | None:
    """None if it is computed from its index as well."""
    found, along = _FoldLeaves([], []), facts.bound(fold.attr)
    stack, done = [fold.args[1]], set[Expr]()
    while stack:
        x = stack.pop()
        if x in done:
            continue
        done.add(x)
        if x.kind == "index" and facts.axes[x] & along:
            return None
        if not facts.axes[x] & along or x.kind == "load":
            (found.loads if facts.axes[x] & along else found.others).append(x)
        else:
            stack += x.args
    return found


def side_by_side(kernel: Kernel) -> Kernel:
    """The kernel without its last grid axis, over which stages have loops."""
    columns = _ColumnKernel(kernel)
    stages = [stage for before in kernel.stages for stage in columns.stages(before)]
    return replace(kernel, grid=kernel.grid[:-1], stages=tuple(stages), operands=tuple(columns.operands))


_NOWHERE: Mapping[Axis, Expr] = {}
_NOTHING: Mapping[Expr, Expr] = {}


class _ColumnKernel:
    """What all stages of the kernel have in common."""

    def __init__(self, kernel: Kernel) -> None:
        self.facts, self.column, self.operands = Facts(kernel), kernel.grid[-1], list(kernel.operands)
        columns = self.column.extent
        assert isinstance(columns, int)
        self.columns, self.rows = columns, _rows(columns, folds_of(*kernel_roots(kernel)))
        self.row, self.lane = Axis(self.rows, "row"), Axis(self.columns * self.rows, "lane")
        self.known: dict[Expr, Expr] = {}
        """What folds have become."""

    def stages(self, stage: Stage) -> Iterator[Stage]:
        """In the place of one."""
        roots = [x for store in stage.stores for x in store_roots(store)]
        for folds in rounds(postorder(*roots), lambda x: x not in self.known):
            sums = _ColumnFolds(self, folds)
            yield from sums.stages()
            self.known |= {x: op(x.attr.combine, self.changed(x.args[0]), sums.total(x)) for x in folds}
        yield Stage((self.column,), map_stores(stage.stores, self.changed))

    def changed(self, x: Expr, at: Mapping[Axis, Expr] = _NOWHERE, known: Mapping[Expr, Expr] = _NOTHING) -> Expr:
        """``x`` at places of axes, with what stands for its parts."""
        return rewrite(x, lambda x: at.get(x.attr) if x.kind == "index" else None, {**self.known, **known})

    def local(self, dtype: np.dtype) -> int:
        """A new operand with an element for each lane."""
        assert isinstance(self.lane.extent, int)
        self.operands.append(Operand((self.lane.extent,), dtype, "local"))
        return len(self.operands) - 1

    def place(self, row: Expr) -> Expr:
        """Of the lane of ``row`` and the column at hand."""
        return row * self.columns + index(self.column)


class _ColumnFolds:
    """The accumulators of folds over the same axis."""

    def __init__(self, kernel: _ColumnKernel, folds: Sequence[Expr]) -> None:
        self.kernel, self.folds, (self.along,) = kernel, folds, folds[0].attr.axes
        leaves = [found for x in folds if (found := _leaves(x, kernel.facts)) is not None]
        by_column = kernel.facts.bit(kernel.column)
        kept = [y for found in leaves for y in found.others if kernel.facts.axes[y] & by_column]
        self.loads = [y for found in leaves for y in found.loads]
        self.kept = {y: kernel.local(y.dtype) for y in dict.fromkeys(kept)}
        self.slots = {x: kernel.local(x.dtype) for x in folds}

    def total(self, fold: Expr, row: Expr | None = None) -> Expr:
        at = index(self.kernel.column) if row is None else self.kernel.place(row)
        return load(self.slots[fold], fold.dtype, (at,))

    def stages(self) -> Iterator[Stage]:
        kernel, rows = self.kernel, self.kernel.rows
        row, column, lane = (index(axis) for axis in (kernel.row, kernel.column, kernel.lane))
        kept = [Store(n, (kernel.place(row),), kernel.changed(y)) for y, n in self.kept.items()]
        if kept:
            yield Stage((kernel.row, kernel.column), tuple(kept))
        yield Stage((kernel.lane,), tuple([Store(n, (lane,), self.value(x, const(0))) for x, n in self.slots.items()]))
        turns, done = self.along.extent // rows, self.along.extent // rows * rows
        for axis, places in steps(Axis(turns - 1, self.along.name), TOGETHER):
            turn = lambda x, places=places: [self.value(x, place + 1) for place in places]
            yield self.combined((axis, kernel.lane), lane, turn)
        if done != self.along.extent:
            rest = Axis(self.along.extent - done, self.along.name)
            place = {self.along: index(rest) + done}
            yield self.combined((rest, kernel.column), column, lambda x: [kernel.changed(x.args[1], place)])
        later = Axis(rows - 1, "row")
        yield self.combined((later, kernel.column), column, lambda x: [self.total(x, index(later) + 1)])

    def combined(self, axes: tuple[Axis, ...], at: Expr, values: Callable[[Expr], list[Expr]]) -> Stage:
        """Values that are combined with the accumulators at a place."""
        before = {x: load(n, x.dtype, (at,)) for x, n in self.slots.items()}
        after = {n: paired(x.attr.combine, before[x], values(x)) for x, n in self.slots.items()}
        return Stage(axes, tuple([Store(n, (at,), y) for n, y in after.items()]))

    def value(self, fold: Expr, turn: Expr) -> Expr:
        """What all lanes combine in a turn."""
        kernel, lane = self.kernel, index(self.kernel.lane)
        start = dict.fromkeys((self.along, kernel.column), const(0))
        begin = {x: kernel.changed(x.args[0], start) + turn * kernel.lane.extent + lane for x in self.loads}
        moved = {x: load(x.attr.slot, x.dtype, (at,)) for x, at in begin.items()}
        kept = {y: load(n, y.dtype, (lane,)) for y, n in self.kept.items()}
        return kernel.changed(fold.args[1], known={**kept, **moved})
