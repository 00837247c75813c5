"""Kernels cut into rows: the loops of nodes under common outer axes, and stages put one after the other.

``softmax`` over the last axis has the rows ``(r,)``; its stages are loops over the columns. Here stages still store
and load values by all of their indices: what is scratch, and how it is addressed, is decided when the kernel is made.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

from polyax_kernels.ir.expr import Axis, Expr, const, index, kept, op, rewriter
from polyax_kernels.ir.graph import KernelNode, row_node
from polyax_kernels.ir.kernel import Stage, Store, map_stores, with_stores
from polyax_kernels.ir.simplify import Simplifier

Rows = Mapping[Axis, Axis]
"""The outer axes: those of one node's grid, and those that take their places."""


def aligned(producer: KernelNode, consumer: KernelNode) -> Rows:
    """The longest run of leading axes such that ``consumer`` needs of ``producer`` only what lies at its own point of
    them; axes of one point don't count, unless the grids are equal."""
    rows: dict[Axis, Axis] = {}
    for p, c in facing(producer.grid, consumer.grid):
        if p.extent != c.extent or (p.extent != 1 and not _at_own_point(producer, consumer, p, c)):
            break
        rows[p] = c
    return rows


def facing(a: Sequence[Axis], b: Sequence[Axis]) -> Iterator[tuple[Axis, Axis]]:
    """The axes of two grids that may be one, outermost first."""
    if [x.extent for x in a] != [x.extent for x in b]:
        a, b = ([x for x in axes if x.extent != 1] for axes in (a, b))
    return zip(a, b, strict=False)


def _at_own_point(producer: KernelNode, consumer: KernelNode, p: Axis, c: Axis) -> bool:
    for store in producer.stores:
        access = consumer.reads.get(store.slot)
        if access is None:
            continue
        d = store.indices.index(index(p))
        if not all(_same((at[d],), (index(c),)) for at, _ in access.places):
            return False
    return True


def _same(a: Sequence[Expr], b: Sequence[Expr]) -> bool:
    """Whether two points are the same one."""
    if a == b:
        return True
    simplified = kept(Simplifier)
    return all(x is y or simplified(x) is simplified(y) for x, y in zip(a, b, strict=True))


def together(a: KernelNode, b: KernelNode, rows: Rows, outs: tuple[int, ...]) -> KernelNode:
    """One kernel over ``rows``: the stages of ``a``, then those of ``b``, whose axes take the places of ``a``'s."""
    grid = tuple(rows.values())
    stages = joined([*under(a, rows), *under(b, {axis: axis for axis in grid})], b.stages)
    return row_node(grid, stages, outs, (*a.primitives, *b.primitives))


def under(node: KernelNode, rows: Rows) -> Iterator[Stage]:
    """The stages of ``node`` inside loops over the values of ``rows``; the rest of its grid becomes axes of each."""
    if all(rows.get(a) is a for a in node.grid):
        yield from node.stages
        return
    for stage in node.stages:
        inner = {a: Axis(a.extent, a.name) for a in node.grid if a not in rows and a.extent != 1}
        moves = {index(a): const(0) for a in node.grid if a.extent == 1 and a not in rows}
        moves |= {index(a): index(b) for a, b in (*rows.items(), *inner.items()) if a is not b}
        yield Stage((*inner.values(), *stage.axes), moved(stage.stores, moves))


def moved(stores: Iterable[Store], moves: Mapping[Expr, Expr]) -> tuple[Store, ...]:
    """``stores`` with expressions replaced."""
    return map_stores(stores, rewriter(moves.get)) if moves else tuple(stores)


def joined(stages: Iterable[Stage], apart: Iterable[Stage] = ()) -> list[Stage]:
    """The stages in order, those whose loops can be one put together. What several compute is computed once. Those that
    are ``apart`` were tried with each other before."""
    result: list[Stage] = []
    known: set[int] = set()
    tried = set(map(id, apart))
    for stage in stages:
        stores = tuple([s for s in stage.stores if s.slot not in known])
        known.update(stage.writes)
        if stores:
            _append(result, with_stores(stage, stores), tried)
    return result


def _append(stages: list[Stage], stage: Stage, tried: Set[int]) -> None:
    """Joins the first stage that it can, or comes last.

    What stages without axes compute is written out where it is read: it is known to the whole row.
    """
    for earlier in stages:
        if not earlier.axes and not stage.reads.isdisjoint(earlier.writes):
            stage = with_stores(stage, _written_out(stage.stores, earlier.stores))
    place = None
    for n in range(len(stages) - 1, -1, -1):
        both = None if {id(stage), id(stages[n])} <= tried else _one_loop(stages[n], stage)
        place = place if both is None else (n, both)
        if not stage.reads.isdisjoint(stages[n].writes):
            break
    if place is None:
        stages.append(stage)
    else:
        stages[place[0]] = place[1]


def _one_loop(first: Stage, second: Stage) -> Stage | None:
    """Both stages as one, if their loops are equal and the second reads of the first at its own point only."""
    if [a.extent for a in first.axes] != [a.extent for a in second.axes]:
        return None
    move = rewriter({index(a): index(b) for a, b in zip(second.axes, first.axes, strict=True)}.get)
    known = {s.slot: s.indices for s in first.stores}
    for x in second.census.loads:
        at = known.get(x.attr.slot)
        if at is not None and not _same(tuple([move(i) for i in x.args[: len(at)]]), at):
            return None  # to find this out takes less than to write it all
    return Stage(first.axes, (*first.stores, *_written_out(map_stores(second.stores, move), first.stores)))


def _written_out(stores: tuple[Store, ...], known: Iterable[Store]) -> tuple[Store, ...]:
    """``stores`` with loads of what ``known`` stores at the same point replaced by what it computes."""
    values = {s.slot: s for s in known}

    def rule(x: Expr) -> Expr | None:
        if x.kind != "load" or x.attr.slot not in values:
            return None
        store = values[x.attr.slot]
        if not _same(x.args[: len(store.indices)], store.indices):
            return None
        return op("select", x.args[-2], store.value, x.args[-1]) if x.attr.masked else store.value

    return map_stores(stores, rewriter(rule))
