"""Lane-blocked folds: several points of the innermost grid axis accumulate side by side.

``out[j] = sum_k a[k, j]`` walks memory with a stride when each sum runs alone. Blocked, the kernel gets three stages
for a block of points: ``acc[lane] = 0``; ``for k: for lane: acc[lane] += a[k, base + lane]``; then
``out[base + lane] = acc[lane]``. What a stage stores along such an axis, as a running sum does, is stored for a block
of points at each of its steps. It is a rewrite of kernels: no emitter knows of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from polyax_kernels.emit.blocks import Blocks, blocks_of
from polyax_kernels.ir.dependences import Facts, rounds
from polyax_kernels.ir.expr import Axis, Expr, folds_of, index, load, op, postorder, rewrite
from polyax_kernels.ir.kernel import Kernel, Operand, Stage, Store, kernel_roots, map_stores, store_roots


def block(kernel: Kernel, lanes: int, rows: int = 1) -> tuple[Kernel, tuple[Blocks, ...]]:
    """The kernel whose last grid axis is ``base``; stages have an axis of ``count`` lanes.

    With ``rows``, that is so of the axis before the last as well, and stages have an axis of rows around that of lanes.
    ``kernel`` has one-dimensional operands, and either stages without axes and folds of one carry, or no folds.
    """
    cut = kernel.grid[-1:] if rows == 1 else kernel.grid[-2:]
    blocks = tuple(map(blocks_of, cut, (rows, lanes)[-len(cut) :]))
    moved = {axis: b.point() for axis, b in zip(cut, blocks, strict=True)}
    axes = tuple([b.lane for b in blocks])
    place = index(axes[-1]) if rows == 1 else index(axes[0]) * lanes + index(axes[1])
    operands = list(kernel.operands)
    memo: dict[Expr, Expr] = {}

    def rule(x: Expr) -> Expr | None:
        if x.kind == "index":
            return moved.get(x.attr)
        if x.kind != "fold":
            return None
        operands.append(Operand((rows * lanes,), x.dtype, "local"))
        return load(len(operands) - 1, x.dtype, (place,))

    stages: list[Stage] = []
    for stage in kernel.stages:
        final = Stage((*stage.axes, *axes), map_stores(stage.stores, lambda x: rewrite(x, rule, memo)))
        stages += [*_accumulations(stage, memo, axes), final]
    grid = (*kernel.grid[: -len(cut)], *[b.base for b in blocks])
    return replace(kernel, grid=grid, stages=tuple(stages), operands=tuple(operands)), blocks


def _accumulations(stage: Stage, memo: dict[Expr, Expr], lanes: tuple[Axis, ...]) -> Iterator[Stage]:
    """Two stages for each group of folds that can share their loops."""
    roots = [x for store in stage.stores for x in store_roots(store)]
    for folds in rounds(postorder(*roots), lambda _: True):
        starts, steps = [], []
        for x in folds:
            acc, (init, body) = memo[x], (memo[a] for a in x.args)
            starts.append(Store(acc.attr.slot, acc.args, init))
            steps.append(Store(acc.attr.slot, acc.args, op(x.attr.combine, acc, body)))
        yield Stage(lanes, tuple(starts))
        yield Stage((*folds[0].attr.axes, *lanes), tuple(steps))


def suits(kernel: Kernel) -> bool:
    """Whether ``block`` can be applied: every fold has one carry and needs no index of another's loops.

    It may need another's result: that is computed for the whole block before.
    """
    folds = folds_of(*kernel_roots(kernel))
    if not folds or any(s.axes for s in kernel.stages) or any(len(x.args) != 2 for x in folds):
        return False
    facts = Facts(kernel)
    bound = facts.bound_by(folds)
    return not any(facts.axes[x] & bound for x in folds)
