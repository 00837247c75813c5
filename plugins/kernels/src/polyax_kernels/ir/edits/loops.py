"""Sharing the loops of folds: two kernels that are to be merged fold over the same axes, so that they read once.

::

    sum over i of x[i, c], sum over k of x[k, c] * y[k, c]   ->   both over i: one loop with two carries
"""

from __future__ import annotations

from polyax_kernels.ir.expr import Axis, Expr, Fold, folds_of, index, make, rewriter
from polyax_kernels.ir.graph import KernelNode, rebuilt
from polyax_kernels.ir.kernel import map_stages, store_roots

Nest = tuple[Axis, ...]


def with_loops_of(a: KernelNode, b: KernelNode) -> KernelNode:
    """``b`` with the axes of its folds replaced by those of folds of ``a`` that have equal extents.

    Different nests stay different: a fold inside another one never gets the axes of the outer one.
    """
    free, own = nests(a), nests(b)
    moves: dict[Axis, Axis] = {}
    for nest in own:
        same = nest if nest in free else next((n for n in free if _sizes(n) == _sizes(nest)), None)
        if same is not None:
            free.remove(same)
            moves.update(zip(nest, same, strict=True))
    overlapping = len({axis for nest in own for axis in nest}) < sum(map(len, own))
    return b if overlapping or all(old is new for old, new in moves.items()) else _renamed(b, moves)


def nests(node: KernelNode) -> list[Nest]:
    """The distinct nests of axes that folds have, those of inner folds first."""
    roots = [root for stage in node.stages for store in stage.stores for root in store_roots(store)]
    return list(dict.fromkeys(x.attr.axes for x in folds_of(*roots)))


def _sizes(nest: Nest) -> list[int | Expr]:
    return [axis.extent for axis in nest]


def _renamed(node: KernelNode, moves: dict[Axis, Axis]) -> KernelNode:
    def rule(x: Expr) -> Expr | None:
        if x.kind == "index" and x.attr in moves:
            return index(moves[x.attr])
        if x.kind != "fold":
            return None
        old: tuple[Axis, ...] = x.attr.axes
        axes = tuple([moves.get(axis, axis) for axis in old])
        return make("fold", x.dtype, x.args, Fold(x.attr.combine, axes, x.attr.which))

    return rebuilt(node, map_stages(node.stages, rewriter(rule)), node.primitives)
