"""Lane-blocked folds: several points of the innermost grid axis accumulate side by side.

``out[j] = sum_k a[k, j]`` walks memory with a stride when each sum runs alone. Blocked, the kernel gets three stages
for a block of points: ``acc[lane] = 0``; ``for k: for lane: acc[lane] += a[k, base + lane]``; then
``out[base + lane] = acc[lane]``. What a stage stores along such an axis, as a running sum does, is stored for a block
of points at each of its steps. It is a rewrite of kernels: no emitter knows of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from math import inf, prod

from polyax_kernels.emit.blocks import Blocks, blocks_of
from polyax_kernels.ir.dependences import Facts, rounds
from polyax_kernels.ir.expr import Axis, Expr, const, folds_of, index, load, op, postorder, rebuild, rewrite, rewriter
from polyax_kernels.ir.kernel import Kernel, Operand, Stage, Store, kernel_roots, map_stores, store_roots
from polyax_kernels.ir.scalars import cost

TOGETHER = 8
"""Points of a fold's axis that are combined with each other before they are with the accumulators: a power of two."""
MANY = 1 << 14
"""Elements below which all lie in the nearest cache, and points are taken one by one: that is less code."""
SIMPLE = 12
"""What a body takes, at most, that is written several times, in operations."""


def block(kernel: Kernel, lanes: int, rows: int = 1) -> tuple[Kernel, tuple[Blocks, ...]]:
    """The kernel whose last grid axis is ``base``; stages have an axis of ``count`` lanes.

    With ``rows``, that is so of the axis before the last as well, and stages have an axis of rows around that of lanes.
    ``kernel`` has one-dimensional operands, and either stages without axes and folds of one carry, or no folds. What
    its stages keep for a point, each lane has for its own.
    """
    cut = kernel.grid[-1:] if rows == 1 else kernel.grid[-2:]
    blocks = tuple(map(blocks_of, cut, (rows, lanes)[-len(cut) :]))
    moved = {axis: b.point() for axis, b in zip(cut, blocks, strict=True)}
    axes = tuple([b.lane for b in blocks])
    place = index(axes[-1]) if rows == 1 else index(axes[0]) * lanes + index(axes[1])
    points, own = rows * lanes, {n for n, o in enumerate(kernel.operands) if o.role == "local"}
    operands = [replace(o, shape=(o.shape[0] * points,)) if n in own else o for n, o in enumerate(kernel.operands)]
    memo: dict[Expr, Expr] = {}

    def rule(x: Expr) -> Expr | None:
        if x.kind == "index":
            return moved.get(x.attr)
        if x.kind == "load" and x.attr.slot in own:
            return rebuild(x, (x.args[0] * points + place, *x.args[1:]))
        if x.kind != "fold":
            return None
        operands.append(Operand((points,), x.dtype, "local"))
        return load(len(operands) - 1, x.dtype, (place,))

    stages: list[Stage] = []
    for stage in kernel.stages:
        stores = map_stores(stage.stores, lambda x: rewrite(x, rule, memo))
        apart = [replace(s, indices=(s.indices[0] * points + place,)) if s.slot in own else s for s in stores]
        final = Stage((*stage.axes, *axes), tuple(apart))
        stages += [*_accumulations(stage, memo, axes, _elements(kernel.grid)), final]
    grid = (*kernel.grid[: -len(cut)], *[b.base for b in blocks])
    return replace(kernel, grid=grid, stages=tuple(stages), operands=tuple(operands)), blocks


def _elements(axes: Iterable[Axis]) -> float:
    """The points of loops over ``axes``; no end of them if that isn't known."""
    return prod(axis.extent if isinstance(axis.extent, int) else inf for axis in axes)


def _accumulations(stage: Stage, memo: dict[Expr, Expr], lanes: tuple[Axis, ...], points: float) -> Iterator[Stage]:
    """For each group of folds that can share their loops a stage that starts them, and those that take steps."""
    roots = [x for store in stage.stores for x in store_roots(store)]
    for folds in rounds(postorder(*roots), lambda _: True):
        accumulators = [memo[x] for x in folds]
        starts = [Store(acc.attr.slot, acc.args, memo[x.args[0]]) for x, acc in zip(folds, accumulators, strict=True)]
        yield Stage(lanes, tuple(starts))
        bodies = [memo[x.args[1]] for x in folds]
        *outer, last = folds[0].attr.axes
        large = points * _elements(folds[0].attr.axes) >= MANY
        simple = sum(cost(x) for x in postorder(*bodies) if x.kind in ("op", "cast")) <= SIMPLE
        for axis, places in steps(last, TOGETHER if large and simple else 1):
            step = _Step(last, places)
            stores = [
                Store(acc.attr.slot, acc.args, step.combined(x.attr.combine, acc, body))
                for x, acc, body in zip(folds, accumulators, bodies, strict=True)
            ]
            yield Stage((*outer, axis, *lanes), tuple(stores))


def steps(axis: Axis, together: int) -> Iterator[tuple[Axis, list[Expr]]]:
    """Loops that take the place of one over ``axis``, with the points that each turn takes: several where there are
    many, so that accumulators are read and written as much less often."""
    extent = axis.extent
    if together == 1 or (isinstance(extent, int) and extent < together):
        yield axis, [index(axis)]
        return
    turns = op("div", extent, const(together)) if isinstance(extent, Expr) else extent // together
    outer = Axis(turns, axis.name)
    yield outer, [index(outer) * together + n for n in range(together)]
    done = turns * together
    if done != extent:
        rest = Axis(extent - done, axis.name)
        yield rest, [index(rest) + done]


class _Step:
    """The values of bodies at several points of an axis; what they share is made once."""

    def __init__(self, axis: Axis, places: list[Expr]) -> None:
        self.at = [rewriter(partial(_moved, axis, place)) for place in places]

    def combined(self, name: str, start: Expr, body: Expr) -> Expr:
        """``start`` and the body's values, these by pairs: sums err less, and none waits for all before it."""
        return paired(name, start, [change(body) for change in self.at])


def paired(name: str, start: Expr, values: list[Expr]) -> Expr:
    """``start`` and the values, a power of two, combined by pairs."""
    while len(values) > 1:
        values = [op(name, *pair) for pair in zip(values[::2], values[1::2], strict=True)]
    return op(name, start, values[0])


def _moved(axis: Axis, place: Expr, x: Expr) -> Expr | None:
    return place if x.kind == "index" and x.attr is axis else None


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
