"""Tiles: what a kernel reads across its last grid axis is first copied, a square at a time, to where it is near.

``out[i, j] = a[j, i]`` takes one element of each line of memory that it touches, and all lines of a column fall into
few places of a cache. Tiled, the kernel walks squares of points and gets two stages for each: ``for j: for i:
scratch[i, j] = a[j, i]``, then ``for i: for j: out[i, j] = scratch[i, j]``. It is a rewrite of kernels; an emitter may
have a better way to turn a square around (``Emitter.transpose``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from polyax_kernels.emit.blocks import Blocks, blocks_of
from polyax_kernels.ir.expr import Axis, Expr, index, load, postorder, rewriter
from polyax_kernels.ir.kernel import Kernel, Operand, Stage, Store, kernel_roots, map_stores
from polyax_kernels.ir.strides import stride

NEAR = 1
"""Elements from one point to the next where memory is walked in order."""
FAR = 16
"""Elements from one point to the next where each is in a line of its own."""
LEAST = 8
"""Axes of fewer points aren't cut into squares."""


def tile(kernel: Kernel, side: int) -> tuple[Kernel, tuple[Blocks, Blocks]]:
    """The kernel on squares of ``side`` points, for one of which ``crossing`` finds an axis."""
    other = crossing(kernel)
    assert other is not None
    last = kernel.grid[-1]
    rows, columns = blocks_of(other, side), blocks_of(last, side)
    moved = {other: rows, last: columns}
    plain = rewriter(lambda x: moved[x.attr].point() if x.kind == "index" and x.attr in moved else None)
    operands, fills = list(kernel.operands), list[Store]()
    near = {x: _scratch(operands, fills, plain(x), rows, columns, side) for x in crossed(kernel, other)}
    final = rewriter(near.get)
    (stage,) = kernel.stages
    stores = map_stores(map_stores(stage.stores, final), plain)
    grid = tuple([moved[axis].base if axis in moved else axis for axis in kernel.grid])
    stages = Stage((columns.lane, rows.lane), tuple(fills)), Stage((rows.lane, columns.lane), stores)
    return replace(kernel, grid=grid, stages=stages, operands=tuple(operands)), (rows, columns)


def _scratch(
    operands: list[Operand], fills: list[Store], value: Expr, rows: Blocks, columns: Blocks, side: int
) -> Expr:
    """What reads ``value`` from scratch."""
    operands.append(Operand((side * side,), value.dtype, "local"))
    slot, at = len(operands) - 1, index(rows.lane) * side + index(columns.lane)
    fills.append(Store(slot, (at,), value))
    return load(slot, value.dtype, (at,))


def crossing(kernel: Kernel, *, known: bool = True) -> Axis | None:
    """The axis along which the flat ``kernel`` reads in order what it reads with long steps along the last one.

    Steps whose length isn't ``known``, as those of kernels that serve all sizes, count as long ones if they may.
    """
    if len(kernel.stages) != 1 or kernel.stages[0].axes or len(kernel.grid) < 2:
        return None
    nodes = postorder(*kernel_roots(kernel))
    ordered = all(_in_order(store, kernel.grid[-1]) for store in kernel.stages[0].stores)
    if not ordered or any(x.kind == "fold" for x in nodes):
        return None
    found = Counter(axis for x in nodes for axis in _near_axes(kernel, x, known))
    return max(found, key=lambda axis: found[axis]) if found else None


def _in_order(store: Store, last: Axis) -> bool:
    return store.combine is None and stride(store.indices[0], last) == NEAR


def crossed(kernel: Kernel, axis: Axis, *, known: bool = True) -> Iterator[Expr]:
    """The loads for which ``crossing`` finds ``axis``."""
    return (x for x in postorder(*kernel_roots(kernel)) if axis in _near_axes(kernel, x, known))


def _near_axes(kernel: Kernel, x: Expr, known: bool) -> list[Axis]:
    """The grid axes along which the load ``x`` walks memory in order while it jumps along the last one."""
    last = kernel.grid[-1]
    if x.kind != "load" or x.attr.masked or kernel.operands[x.attr.slot].role != "in" or not _long(last):
        return []
    step = stride(x.args[0], last)
    if known if step is None else abs(step) < FAR:
        return []
    return [axis for axis in kernel.grid[:-1] if _long(axis) and stride(x.args[0], axis) == NEAR]


def _long(axis: Axis) -> bool:
    return not isinstance(axis.extent, int) or axis.extent >= LEAST
