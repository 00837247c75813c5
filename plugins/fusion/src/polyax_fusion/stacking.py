"""Whether a producer's kernel and its consumer's become one by stacking, and whether that one is fast enough."""

from __future__ import annotations

from collections.abc import Collection

from polyax_kernels.edits import stack, why_not_stack
from polyax_kernels.graph import KernelNode, Node, points
from polyax_kernels.limits import Limits

ROWS = 64
"""Fewer rows than this don't keep all threads busy."""
SMALL = 1 << 14
"""But so few elements any thread computes in no time."""
SHORTEST = 8
"""Loops over rows of fewer elements don't fill a vector."""


def stacked(producer: Node, consumer: Node, keep: Collection[int], limits: Limits) -> KernelNode | str:
    """The kernel of both, which also writes the values ``keep`` of the producer; or why there is none."""
    if reason := why_not_stack(producer, consumer, limits, keep):
        return reason
    assert isinstance(producer, KernelNode) and isinstance(consumer, KernelNode)
    both = stack(producer, consumer, keep)
    return why_slow(both) or both


def why_slow(node: KernelNode) -> str | None:
    """Why stages are worse than loops of their own: these can share their points among threads, and fill vectors."""
    rows = points(node.grid)
    loops = [stage.axes for stage in node.stages if stage.axes]
    if rows * max([points(axes) for axes in loops], default=1) <= SMALL:
        return None
    if rows < ROWS:
        return f"{rows} rows don't keep all threads busy"
    shortest = min([points(axes) for axes in loops], default=SHORTEST)
    if shortest < SHORTEST:
        return f"loops over {shortest} elements don't fill a vector"
    return None
