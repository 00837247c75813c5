"""Residues: a kernel that asks at each point of a row whether that is even becomes one that computes two points at a
time, for which it is known.

``out[i, j] = x[i, j // 2] if j % 2 == 0 else y[i, j // 2]`` divides at each point, and reads under a condition. By
residues, a row is ``for q: out[i, 2 * q] = x[i, q]; out[i, 2 * q + 1] = y[i, q]``, which compilers make vectors of that
are interleaved. It is a rewrite of kernels: no emitter knows of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from polyax_kernels.ir.expr import INT, Axis, Expr, const, index, postorder, rewriter
from polyax_kernels.ir.kernel import Kernel, Stage, Store, map_stores, store_roots
from polyax_kernels.ir.simplify import simplify
from polyax_kernels.ir.strides import stride

MOST = 4
"""Points that are computed at a time: more vectors aren't interleaved in registers."""
NODES = 200
"""Nodes of a stage beyond which code would grow more than it gains."""


def suits(kernel: Kernel) -> bool:
    """Whether a stage of the flat ``kernel`` is computed so."""
    return any(_modulus(stage) for stage in _staged(kernel).stages)


def by_residues(kernel: Kernel) -> Kernel:
    """The flat kernel with stages whose rows are as long as a residue has points, where ``suits`` finds any."""
    staged = _staged(kernel)
    stages = tuple([part for stage in staged.stages for part in _parts(stage)])
    return kernel if stages == staged.stages else simplify(replace(staged, stages=stages))


def at_once(kernel: Kernel) -> Kernel:
    """The kernel of one axis whose points compute as many elements as a residue has, where that divides them."""
    if len(kernel.grid) != 1 or len(kernel.stages) != 1 or kernel.stages[0].axes or kernel.ordered:
        return kernel
    stage = Stage(kernel.grid, kernel.stages[0].stores)
    modulus, extent = _modulus(stage), kernel.grid[0].extent
    if not modulus or not isinstance(extent, int) or extent % modulus:
        return kernel
    (part,) = _parts(stage)
    return simplify(replace(kernel, grid=part.axes, stages=(Stage((), part.stores),)))


def _staged(kernel: Kernel) -> Kernel:
    """The kernel with a stage along the last axis of the grid, which isn't the one that threads share."""
    if len(kernel.grid) < 2 or len(kernel.stages) != 1:
        return kernel
    (stage,) = kernel.stages
    return (
        kernel
        if stage.axes
        else replace(kernel, grid=kernel.grid[:-1], stages=(Stage(kernel.grid[-1:], stage.stores),))
    )


def _modulus(stage: Stage) -> int:
    """By what places along the last axis are divided, if that is one small number; else 0."""
    nodes = postorder(*(x for store in stage.stores for x in store_roots(store)))
    plain = not any(x.kind == "fold" for x in nodes) and not any(store.combine for store in stage.stores)
    if not plain or not stage.axes or len(nodes) > NODES or not isinstance(stage.axes[-1].extent, int):
        return 0
    moduli = {x.args[1].attr for x in nodes if _divides(x, stage.axes[-1])}
    return max(moduli) if len(moduli) == 1 and 1 < max(moduli) <= min(MOST, stage.axes[-1].extent) else 0


def _divides(x: Expr, axis: Axis) -> bool:
    whole = x.kind == "op" and x.attr in ("mod", "floordiv") and x.dtype == INT
    return whole and x.args[1].kind == "const" and stride(x.args[0], axis) == 1


def _parts(stage: Stage) -> Iterator[Stage]:
    """The stage, or that of all whole groups of points and that of the rest."""
    if not (modulus := _modulus(stage)):
        yield stage
        return
    *outer, axis = stage.axes
    assert isinstance(axis.extent, int)
    groups, rest = divmod(axis.extent, modulus)
    group = Axis(groups, axis.name)
    places = [index(group) * modulus + const(residue) for residue in range(modulus)]
    yield Stage((*outer, group), _at(stage.stores, axis, places))
    if rest:
        yield Stage(tuple(outer), _at(stage.stores, axis, [const(axis.extent - 1 - n) for n in reversed(range(rest))]))


def _at(stores: Sequence[Store], axis: Axis, places: Sequence[Expr]) -> tuple[Store, ...]:
    """The stores at each of the places along an axis."""
    moved = [map_stores(tuple(stores), rewriter(partial(_moved, axis, place))) for place in places]
    return tuple([store for part in moved for store in part])


def _moved(axis: Axis, place: Expr, x: Expr) -> Expr | None:
    return place if x.kind == "index" and x.attr is axis else None
