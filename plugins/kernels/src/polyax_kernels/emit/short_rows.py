"""Short rows: a kernel whose rows have a few elements computes many rows side by side, instead of few elements.

``for i: s = sum_k x[i, k]; for j: out[i, j] = exp(s) * x[i, j]`` fills no vector where rows have two or three elements,
and computes ``exp(s)`` for one row after the other. Written out, ``for i: s = x[i, 0] + x[i, 1]; out[i, 0] = exp(s) *
x[i, 0]; out[i, 1] = exp(s) * x[i, 1]``, the lanes of vectors are rows. It is a rewrite of kernels: no emitter knows of
it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import prod

from polyax_kernels.ir.dependences import Facts, union
from polyax_kernels.ir.expr import PICKS, Axis, Expr, postorder, rewriter
from polyax_kernels.ir.kernel import Kernel, Stage, Store, kernel_roots, map_stores, store_roots
from polyax_kernels.ir.scalars import cost
from polyax_kernels.ir.simplify import Simplifier
from polyax_kernels.passes.placed import Placing
from polyax_kernels.passes.straight import NODES, straight, turns

MOST = 15
"""Elements of a row: more fill vectors of their own."""
ROWS = 64
"""Rows that fill vectors."""
PAYS = ((6, 4), (8, 12))
"""Rows up to so many elements are worth it if an operation costs so much: a square root, or an elementary function; if
elements are read under conditions, which are known where they are written out; or if all are the same."""
NARROW, BYTES = 2, 6
"""Elements of so few bytes, and rows of them that are always worth it: they fill no vector, and one by one they cost
as much as wide ones."""
WORK = 24
"""Longer ones, if so much is done for the row as a whole: its elements could be read and written as a vector."""


def suits(kernel: Kernel) -> bool:
    """Whether the flat ``kernel`` has short rows, and work that pays to be done for many of them at once."""
    rows, stages = _in_stages(kernel)
    if kernel.ordered or not rows or _points(rows[-1:]) < ROWS:
        return False
    nodes = postorder(*kernel_roots(kernel))
    folds = [x.attr for x in nodes if x.kind == "fold"]
    loops = [*[stage.axes for stage in stages], *[fold.axes for fold in folds]]
    longest = max(map(_points, loops), default=1)
    if not 1 < longest <= MOST or longest * len(nodes) > NODES or any(fold.combine in PICKS for fold in folds):
        return False
    return _pays(replace(kernel, grid=rows, stages=stages), longest, nodes) and _apart(kernel, stages, nodes)


def _pays(kernel: Kernel, longest: int, nodes: Sequence[Expr]) -> bool:
    least = next((least for most, least in PAYS if longest <= most), None)
    if least is not None and (_narrow(kernel, longest) or max(map(cost, nodes)) >= least):
        return True
    facts = Facts(kernel)
    elements = union(facts.bit(axis) for stage in kernel.stages for axis in stage.axes)
    if least is not None:
        masks = [x.args[-2] for x in nodes if x.kind == "load" and x.attr.masked]
        repeated = not any(facts.axes[store.value] & elements for stage in kernel.stages for store in stage.stores)
        return all(facts.axes[mask] | elements == elements for mask in masks) if masks else repeated
    return sum(cost(x) for x in nodes if not facts.axes[x] & elements and cost(x) >= PAYS[0][1]) >= WORK


def _narrow(kernel: Kernel, longest: int) -> bool:
    least = min(operand.dtype.itemsize for operand in kernel.operands)
    return least <= NARROW and least * longest <= BYTES


def _in_stages(kernel: Kernel) -> tuple[tuple[Axis, ...], tuple[Stage, ...]]:
    """The grid of rows, and stages whose axes are those of a row."""
    if len(kernel.stages) != 1 or kernel.stages[0].axes:
        return kernel.grid, kernel.stages
    count = next((n for n in range(1, len(kernel.grid)) if _points(kernel.grid[n:]) <= MOST), len(kernel.grid))
    return kernel.grid[:count], (Stage(kernel.grid[count:], kernel.stages[0].stores),)


def _points(axes: Sequence[Axis]) -> int:
    """How many there are; too many where that isn't known."""
    return prod(axis.extent if isinstance(axis.extent, int) else 1 << 30 for axis in axes)


def _apart(kernel: Kernel, stages: Sequence[Stage], nodes: Sequence[Expr]) -> bool:
    """Whether rows share nothing that is written, and what a row keeps for itself is read where it was written."""
    stores = [store for stage in stages for store in stage.stores]
    written = {store.slot for store in stores if kernel.operands[store.slot].role != "local"}
    reread = any(x.kind == "load" and x.attr.slot in written for x in nodes)
    return not reread and not any(store.combine or store.mask is not None for store in stores)


def written_out(kernel: Kernel) -> Kernel:
    """The flat kernel with rows that have no loops."""
    rows, stages = _in_stages(kernel)
    simplifier, kept = Simplifier(), dict[tuple[int, int], Expr]()
    plain, found = rewriter(lambda x: straight(x) if x.kind == "fold" else None), list[Store]()
    for stage in stages:
        placing = Placing(stage.axes, *(x for store in stage.stores for x in store_roots(store)))
        for turn in turns(stage.axes):
            stores = map_stores(map_stores(map_stores(stage.stores, placing.at(turn)), plain), simplifier)
            for store in map_stores(stores, rewriter(partial(_read_back, kept))):
                if kernel.operands[store.slot].role == "local":
                    kept[store.slot, store.indices[0].attr] = store.value
                else:
                    found.append(store)
    return replace(kernel, grid=rows, stages=(Stage((), tuple(found)),))


def _read_back(kept: Mapping[tuple[int, int], Expr], x: Expr) -> Expr | None:
    """What a row keeps for itself, where it is read."""
    return kept.get((x.attr.slot, x.args[0].attr)) if x.kind == "load" and x.args[0].kind == "const" else None
