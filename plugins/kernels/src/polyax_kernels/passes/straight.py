"""Folds without loops: those of a few elements are written out, so that what is around them has vectors, and those that
read another thing in each turn, as over arrays that were stacked, since then nothing has to be chosen.

The order is that in which all emitters take values: one after the other, or from ``ONE_BY_ONE`` on by halves, as of the
lanes of a vector.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from itertools import product
from math import prod

from polyax_kernels.ir.expr import (
    COMPARISONS,
    INT,
    PICKS,
    Axis,
    Expr,
    folds_of,
    op,
    postorder,
    rewriter,
)
from polyax_kernels.ir.kernel import Kernel, kernel_roots, map_kernel
from polyax_kernels.ir.simplify import simplify
from polyax_kernels.passes.placed import Placing

ONE_BY_ONE = 8
"""Elements below which sums and products are taken one after the other."""
NODES = 400
"""Nodes beyond which code would grow more than it gains."""
STACKED = 32
"""Elements of which each may be another thing."""


def without_short_folds(kernel: Kernel) -> Kernel:
    """The flat kernel, whose folds of fewer than ``ONE_BY_ONE`` elements, or of what is chosen by number, have no
    loops."""
    folds = folds_of(*kernel_roots(kernel))
    stacked = [x for x in folds if not is_short(x) and _is_stacked(x)]
    if stacked:
        kernel = _written_out(kernel, stacked)
    short = [x for x in folds_of(*kernel_roots(kernel)) if is_short(x)]
    if not short or sum(len(postorder(*x.args)) * _points(x.attr.axes) for x in short) > NODES:
        return kernel
    return _simply(kernel, is_short)


def _written_out(kernel: Kernel, stacked: Sequence[Expr]) -> Kernel:
    """``kernel`` without the loops of these folds, unless what is left to do in them is too much."""
    plain = _simply(kernel, lambda x: x in stacked)
    before, after = (len(postorder(*kernel_roots(k))) for k in (kernel, plain))
    return plain if after <= before + NODES else kernel


def _simply(kernel: Kernel, which: Callable[[Expr], bool]) -> Kernel:
    return simplify(map_kernel(kernel, rewriter(lambda x: straight(x) if x.kind == "fold" and which(x) else None)))


def _is_stacked(fold: Expr) -> bool:
    """Whether the index of a short fold decides what is read."""
    if fold.attr.combine in PICKS or len(fold.attr.axes) != 1 or _points(fold.attr.axes) > STACKED:
        return False
    (along,) = fold.attr.axes
    asked = [x for x in postorder(*fold.args) if x.kind == "op" and x.attr in COMPARISONS and x.args[0].dtype == INT]
    return sum(_is_place(x, along) for x in asked) >= _points(fold.attr.axes) // 2


def _is_place(asked: Expr, along: Axis) -> bool:
    """Whether it is asked where the index is compared to a number."""
    kinds = {x.kind for x in asked.args}
    return kinds == {"index", "const"} and any(x.kind == "index" and x.attr is along for x in asked.args)


def is_short(fold: Expr) -> bool:
    return fold.attr.combine not in PICKS and _points(fold.attr.axes) < ONE_BY_ONE


def _points(axes: Sequence[Axis]) -> int:
    """How many there are; too many where that isn't known."""
    return prod(axis.extent if isinstance(axis.extent, int) else 1 << 30 for axis in axes)


def straight(fold: Expr) -> Expr:
    """What a fold over axes of known extents computes, without its loops."""
    count, which, name = len(fold.args) // 2, fold.attr.which, fold.attr.combine
    start, body = fold.args[which], fold.args[count + which]
    placing = Placing(fold.attr.axes, body)
    values = [placing.at(turn)(body) for turn in turns(fold.attr.axes)]
    if len(fold.attr.axes) > 1 or len(values) < ONE_BY_ONE or name not in ("add", "mul"):
        return reduce(partial(op, name), values, start)
    while len(values) > 1:
        half = 1 << (len(values) - 1).bit_length() - 1
        values = [op(name, *values[n::half]) if values[n + half :] else values[n] for n in range(half)]
    return op(name, start, values[0])


def turns(axes: Sequence[Axis]) -> Iterator[dict[Axis, int]]:
    """For each turn of loops over ``axes`` the numbers of their indices."""
    for places in product(*(range(int(axis.extent)) for axis in axes)):  # pyright: ignore[reportArgumentType]
        yield dict(zip(axes, places, strict=True))
