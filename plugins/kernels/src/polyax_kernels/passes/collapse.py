"""Kernels in canonical form: one-dimensional operands, simplified indices, as few loops as the memory allows.

Knows no shapes but the kernel's own; ``generalize`` goes on to forget those.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from polyax_kernels.ir.expr import PICKS, Axis, Expr, Fold, folds_of, index, make, postorder, rewriter
from polyax_kernels.ir.kernel import Kernel, kernel_roots, map_stages
from polyax_kernels.ir.simplify import Simplifier, simplify
from polyax_kernels.ir.strides import stride
from polyax_kernels.passes.for_emission import flatten


def collapse(kernel: Kernel) -> Kernel:
    """Merges adjacent axes of the grid, of stages and of folds wherever all memory is contiguous across them.

    The result has one-dimensional operands and simplified indices; axes that divisions cut apart are split.
    """
    kernel = simplify(flatten(kernel))
    changed = True
    while changed:
        merged = (_merge(kernel, a, b) for a, b in _adjacent(kernel))
        best = next((k for k in merged if k is not None), None)
        changed, kernel = best is not None, best or kernel
    return split(kernel)


SHORTEST = 8
"""Axes aren't split into loops shorter than this: the division would cost less."""


def split(kernel: Kernel) -> Kernel:
    """Splits axes so that ``//`` and ``%`` by constants, left by reshapes, become indices of their own."""
    divisions = _divisions(kernel)
    while divisions:
        attempts = (_split_axis(kernel, axis, inner) for axis, inner in _factors(divisions))
        best = next((k for k in attempts if k is not None and len(_divisions(k)) < len(divisions)), None)
        if best is None:
            break
        kernel, divisions = best, _divisions(best)
    return kernel


def _divisions(kernel: Kernel) -> list[Expr]:
    nodes = postorder(*kernel_roots(kernel))
    return [x for x in nodes if x.kind == "op" and x.attr in ("floordiv", "mod") and x.args[1].kind == "const"]


def _factors(divisions: Sequence[Expr]) -> list[tuple[Axis, int]]:
    """Axes of the dividends, and the extents of inner axes that a division could become."""
    found: dict[tuple[Axis, int], None] = {}
    for x in divisions:
        for axis in [y.attr for y in postorder(x.args[0]) if y.kind == "index"]:
            step = stride(x.args[0], axis)
            inner = x.args[1].attr // math.gcd(step, x.args[1].attr) if step else 1
            if isinstance(axis.extent, int) and SHORTEST <= inner < axis.extent and axis.extent % inner == 0:
                found[axis, inner] = None
    return list(found)


def _split_axis(kernel: Kernel, axis: Axis, inner: int) -> Kernel | None:
    assert isinstance(axis.extent, int)
    pair = Axis(axis.extent // inner, axis.name), Axis(inner, f"{axis.name}_in")
    return substitute(kernel, {axis: index(pair[0]) * inner + index(pair[1])}, {(axis,): pair})


def _adjacent(kernel: Kernel) -> list[tuple[Axis, Axis]]:
    """Pairs of neighbouring axes of constant extent, innermost first."""
    folds = [x.attr.axes for x in folds_of(*kernel_roots(kernel)) if x.attr.combine not in PICKS]
    nests = dict.fromkeys([kernel.grid, *(s.axes for s in kernel.stages), *folds])
    pairs = dict.fromkeys(pair for axes in nests for pair in reversed(list(pairwise(axes))))
    return [pair for pair in pairs if all(isinstance(axis.extent, int) for axis in pair)]


def _merge(kernel: Kernel, a: Axis, b: Axis) -> Kernel | None:
    """One axis instead of two, if no index needs them apart."""
    assert isinstance(a.extent, int) and isinstance(b.extent, int)
    both = Axis(a.extent * b.extent, a.name + b.name)
    one = index(both)
    merged = substitute(kernel, {a: one // b.extent, b: one % b.extent}, {(a, b): (both,)})
    if merged is None or any(_divides(x, one) for x in postorder(*kernel_roots(merged))):
        return None
    return merged


def _divides(x: Expr, i: Expr) -> bool:
    return x.kind == "op" and x.attr in ("floordiv", "mod") and i in postorder(x)


def substitute(
    kernel: Kernel, indices: Mapping[Axis, Expr], nests: Mapping[tuple[Axis, ...], tuple[Axis, ...]]
) -> Kernel | None:
    """Replaces runs of axes in all nests, and their indices by expressions; None if a nest holds part of a run."""
    torn = False

    def renamed(axes: Sequence[Axis]) -> tuple[Axis, ...]:
        nonlocal torn
        result = tuple(axes)
        for old, new in nests.items():
            at = next((n for n in range(len(result)) if result[n : n + len(old)] == old), None)
            if at is not None:
                result = result[:at] + new + result[at + len(old) :]
        torn |= any(axis in indices for axis in result)
        return result

    def rule(x: Expr) -> Expr | None:
        if x.kind == "index":
            return indices.get(x.attr)
        if x.kind == "fold":
            attr = Fold(x.attr.combine, renamed(x.attr.axes), x.attr.which)
            return x if attr == x.attr else make("fold", x.dtype, x.args, attr)
        return None

    grid, loops = renamed(kernel.grid), [renamed(stage.axes) for stage in kernel.stages]
    if torn:
        return None
    simplifier, renaming = Simplifier(), rewriter(rule)
    changed = map_stages(kernel.stages, lambda x: simplifier(renaming(x)))
    stages = tuple([replace(stage, axes=axes) for stage, axes in zip(changed, loops, strict=True)])
    return None if torn else replace(kernel, grid=grid, stages=stages)
