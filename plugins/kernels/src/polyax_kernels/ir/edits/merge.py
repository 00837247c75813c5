"""Merging: two kernels that run side by side over the same rows become one with the results of both.

::

      x           x
     / \\          |
    f   g   ->  [f g]     what both read is read once
    |   |        | |
"""

from __future__ import annotations

from polyax_kernels.ir.edits.bounds import why_not_together, why_over, why_too_large
from polyax_kernels.ir.edits.rows import Rows, facing, together
from polyax_kernels.ir.expr import Axis
from polyax_kernels.ir.graph import KernelNode, Node
from polyax_kernels.ir.limits import DEFAULT, Limits


def why_not_merge(a: Node, b: Node, limits: Limits = DEFAULT) -> str | None:
    """Why ``a`` and ``b`` can't be one kernel.

    Their grids must be equal, or one the beginning of the other. Whether one of them needs the other's results by way
    of a third node is for the caller to know.
    """
    if reason := why_not_together(a, b):
        return reason
    assert isinstance(a, KernelNode) and isinstance(b, KernelNode)
    if any(v in a.reads for v in b.outs) or any(v in b.reads for v in a.outs):
        return f"one of {a.name} and {b.name} reads what the other one computes"
    if len(_shared(a, b)) < min(_rank(a), _rank(b)):
        return f"the grids of {a.name} and {b.name} differ: {_shape(a)} and {_shape(b)}"
    if reason := why_too_large(a, b, limits):
        return reason
    return why_over(merge(a, b), limits) if a.locals or b.locals else None


def merge(a: KernelNode, b: KernelNode) -> KernelNode:
    """One kernel with the results of ``a`` and of ``b``; loops that fit together are one loop."""
    return together(a, b, _shared(a, b), (*a.outs, *b.outs))


def _shared(a: KernelNode, b: KernelNode) -> Rows:
    """The leading axes that both grids have."""
    rows: dict[Axis, Axis] = {}
    for p, q in facing(a.grid, b.grid):
        if p.extent != q.extent:
            break
        rows[p] = q
    return rows


def _rank(node: KernelNode) -> int:
    return sum(a.extent != 1 for a in node.grid)


def _shape(node: KernelNode) -> str:
    return f"({', '.join(str(a.extent) for a in node.grid)})"
