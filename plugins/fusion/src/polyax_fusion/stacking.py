"""Whether a producer's kernel and its consumer's become one by stacking, and whether that one is fast enough."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator

from polyax_kernels.api.fusers import (
    Axis,
    Expr,
    Kernel,
    KernelNode,
    Limits,
    Node,
    Stage,
    folds_of,
    free_axes,
    operations,
    points,
    postorder,
    shortest_loop,
    stack,
    why_not_together,
    why_over,
    why_too_large,
)

ROWS = 64
"""Fewer rows than this don't keep all threads busy."""
SHORT = 200_000
"""But so few scalar operations aren't worth waking another thread."""
SHORTEST = 8
"""Loops over rows of fewer elements don't fill a vector."""
SHORT_LOOPS = "loops over {} elements don't fill a vector"
QUICK = 16_384
"""But so few scalar operations take no longer than starting another kernel."""


def stacked(producer: Node, consumer: Node, keep: Collection[int], limits: Limits) -> KernelNode | str:
    """The kernel of both, which also writes the values ``keep`` of the producer; or why there is none."""
    if reason := why_not_together(producer, consumer):
        return reason
    assert isinstance(producer, KernelNode) and isinstance(consumer, KernelNode)
    if reason := why_too_large(producer, consumer, limits):
        return reason
    if reason := _why_short(producer, consumer):
        return reason
    both = stack(producer, consumer, keep)
    return why_over(both, limits) or why_slow(both, limits) or both


def _why_short(producer: KernelNode, consumer: KernelNode) -> str | None:
    """What ``why_slow`` would say of short loops, before the kernel is made: that takes a long program's time."""
    shortest = shortest_loop(producer, consumer)
    if 0 < shortest < SHORTEST and max(map(_work, (producer, consumer))) > QUICK:
        return SHORT_LOOPS.format(shortest)
    return None


def _work(node: KernelNode) -> int:
    return operations(Kernel(node.grid, node.stages, ()))


def why_slow(node: KernelNode, limits: Limits) -> str | None:
    """Why stages are worse than loops of their own: these can share their points among threads, and fill vectors."""
    rows, loops = points(node.grid), [stage for stage in node.stages if stage.axes]
    if not loops and not _unsplittable(node):
        return None
    no_vectors = _why_no_vectors(loops, limits) if loops else None
    if no_vectors is None and (rows >= ROWS or _at_most(node) <= SHORT):
        return None  # to count the operations takes as long as to make the kernel
    work = _work(node)
    if rows < ROWS and work > SHORT:
        return f"one thread would compute each of {rows} rows" if rows > 1 else "one thread would compute all of it"
    return no_vectors if work > QUICK else None


def _at_most(node: KernelNode) -> float:
    """No fewer scalar operations than ``_work`` says."""
    longest = max(points(stage.axes) for stage in node.stages)
    return math.inf if node.folds else node.weight * points(node.grid) * longest


def _unsplittable(node: KernelNode) -> bool:
    """Whether a fold comes before another, so that none can be cut into chunks that run side by side."""
    folds = folds_of(*[s.value for s in node.stores])
    return node.stacked or any(folds_of(*x.args) for x in folds)


def _why_no_vectors(loops: list[Stage], limits: Limits) -> str | None:
    shortest = min(points(stage.axes) for stage in loops)
    if shortest < SHORTEST:
        return SHORT_LOOPS.format(shortest)
    if limits.lanes > 1 and any(map(_across, loops)):
        return "a reduction across rows of the stage would not fill a vector"
    return None


def _across(stage: Stage) -> bool:
    """Whether a fold walks through memory with the step of a row, and only the stage's own loop along it."""
    for x in stage.census.costs if stage.census.folds else ():
        if x.kind == "fold" and any(_strided(at, set(x.attr.axes), stage.axes[-1]) for at in _indices(x)):
            return True
    return False


def _indices(fold: Expr) -> Iterator[tuple[Expr, ...]]:
    for x in postorder(*fold.args):
        if x.kind == "load":
            yield x.args[:-2] if x.attr.masked else x.args


def _strided(at: tuple[Expr, ...], folded: set[Axis], lane: Axis) -> bool:
    if not at:
        return False
    last, rest = free_axes(at[-1]), set[Axis]().union(*map(free_axes, at[:-1]))
    return lane in last and not folded & last and bool(folded & rest)
