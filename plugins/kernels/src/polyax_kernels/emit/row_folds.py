"""Which kernels fold rows of a few vectors, many of which are computed together (``row_blocks.py``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from polyax_kernels.emit.columns import VECTOR
from polyax_kernels.ir.dependences import Facts, union
from polyax_kernels.ir.expr import INT, PICKS, Expr, folds_of, postorder
from polyax_kernels.ir.kernel import Kernel, Operand, Stage, kernel_roots
from polyax_kernels.ir.limits import NARROW
from polyax_kernels.ir.scalars import cost
from polyax_kernels.ir.strides import stride
from polyax_kernels.passes.straight import NODES

WORD = 4
"""Bytes of the least numbers of which the lanes of a vector are as many as the rows of a block."""
LEAST, MOST = 9, 96
"""Elements of a row: fewer are written out, and of more a vector is put together less often."""
LARGE, STEP = 1 << 22, 256
"""Bytes of operands that come from memory, and of their rows up to which their lines are asked for in order."""
LONG = 12
"""What an element costs that is kept rather than computed again: an elementary function."""
WORK = 24
"""What is done for a row as a whole, from which on it pays that rows are vectors; one elementary function is enough."""
NARROWED = 6
"""What it costs to round to a narrow type."""
SCRATCH = 1 << 14
"""Bytes that the rows of a block may keep for themselves."""


def suits(kernel: Kernel) -> bool:
    """Whether the flat ``kernel`` has many rows, each of which is folded along memory."""
    kernel = in_stages(kernel)
    folds = row_folds(kernel, Facts(kernel))
    if kernel.ordered or not kernel.grid or not folds or any(map(_is_long, folds)):
        return False
    lanes, extent = lanes_of(folds), kernel.grid[-1].extent
    if isinstance(extent, int) and extent < lanes:
        return False
    stores = [store for stage in kernel.stages for store in stage.stores]
    if any(store.combine for store in stores) or any(_leaps(kernel, x) for x in folds) or _is_much(kernel, folds):
        return False
    return _by_rows(kernel, folds) and all(_in_order(x) for x in folds) and _pays(kernel, folds)


def _is_much(kernel: Kernel, folds: Sequence[Expr]) -> bool:
    """Whether there would be much code, or more scratch than the nearest cache holds."""
    lanes = lanes_of(folds)
    nodes = sum(len(postorder(x.args[1])) * (x.attr.axes[0].extent // lanes) for x in folds)
    kept = sum(_bytes(o) for o in kernel.operands if o.role == "local")
    return nodes > NODES or kept * lanes > SCRATCH


def _bytes(operand: Operand) -> int:
    """As far as they are known."""
    return operand.dtype.itemsize * prod(n for n in operand.shape if isinstance(n, int))


def in_stages(kernel: Kernel) -> Kernel:
    """The kernel whose grid is that of rows: of axes behind those along which folds differ, stages have loops."""
    if len(kernel.stages) != 1 or kernel.stages[0].axes or not kernel.grid:
        return kernel
    facts = Facts(kernel)
    differ = union(facts.axes[x] for x in folds_of(*kernel_roots(kernel)))
    count = max((n for n, axis in enumerate(kernel.grid, 1) if facts.bit(axis) & differ), default=len(kernel.grid))
    return replace(kernel, grid=kernel.grid[:count], stages=(Stage(kernel.grid[count:], kernel.stages[0].stores),))


def row_folds(kernel: Kernel, facts: Facts) -> list[Expr]:
    """The folds that differ from row to row; others are computed before all rows."""
    return [x for x in folds_of(*kernel_roots(kernel)) if differs(kernel, facts, x)]


def differs(kernel: Kernel, facts: Facts, x: Expr) -> bool:
    """Whether an expression may differ from row to row."""
    return bool(facts.reads[x] or facts.axes[x] & facts.bit(kernel.grid[-1]))


def _is_long(fold: Expr) -> bool:
    """Whether a fold isn't one of a few vectors."""
    if fold.attr.combine in PICKS or len(fold.args) != 2 or len(fold.attr.axes) != 1:
        return True
    extent = fold.attr.axes[0].extent
    return not isinstance(extent, int) or not LEAST <= extent <= MOST


def _leaps(kernel: Kernel, fold: Expr) -> bool:
    """Whether it folds long rows that come from memory, whose vectors are not combined in the order of their places."""
    loads = [x for x in postorder(fold.args[1]) if x.kind == "load"]
    far = [x for x in loads if kernel.operands[x.attr.slot].role != "local" and _is_large(kernel.operands[x.attr.slot])]
    return any(x.dtype.itemsize * fold.attr.axes[0].extent > STEP for x in far)


def _is_large(operand: Operand) -> bool:
    return _bytes(operand) >= LARGE or not all(isinstance(n, int) for n in operand.shape)


def _by_rows(kernel: Kernel, folds: Sequence[Expr]) -> bool:
    """Whether each fold is one of each row, and needs no index of another's loop, or of a stage's."""
    facts = Facts(kernel)
    inner = facts.bound_by(folds) | union(facts.bit(axis) for stage in kernel.stages for axis in stage.axes)
    return not any(facts.axes[x] & inner for x in folds_of(*kernel_roots(kernel)))


def _pays(kernel: Kernel, folds: Sequence[Expr]) -> bool:
    """Whether extrema of floats are asked for, which take several instructions, or much is done for rows as a whole:
    the lanes of a vector are summed as fast by themselves."""
    if any(x.attr.combine in ("max", "min") and x.dtype.kind in "fV" for x in folds):
        return True
    facts = Facts(kernel)
    inner = facts.bound_by(folds) | union(facts.bit(axis) for stage in kernel.stages for axis in stage.axes)
    nodes = [x for x in postorder(*kernel_roots(kernel)) if x.kind in ("op", "cast") and x.dtype != INT]
    costs = [_cost(x) for x in nodes if differs(kernel, facts, x) and not facts.axes[x] & inner]
    return max(costs, default=0) >= LONG or sum(costs) >= WORK


def _cost(x: Expr) -> int:
    return NARROWED if x.dtype in NARROW else cost(x)


def _in_order(fold: Expr) -> bool:
    places = [x.args[0] for x in postorder(fold.args[1]) if x.kind == "load"]
    return all(stride(at, fold.attr.axes[0]) in (0, 1) for at in places)


def lanes_of(folds: Sequence[Expr]) -> int:
    return VECTOR // max(WORD, *(x.dtype.itemsize for x in folds))
