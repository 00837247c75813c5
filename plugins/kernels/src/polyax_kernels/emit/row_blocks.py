"""Rows of a few vectors: several rows are reduced together, so that no row puts the lanes of a vector together alone.

``for i: out[i] = log(sum_k x[i, k])`` has, for each row, a few vectors, then steps that halve one, each of which waits
for the one before, then a logarithm of one number. For a block of rows, ``part[row, lane]`` first takes what each lane
sums; then the lanes of all rows are put together, for which emitters may have a way of their own (``Emitter.totals``).
What is computed for a row as a whole is a vector over rows. What takes long for an element is computed once, and kept.
Sums have the order that they have in a row alone, by the lanes of a vector.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce

from polyax_kernels.emit.blocks import Blocks, blocks_of
from polyax_kernels.emit.row_folds import LONG, differs, in_stages, lanes_of, row_folds
from polyax_kernels.emit.totals import totalling
from polyax_kernels.ir.dependences import Facts, rounds, union
from polyax_kernels.ir.expr import INT, Axis, Expr, folds_of, index, load, op, postorder, rebuild, remaker, rewrite
from polyax_kernels.ir.kernel import Kernel, Operand, Stage, Store, kernel_roots, map_kernel, map_stores, store_roots
from polyax_kernels.ir.scalars import cost
from polyax_kernels.passes.wide_scratch import in_wide_scratch

ACCUMULATORS = 4
"""Vectors that a fold carries, as folds of single rows do."""


def block(kernel: Kernel) -> tuple[Kernel, tuple[Blocks, ...]]:
    """The kernel whose last grid axis goes from block to block; stages have an axis of rows around theirs."""
    kernel = map_kernel(in_wide_scratch(in_stages(kernel)), remaker())  # equal expressions are found by what they are
    rows = _RowBlocks(kernel)
    stages = [stage for before in kernel.stages for stage in rows.stages(before)]
    grid = (*kernel.grid[:-1], rows.blocks.base)
    return replace(kernel, grid=grid, stages=tuple(stages), operands=tuple(rows.operands)), (rows.blocks,)


@dataclass(frozen=True)
class _RowValue:
    """A value that each row of a block has in scratch: of a fold what its row combines with ``start``."""

    slot: int
    combine: str = ""
    start: Expr | None = None


class _RowBlocks:
    """What all stages of the kernel have in common."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel, self.facts = kernel, Facts(kernel)
        self.folds = row_folds(kernel, self.facts)
        self.before = [x for x in folds_of(*kernel_roots(kernel)) if not self.differs(x)]
        self.lanes = lanes_of(self.folds)
        own = {n: o.shape[0] * self.lanes for n, o in enumerate(kernel.operands) if o.role == "local"}
        self.operands = [replace(o, shape=(own[n],)) if n in own else o for n, o in enumerate(kernel.operands)]
        self.blocks = replace(blocks_of(kernel.grid[-1], self.lanes), ragged=True)
        self.every = Axis(self.lanes, "row")
        """All rows of a block, also those that the last one lacks: what is in scratch may be anything there."""
        self.known: dict[Expr, _RowValue] = {}
        self.elements: dict[Expr, tuple[int, Axis]] = {}
        """Values of elements that are in scratch, and the axis that goes through those of a row."""
        self.nodes = set(postorder(*kernel_roots(kernel)))
        self.axes = {x.attr for x in self.nodes if x.kind == "index"}

    def stages(self, stage: Stage) -> Iterator[Stage]:
        """In the place of one."""
        roots = [x for store in stage.stores for x in store_roots(store)]
        for folds in rounds(postorder(*roots), lambda x: x in self.folds and x not in self.known):
            yield from self.kept([x.args[1] for x in folds], folds[0].attr.axes)
            yield from self.shared(folds)
            yield from self.folded(folds)
        yield from self.kept(roots, stage.axes)
        at = index(self.blocks.lane)
        stores = map_stores(stage.stores, _RowsAt(self, at))
        own = [self.own(s.slot, s.indices[0], at) for s in stores]
        moved = [replace(s, indices=(place,)) for s, place in zip(stores, own, strict=True)]
        yield Stage((self.blocks.lane, *stage.axes), tuple(moved))
        written = self.facts.written(stage)
        self.known = {x: value for x, value in self.known.items() if not self.facts.reads[x] & written}
        self.elements = {x: value for x, value in self.elements.items() if not self.facts.reads[x] & written}

    def own(self, slot: int, place: Expr, row: Expr) -> Expr:
        """Where a row has what ``place`` is of a slot of the kernel."""
        operand = self.kernel.operands[slot] if slot < len(self.kernel.operands) else None
        return place + row * operand.shape[0] if operand is not None and operand.role == "local" else place

    def differs(self, x: Expr) -> bool:
        return differs(self.kernel, self.facts, x)

    def local(self, like: Expr, size: int) -> int:
        self.operands.append(Operand((size,), like.dtype, "local"))
        return len(self.operands) - 1

    # --- what a row has as a whole ---

    def kept(self, roots: Sequence[Expr], axes: Sequence[Axis]) -> Iterator[Stage]:
        """Computes what rows need for all places along ``axes``."""
        found = self.row_values(roots, union(map(self.facts.bit, axes)))
        slots = {x: self.local(x, self.lanes) for x in found}
        for row in (self.every, self.blocks.lane):
            at, anywhere = index(row), row is self.every
            values = [(slot, _RowsAt(self, at)(x)) for x, slot in slots.items() if self.in_scratch(x) == anywhere]
            if values:
                yield Stage((row,), tuple([Store(slot, (at,), value) for slot, value in values]))
        self.known |= {x: _RowValue(slot) for x, slot in slots.items()}

    def row_values(self, roots: Sequence[Expr], inner: int) -> list[Expr]:
        """The largest parts of ``roots`` that are the same along axes but differ by row, and take an operation."""
        found, stack, done = list[Expr](), list(roots), set[Expr]()
        while stack:
            x = stack.pop()
            kept = x in self.elements or (x in self.known and self.known[x].start is None)
            if x in done or kept or not self.differs(x):
                continue
            done.add(x)
            if not self.facts.axes[x] & inner and x.dtype != INT and (x.kind in ("op", "cast") or x in self.known):
                found.append(x)
            elif x not in self.known:
                stack += x.args
        return found

    def in_scratch(self, x: Expr) -> bool:
        """Whether nothing is read for ``x`` but what rows have in scratch already."""
        stack = [x]
        while stack:
            y = stack.pop()
            if not self.differs(y):
                continue
            if y.kind == "load" and self.kernel.operands[y.attr.slot].role != "local":
                return False
            value = self.known.get(y)
            stack += y.args if value is None else [] if value.start is None else [value.start]
        return True

    # --- what elements of a row have, and more than one loop asks for ---

    def shared(self, folds: Sequence[Expr]) -> Iterator[Stage]:
        """Computes what is long for an element, and is asked for by other loops as well."""
        (along,) = folds[0].attr.axes
        found: dict[Expr, list[tuple[Expr, Axis]]] = {}
        stack = [x.args[1] for x in folds]
        while stack:
            x = stack.pop()
            if x in found or x in self.elements or not self.facts.axes[x] & self.facts.bit(along):
                continue
            again = self.again(x, along) if x.kind in ("op", "cast") and _work(self.facts, x, along) >= LONG else []
            if again:
                found[x] = [(x, along), *again]
            else:
                stack += x.args
        if not found:
            return
        lane, row, stores = Axis(along.extent, "lane"), index(self.blocks.lane), list[Store]()
        for x in found:
            value = _RowsAt(self, row, {along: index(lane)})(x)
            stores.append(Store(self.local(x, self.lanes * along.extent), (row * along.extent + index(lane),), value))
        yield Stage((self.blocks.lane, lane), tuple(stores))
        for store, same in zip(stores, found.values(), strict=True):
            self.elements |= {x: (store.slot, axis) for x, axis in same}

    def again(self, x: Expr, along: Axis) -> list[tuple[Expr, Axis]]:
        """The same along other axes."""
        others = [axis for axis in self.axes if axis.extent == along.extent and axis is not along]
        fixed = {y: y for y in (*self.known, *self.before)}
        moved = [(rewrite(x, lambda _: None, {**fixed, index(along): index(axis)}), axis) for axis in others]
        return [pair for pair in moved if pair[0] in self.nodes]

    # --- folds ---

    def folded(self, folds: Sequence[Expr]) -> Iterator[Stage]:
        """Folds over the same axis: first of each lane, by whole vectors and then what is left, then of all lanes."""
        (along,), lanes, row = folds[0].attr.axes, self.lanes, index(self.blocks.lane)
        whole = along.extent // lanes * lanes
        parts = {self.local(x, lanes * lanes): x for x in folds}
        for start, stop in ((0, whole), (whole, along.extent)):
            if start == stop:
                continue
            lane = index(Axis(min(stop - start, lanes), "lane"))
            vectors = [_RowsAt(self, row, {along: lane + n}) for n in range(start, stop, lanes)]
            at, stores = row * lanes + lane, list[Store]()
            for slot, x in parts.items():
                before = [load(slot, x.dtype, (at,))] if start else []
                stores.append(
                    Store(slot, (at,), _by_vectors(x.attr.combine, [*before, *[v(x.args[1]) for v in vectors]]))
                )
            yield Stage((self.blocks.lane, lane.attr), tuple(stores))
        slots = {self.local(x, lanes): x for x in folds}
        yield totalling(slots, dict(zip(slots, parts, strict=True)), self.every, min(along.extent, lanes))
        self.known |= {x: _RowValue(slot, x.attr.combine, x.args[0]) for slot, x in slots.items()}


def _work(facts: Facts, x: Expr, along: Axis) -> int:
    """What is computed for each element along an axis."""
    return sum(cost(y) for y in facts.needed([x], facts.bit(along)) if facts.axes[y] & facts.bit(along))


class _RowsAt:
    """Expressions of the kernel at a row of a block, with places of axes."""

    def __init__(self, rows: _RowBlocks, row: Expr, places: dict[Axis, Expr] | None = None) -> None:
        self.rows, self.row = rows, row
        base = {rows.kernel.grid[-1]: index(rows.blocks.base) + row}
        self.memo: dict[Expr, Expr] = {index(axis): place for axis, place in (base | (places or {})).items()}
        self.memo |= {x: x for x in rows.before}
        for x, value in rows.known.items():
            mine = load(value.slot, x.dtype, (row,))
            self.memo[x] = mine if value.start is None else op(value.combine, self(value.start), mine)
        for x, (slot, axis) in rows.elements.items():
            place = row * axis.extent + self.memo.get(index(axis), index(axis))
            self.memo[x] = load(slot, x.dtype, (place,))

    def __call__(self, x: Expr) -> Expr:
        return rewrite(x, self._rule, self.memo)

    def _rule(self, x: Expr) -> Expr | None:
        if x.kind != "load":
            return None
        place = self.rows.own(x.attr.slot, x.args[0], self.row)
        return None if place is x.args[0] else rebuild(x, (place, *x.args[1:]))


def _by_vectors(name: str, vectors: list[Expr]) -> Expr:
    """All combined, in the order of folds of single rows: first with several that take turns, then one by one."""
    side = ACCUMULATORS
    while side > len(vectors):
        side //= 2
    together = len(vectors) // side * side
    carries = [reduce(partial(op, name), vectors[n:together:side]) for n in range(side)]
    while len(carries) > 1:
        half = len(carries) // 2
        carries = [op(name, *carries[n::half]) for n in range(half)]
    return reduce(partial(op, name), vectors[together:], carries[0])
