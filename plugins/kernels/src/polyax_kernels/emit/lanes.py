"""Lane-blocked folds: several points of the innermost grid axis accumulate side by side.

``out[j] = sum_k a[k, j]`` walks memory with a stride when each sum runs alone. Blocked, the kernel gets three stages
for a block of points: ``acc[lane] = 0``; ``for k: for lane: acc[lane] += a[k, base + lane]``; then
``out[base + lane] = acc[lane]``. It is a rewrite of kernels: no emitter knows of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from polyax_kernels.ir.dependences import rounds
from polyax_kernels.ir.expr import Axis, Expr, folds_of, index, load, op, postorder, rewrite
from polyax_kernels.ir.kernel import Kernel, Operand, Stage, Store, kernel_roots, map_stores, store_roots


@dataclass(frozen=True)
class Blocks:
    """How the last grid axis is walked: ``base`` is the first point of a block, ``count`` the number of its points."""

    lanes: int
    base: Axis
    count: Axis


def block(kernel: Kernel, lanes: int) -> tuple[Kernel, Blocks]:
    """The kernel whose last grid axis is ``base``; stages have an axis of ``count`` lanes.

    ``kernel`` has one-dimensional operands, stages without axes, and folds of one carry.
    """
    last = kernel.grid[-1]
    blocks = Blocks(lanes, Axis(last.extent, f"{last.name}_base"), Axis(lanes + 1, "count"))
    lane = Axis(index(blocks.count), f"{last.name}_lane")
    moved = index(blocks.base) + index(lane)
    operands = list(kernel.operands)
    memo: dict[Expr, Expr] = {}

    def rule(x: Expr) -> Expr | None:
        if x.kind == "index" and x.attr is last:
            return moved
        if x.kind != "fold":
            return None
        operands.append(Operand((lanes,), x.dtype, "local"))
        return load(len(operands) - 1, x.dtype, (index(lane),))

    stages: list[Stage] = []
    for stage in kernel.stages:
        final = Stage((lane,), map_stores(stage.stores, lambda x: rewrite(x, rule, memo)))
        stages += [*_accumulations(stage, memo, lane), final]
    return replace(
        kernel, grid=(*kernel.grid[:-1], blocks.base), stages=tuple(stages), operands=tuple(operands)
    ), blocks


def _accumulations(stage: Stage, memo: dict[Expr, Expr], lane: Axis) -> Iterator[Stage]:
    """Two stages for each group of folds that can share their loops."""
    roots = [x for store in stage.stores for x in store_roots(store)]
    for folds in rounds(postorder(*roots), lambda _: True):
        starts, steps = [], []
        for x in folds:
            acc, (init, body) = memo[x], (memo[a] for a in x.args)
            starts.append(Store(acc.attr.slot, acc.args, init))
            steps.append(Store(acc.attr.slot, acc.args, op(x.attr.combine, acc, body)))
        yield Stage((lane,), tuple(starts))
        yield Stage((*folds[0].attr.axes, lane), tuple(steps))


def suits(kernel: Kernel) -> bool:
    """Whether ``block`` can be applied: every fold stands outside the others' loops and has one carry."""
    folds = folds_of(*kernel_roots(kernel))
    bound = {axis for x in folds for axis in x.attr.axes}
    return bool(folds) and not any(s.axes for s in kernel.stages) and all(_stands_alone(x, bound) for x in folds)


def _stands_alone(fold: Expr, bound: set[Axis]) -> bool:
    free = {x.attr for x in postorder(*fold.args) if x.kind == "index"} - set(fold.attr.axes)
    return len(fold.args) == 2 and not free & bound
