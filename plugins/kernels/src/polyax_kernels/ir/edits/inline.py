"""Inlining: a producer's elements are computed where its consumer reads them."""

from __future__ import annotations

from polyax_kernels.ir.expr import Axis, Expr, load, make, op, rewrite
from polyax_kernels.ir.graph import KernelNode, Node, own_point, rebuilt
from polyax_kernels.ir.kernel import Stage, map_stages
from polyax_kernels.ir.simplify import Simplifier


def why_not_inline(producer: Node, consumer: Node) -> str | None:
    """Why ``producer`` can't be computed inside ``consumer``."""
    if not isinstance(producer, KernelNode):
        return f"{producer.name} is a {producer.kind}"
    if not isinstance(consumer, KernelNode):
        return f"{consumer.name} is a {consumer.kind}"
    if not producer.pure:
        return f"{producer.name} stores elsewhere than at its own point"
    if producer.stacked:
        return f"{producer.name} computes whole rows"
    if consumer.updates is not None and consumer.updates in producer.reads:
        return f"{producer.name} reads what {consumer.name} updates in place"
    if consumer.updates in producer.outs:
        return f"{consumer.name} updates it in place"
    return None


def inline(producer: KernelNode, consumer: KernelNode) -> KernelNode:
    """``consumer`` with the loads of ``producer``'s results replaced by what computes them there."""
    primitives = (*producer.primitives, *consumer.primitives)
    return rebuilt(consumer, Inliner(producer).inlined(consumer), primitives)


class Inliner:
    """Inlines many nodes into each other, each expression once: producers come before their consumers."""

    def __init__(self, *producers: KernelNode) -> None:
        self._bodies: dict[int, tuple[tuple[Axis, ...], Expr]] = {}
        self._memo: dict[Expr, Expr] = {}
        self._simplified = Simplifier()
        for node in producers:
            self.add(node, node.stages)

    def add(self, node: KernelNode, stages: tuple[Stage, ...]) -> None:
        """From now on, loads of the pure ``node``'s results are replaced by what ``stages`` computes."""
        self._bodies.update({store.slot: (node.grid, store.value) for store in stages[0].stores})

    def inlined(self, node: KernelNode) -> tuple[Stage, ...]:
        """The stages of ``node`` with its producers inlined."""
        if not any(v in self._bodies for v in node.reads):
            return node.stages
        return map_stages(node.stages, self._change)

    def _change(self, x: Expr) -> Expr:
        return rewrite(x, self._rule, self._memo)

    def _rule(self, x: Expr) -> Expr | None:
        """A load of a result, as the expression that computes it at the indices of the load."""
        if x.kind != "load" or x.attr.slot not in self._bodies:
            return None
        grid, body = self._bodies[x.attr.slot]
        at = x.args[: len(grid)]
        moved = body if at == own_point(grid) else at_point(body, grid, at)
        if any(i.kind == "const" and axis.extent != 1 for i, axis in zip(at, grid, strict=True)):
            moved = self._simplified(moved)  # of a concatenation, the one part that is there
        if not x.attr.masked:
            return moved
        mask, other = x.args[len(grid) :]
        return op("select", mask, masked(moved, mask), other)


def at_point(body: Expr, grid: tuple[Axis, ...], at: tuple[Expr, ...]) -> Expr:
    """``body`` with the point of ``grid`` moved to the indices ``at``."""
    moves = dict(zip(own_point(grid), at, strict=True))
    return rewrite(body, lambda x: moves.get(x) if x.kind == "index" else None)


def masked(body: Expr, mask: Expr) -> Expr:
    """``body`` with loads that read nothing where ``mask`` is false; its value there doesn't matter."""

    def rule(x: Expr) -> Expr | None:
        if x.kind != "load":
            return None
        if not x.attr.masked:
            return load(x.attr.slot, x.dtype, x.args, mask)
        *indices, own, other = x.args
        return make("load", x.dtype, (*indices, op("and", own, mask), other), x.attr)

    return rewrite(body, rule)
