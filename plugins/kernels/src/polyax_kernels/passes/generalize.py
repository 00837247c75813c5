"""Kernels that serve all shapes: extents, strides and bounds become launch parameters.

For programs that are dispatched one operation at a time, compiling for each shape would cost more than constant loop
bounds gain.
"""

from __future__ import annotations

from dataclasses import replace

from polyax_kernels.ir.expr import INT, Axis, Expr, folds_of, index, make, param, postorder, rewrite
from polyax_kernels.ir.kernel import Kernel, Operand, kernel_roots, map_kernel
from polyax_kernels.passes.collapse import substitute

FREED = frozenset(("add", "sub", "mul", "min", "max", "lt", "le", "gt", "ge", "eq", "ne"))
"""Index arithmetic whose constants become parameters; divisors stay, since dividing by a constant is cheap."""
KEPT = (0, 1, -1)
"""Constants that stay: loops over unit strides vectorise."""


def generalize(kernel: Kernel) -> tuple[Kernel, tuple[int, ...]]:
    """Frees a collapsed kernel of its extents and of its strides; returns it with its launch parameters.

    Kernels with several stages, loops in stages or local memory keep all but the extent of the first grid axis, which
    is part of a launch anyway. The sizes of operands are forgotten.
    """
    if not kernel.grid or any(len(o.shape) != 1 for o in kernel.operands):
        return kernel, ()
    parameters = _Parameters(kernel)
    plain = len(kernel.stages) == 1 and not kernel.stages[0].axes and all(o.role != "local" for o in kernel.operands)
    folds = [x.attr.axes for x in folds_of(*kernel_roots(kernel))]
    freed = [a for nest in (kernel.grid, *folds) for a in nest] if plain else kernel.grid[:1]
    axes = {a: parameters.axis(a) for a in freed}
    general = substitute(kernel, {a: index(b) for a, b in axes.items()}, {(a,): (b,) for a, b in axes.items()})
    assert general is not None, "every axis of the grid was replaced"
    if plain:
        general = map_kernel(general, parameters.free)
    size = general.grid[0].extent
    operands = tuple(o if o.role == "local" else Operand((size,), o.dtype, o.role) for o in general.operands)
    return replace(general, operands=operands), tuple(parameters.values)


class _Parameters:
    """Hands out launch parameters, after those that the kernel has."""

    def __init__(self, kernel: Kernel) -> None:
        self.values: list[int] = []
        self.first = 1 + max((x.attr for x in postorder(*kernel_roots(kernel)) if x.kind == "param"), default=-1)
        self._memo: dict[Expr, Expr] = {}
        self._axes: dict[Axis, Axis] = {}

    def new(self, value: int) -> Expr:
        self.values.append(value)
        return param(self.first + len(self.values) - 1)

    def axis(self, axis: Axis) -> Axis:
        if axis not in self._axes:
            extent = self.new(axis.extent) if isinstance(axis.extent, int) else axis.extent
            self._axes[axis] = Axis(extent, axis.name)
        return self._axes[axis]

    def free(self, x: Expr) -> Expr:
        return rewrite(x, self._rule, self._memo)

    def _rule(self, x: Expr) -> Expr | None:
        if x.kind == "op" and x.attr in FREED and x.args[-1].dtype == INT:
            args = tuple(self.new(a.attr) if a.kind == "const" and a.attr not in KEPT else a for a in x.args)
            return make("op", x.dtype, args, x.attr)
        return None
