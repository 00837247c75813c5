"""Inlining: a producer's elements are computed where its consumer reads them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from polyax_kernels.ir.expr import Axis, Expr, kept, load, make, op, postorder, rewrite
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
    """Inlines many nodes into each other, each expression once at each place where it is needed: the body of a node is
    moved there as it stands, and its own loads of others are resolved before it."""

    def __init__(self, *producers: KernelNode) -> None:
        self._bodies: dict[int, tuple[tuple[Axis, ...], Expr]] = {}
        self._known: dict[Expr | None, dict[Expr, Expr]] = {None: {}}
        """What expressions are with all inlined, under each mask."""
        self._masks: dict[Expr, Expr] = {}
        """What the masks are, with all inlined."""
        for node in producers:
            self.add(node)

    def add(self, node: KernelNode) -> None:
        """From now on, loads of the pure ``node``'s results are replaced by what it computes."""
        self._bodies.update({store.slot: (node.grid, store.value) for store in node.stages[0].stores})

    def inlined(self, node: KernelNode) -> tuple[Stage, ...]:
        """The stages of ``node`` with its producers inlined."""
        if not any(v in self._bodies for v in node.reads):
            return node.stages
        self._resolve([x for stage in node.stages for x in stage.census.loads])
        return map_stages(node.stages, lambda x: self._inlined(x, None))

    def _resolve(self, loads: Iterable[Expr]) -> None:
        """Finds out what loads are, those first that others need."""
        waiting = [(x, None) for x in loads if x.attr.slot in self._bodies]
        bodies: dict[tuple[Expr, Expr | None], tuple[Expr, Expr | None]] = {}
        """Of loads that wait for those in their bodies only."""
        while waiting:
            x, mask = key = waiting.pop()
            if x in self._known[mask]:
                continue
            needed: list[tuple[Expr, Expr | None]] = []
            if key not in bodies:
                needed = self._unknown(x.args, mask)
                if not needed:
                    body, inner = bodies[key] = self._body(x, mask)
                    needed = self._unknown((body,), inner)
            if needed:
                waiting += [key, *needed]
            else:
                self._known[mask][x] = self._value(x, mask, *bodies[key])

    def _unknown(self, roots: Sequence[Expr], mask: Expr | None) -> list[tuple[Expr, Expr | None]]:
        """The loads to be replaced that aren't known yet under a mask."""
        known = self._known.setdefault(mask, {})
        found = [x for x in postorder(*roots, known=known) if x.kind == "load"]
        return [(x, mask) for x in found if x.attr.slot in self._bodies]

    def _body(self, x: Expr, mask: Expr | None) -> tuple[Expr, Expr | None]:
        """What computes a load's element, moved to its indices, and the mask under which it is needed."""
        grid, body = self._bodies[x.attr.slot]
        at = x.args[: len(grid)]
        moved = body if at == own_point(grid) else at_point(body, grid, at)
        if any(i.kind == "const" and axis.extent != 1 for i, axis in zip(at, grid, strict=True)):
            moved = kept(Simplifier)(moved)  # of a concatenation, the one part that is there
        if not x.attr.masked:
            return moved, mask
        own = x.args[-2]
        if mask is None:
            inner, self._masks[own] = own, self._inlined(own, None)
        else:
            inner = op("and", own, mask)
            self._masks[inner] = op("and", self._inlined(own, mask), self._masks[mask])
        return moved, inner

    def _value(self, x: Expr, mask: Expr | None, body: Expr, inner: Expr | None) -> Expr:
        value = self._inlined(body, inner)
        if not x.attr.masked:
            return value
        own, other = (self._inlined(a, mask) for a in x.args[-2:])
        return op("select", own, value, other)

    def _inlined(self, x: Expr, mask: Expr | None) -> Expr:
        """``x`` with all inlined, which reads nothing where the mask is false; its value there doesn't matter."""
        where = None if mask is None else self._masks[mask]
        return rewrite(x, lambda y: None if where is None else masked_load(y, where), self._known[mask])


def at_point(body: Expr, grid: tuple[Axis, ...], at: tuple[Expr, ...]) -> Expr:
    """``body`` with the point of ``grid`` moved to the indices ``at``."""
    moves = dict(zip(own_point(grid), at, strict=True))
    return rewrite(body, lambda x: moves.get(x) if x.kind == "index" else None)


def masked_load(x: Expr, mask: Expr) -> Expr | None:
    """A load that reads nothing where ``mask`` is false; None for another expression."""
    if x.kind != "load":
        return None
    if not x.attr.masked:
        return load(x.attr.slot, x.dtype, x.args, mask)
    *indices, own, other = x.args
    return make("load", x.dtype, (*indices, op("and", own, mask), other), x.attr)
