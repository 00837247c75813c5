"""How much a kernel computes and moves, counted from its expressions: what launches are scheduled by, fusers weigh and
reports tell."""

from __future__ import annotations

from polyax_kernels.ir.expr import Axis, Expr, free_axes, points
from polyax_kernels.ir.graph import Access, Graph, KernelNode, Node, axes_of
from polyax_kernels.ir.kernel import Kernel


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
    costs: dict[Expr, int] = {}
    for stage in kernel.stages:
        costs |= stage.census.costs
    total, sizes = 0, dict[frozenset[Axis], int]()
    for x, n in costs.items():
        axes = free_axes(x).union(x.attr.axes) if x.kind == "fold" else free_axes(x)
        if axes not in sizes:
            sizes[axes] = points(axes)
        total += n * sizes[axes]
    return total


def bytes_moved(graph: Graph, node: Node) -> int:
    """The bytes that a node reads and writes, each element once; giving memory another shape moves none."""
    if not isinstance(node, KernelNode):
        return sum(graph.avals[v].nbytes for v in (*node.inputs, *node.outs))
    if node.alias is not None:
        return 0
    reads = [(graph.avals[v], access) for v, access in node.reads.items()]
    read = sum(min(aval.size, _elements(access)) * aval.itemsize for aval, access in reads)
    rows = points(node.grid)
    stores = [(rows * points(stage.axes), s) for stage in node.stages for s in stage.stores if s.slot in node.outs]
    return read + sum(n * s.value.dtype.itemsize * (1 if s.combine is None else 2) for n, s in stores)


def _elements(access: Access) -> int:
    """How many elements are read at most: at each place, one per combination of the indices that it depends on."""
    return sum(min(access.times, points(axes_of(place))) for place in access.places)
