"""How much a kernel computes, counted from its expressions: what launches are scheduled by and reports tell."""

from __future__ import annotations

import math

from polyax_kernels.ir.expr import Axis, Expr, postorder
from polyax_kernels.ir.kernel import Kernel, kernel_roots
from polyax_kernels.ir.scalars import cost


def operations(kernel: Kernel) -> int:
    """The scalar operations of a kernel of fixed extents. Each expression is computed once per combination of the
    indices that it depends on; a fold combines once per element.

    >>> import numpy as np
    >>> from polyax_kernels.ir.expr import consing, const, fold, index, load
    >>> from polyax_kernels.ir.kernel import Operand, Stage, Store
    >>> i, k, f32 = Axis(8), Axis(16), np.dtype("float32")
    >>> with consing():
    ...     row = fold("add", (k,), (const(0, f32),), (load(0, f32, (index(i), index(k))),))
    ...     stage = Stage((), (Store(1, (index(i),), row * 2.0),))
    ...     operations(Kernel((i,), (stage,), (Operand((8, 16), f32, "in"), Operand((8,), f32, "out"))))
    136
    """
    free: dict[Expr, frozenset[Axis]] = {}
    total = 0
    for x in postorder(*kernel_roots(kernel)):
        axes: frozenset[Axis] = frozenset().union(*[free[a] for a in x.args])
        if x.kind == "index":
            axes = frozenset((x.attr,))
        elif x.kind == "fold":
            total += cost(x) * _points(axes.union(x.attr.axes))
            axes = axes.difference(x.attr.axes)
        elif x.kind != "load":
            total += cost(x) * _points(axes)
        free[x] = axes
    return total


def _points(axes: frozenset[Axis]) -> int:
    return math.prod(a.extent for a in axes if isinstance(a.extent, int))
