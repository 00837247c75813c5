"""Stacking: a producer becomes earlier stages of its consumer's kernel, row by row.

::

    for r: for c: e[r, c] = exp(x[r, c])           for r:
    for r: for c: y[r, c] = e[r, c] / sum e[r]  ->     for c: scratch[c] = exp(x[r, c])
                                                       for c: y[r, c] = scratch[c] / sum scratch

The rows are the leading axes of both grids along which the consumer reads nothing but the producer's row that it is at.
If the producer is only read at the consumer's own point, the two become one loop with several results.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from polyax_kernels.ir.edits.bounds import why_not_together, why_over, why_too_large
from polyax_kernels.ir.edits.rows import aligned, together
from polyax_kernels.ir.expr import Axis, points
from polyax_kernels.ir.graph import KernelNode, Node
from polyax_kernels.ir.limits import DEFAULT, Limits


def why_not_stack(producer: Node, consumer: Node, limits: Limits = DEFAULT, keep: Collection[int] = ()) -> str | None:
    """Why ``producer`` can't be stages of ``consumer``'s kernel.

    Whether the consumer needs the producer by way of a third node too is for the caller to know, and whether
    ``common_rows`` are enough to keep a device busy.
    """
    if reason := why_not_together(producer, consumer):
        return reason
    assert isinstance(producer, KernelNode) and isinstance(consumer, KernelNode)
    if not any(v in consumer.reads for v in producer.outs):
        return f"{consumer.name} doesn't read {producer.name}"
    if reason := why_too_large(producer, consumer, limits):
        return reason
    return why_over(stack(producer, consumer, keep), limits)


def stack(producer: KernelNode, consumer: KernelNode, keep: Collection[int] = ()) -> KernelNode:
    """``consumer`` with ``producer`` as earlier stages; the results in ``keep`` are also written to memory, because
    others need them."""
    rows = aligned(producer, consumer)
    return together(producer, consumer, rows, (*[v for v in producer.outs if v in keep], *consumer.outs))


def shortest_loop(producer: KernelNode, consumer: KernelNode) -> int:
    """The points of the shortest loop inside the rows of the kernel that stacking would give; 0 if there is none."""
    rows = aligned(producer, consumer)
    sizes = [_loops(producer, {*rows}), _loops(consumer, {*rows.values()})]
    return min([size for found in sizes for size in found], default=0)


def _loops(node: KernelNode, rows: Collection[Axis]) -> Iterator[int]:
    inner = [axis for axis in node.grid if axis not in rows and axis.extent != 1]
    yield from (points((*inner, *stage.axes)) for stage in node.stages if inner or stage.axes)


def common_rows(producer: KernelNode, consumer: KernelNode) -> int:
    """The rows of the kernel that stacking would give, which run side by side; 1 if all of it would be one row."""
    return points(aligned(producer, consumer))
