"""The kernel walker: turns a kernel and a schedule into calls of an emitter.

It opens the loops and places every expression at the outermost one where its inputs are known. It knows no language,
and no value of an array.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from math import prod
from typing import TypeVar

import numpy as np

from polyax_kernels.emit.blocks import Blocks
from polyax_kernels.emit.columns import side_by_side
from polyax_kernels.emit.cuts import cut
from polyax_kernels.emit.emitter import Emitter
from polyax_kernels.emit.indices import Indices
from polyax_kernels.emit.lanes import block
from polyax_kernels.emit.row_blocks import block as block_rows
from polyax_kernels.emit.short_rows import written_out
from polyax_kernels.emit.tiles import tile
from polyax_kernels.emit.totals import totals_of
from polyax_kernels.emit.values import Evaluator
from polyax_kernels.ir.dependences import Facts, Levels
from polyax_kernels.ir.expr import BOOL, COMPARISONS, INT, Axis, Expr, consing, postorder
from polyax_kernels.ir.kernel import Kernel, Schedule, Stage, Store, kernel_roots, store_roots
from polyax_kernels.ir.limits import FLOAT32, NARROW
from polyax_kernels.ir.strides import origin, stride
from polyax_kernels.passes.for_emission import prepare
from polyax_kernels.passes.residues import by_residues

T = TypeVar("T")
SHORT = 16
"""Loops of fewer iterations may be unrolled."""
MANY = 64
"""Updates of a place of which later ones seldom change an extremum: a wrong guess takes as long as some updates."""
KEEPS = {"max": "gt", "min": "lt"}
"""How what is there compares to what an extremum leaves it as it is for."""
MEMORY = 64
"""Lanes of which there are too many for registers: blocks that lack some run the same loops over what they keep."""
NEAR = (0, 1)
"""Elements that neighbours are apart in memory where vectors are read and written as they are."""
WORD = 4
"""Bytes of the least elements of which a few are worth a vector."""


def emit_kernel(kernel: Kernel, schedule: Schedule, emitter: Emitter[T], begin: T, end: T) -> None:
    """Emits the loops and stores of ``kernel`` for the points ``begin..end`` of its first grid axis.

    Indices, ``begin`` and ``end`` too, are of ``schedule.index_dtype``.

    Raises:
      NotImplementedError: an operation that the emitter lacks has no decomposition.
    """
    if schedule.index_dtype != INT:
        emitter = Indices(emitter, schedule.index_dtype)
    with consing():
        prepared, blocks = prepare(kernel, emitter.supports), ()
        if schedule.short_rows:
            prepared = written_out(prepared)
        elif schedule.row_blocks:
            prepared, blocks = block_rows(prepared)
        elif schedule.columns:
            prepared = side_by_side(prepared)
        elif schedule.lanes > 1:
            prepared, blocks = block(prepared, schedule.lanes, schedule.rows)
        elif schedule.tile > 1:
            prepared, blocks = tile(prepared, schedule.tile)
        elif schedule.cut:
            prepared, blocks = cut(by_residues(prepared))
        _Walker(prepared, emitter, blocks).emit(begin, end)


class _Walker(Evaluator[T]):
    """Opens the loops of the grid and of the stages, and stores."""

    def __init__(self, kernel: Kernel, emitter: Emitter[T], blocks: Sequence[Blocks] = ()) -> None:
        super().__init__(Facts(kernel), emitter)
        self.kernel = kernel
        self.blocks = {b.base: b for b in blocks}
        self.nearby: dict[Axis, bool] = {}
        self.sides: dict[Axis, tuple[int, bool]] = {}
        """The lanes of blocks, and whether the block where the walker is has all of them."""

    def emit(self, begin: T, end: T) -> None:
        for slot, operand in enumerate(self.kernel.operands):
            if operand.role == "local":
                (size,) = operand.shape
                assert isinstance(size, int), "scratch memory has a constant size"
                self.emitter.local(slot, operand.dtype, size)
        grid, stages = self.kernel.grid, self.kernel.stages
        nodes = [pair for stage in stages for pair in self.facts.levels(stage) if pair[1] < len(grid)]
        flat = all(not s.axes and self.independent(s) and not self.facts.folds(s) for s in stages)
        self.nest(grid, 0, list(dict.fromkeys(nodes)), self.stages, stages, vector=flat, bounds=(begin, end))

    def stages(self) -> None:
        grid = len(self.kernel.grid)
        for n, stage in enumerate(self.kernel.stages):
            if n:
                (self.emitter.warp_barrier if self.kernel.stages[n - 1].lockstep else self.emitter.barrier)()
            with self.sharing(True):
                if not self.transposed(stage) and not self.totalled(stage):
                    nodes = [pair for pair in self.facts.levels(stage) if pair[1] >= grid]
                    leaf = partial(self.stores, stage.stores)
                    vector = self.independent(stage) and not copies_across(stage)
                    self.nest(stage.axes, grid, nodes, leaf, [stage], vector=vector)
            self.forget(self.facts.written(stage))

    def independent(self, stage: Stage) -> bool:
        """Whether the iterations of the innermost loop can run in any order. Where the grid's must run in theirs, as
        rows of updates that may meet, each element of a row still goes to a place of its own."""
        if not self.kernel.ordered:
            return self.facts.independent(stage)
        path = (*self.kernel.grid, *stage.axes)
        return len(path) > 1 and all(stride(s.indices[0], path[-1]) not in (None, 0) for s in stage.stores)

    def transposed(self, stage: Stage) -> bool:
        """Writes a stage that does nothing but turn a square around, or a part of one, if the emitter has a way of its
        own."""
        sides = [self.sides[axis] for axis in stage.axes if axis in self.sides]
        if len(sides) != 2 or sides[0][0] != sides[1][0] or not copies_across(stage):
            return False
        outer, inner = stage.axes
        scope = len(self.known)
        sizes = None if all(whole for _, whole in sides) else (self.extent(inner), self.extent(outer))
        for axis in stage.axes:
            self.indices[axis] = self.emitter.const(0, INT)
        done = all(self.transposes(store, outer, inner, sides[0][0], sizes) for store in stage.stores)
        self.close(scope)
        return done

    def totalled(self, stage: Stage) -> bool:
        """Writes a stage that puts lanes of rows together, if the emitter has a way of its own."""
        found = totals_of(stage)
        return bool(found) and all(self.emitter.totals(*x) for x in found)

    def transposes(self, store: Store, outer: Axis, inner: Axis, side: int, sizes: tuple[T, T] | None) -> bool:
        at = store.value.args[0]
        pitch, steps = (
            stride(at, outer),
            (stride(at, inner), stride(store.indices[0], outer), stride(store.indices[0], inner)),
        )
        if pitch is None or steps != (1, 1, side) or origin(store.indices[0]) != 0:
            return False
        self.evaluate(self.facts.needed([at]))
        slot, dtype = store.value.attr.slot, store.value.dtype
        return self.emitter.transpose(slot, self.known[at], pitch, store.slot, side, dtype, sizes)

    def nest(
        self,
        axes: Sequence[Axis],
        level: int,
        nodes: Levels,
        leaf: Callable[[], None],
        stages: Sequence[Stage],
        *,
        vector: bool,
        bounds: tuple[T, T] | None = None,
    ) -> None:
        """Opens loops over ``axes`` around ``leaf``, which writes ``stages``; nodes are evaluated inside as many loops
        as their level says."""
        self.evaluate(x for x, n in nodes if n == level)
        if not axes:
            leaf()
            return
        axis, inner = axes[0], axes[1:]
        group = self.shared and vector and not inner

        def body(i: T) -> None:
            with_scope = len(self.known)
            self.indices[axis] = i
            with self.sharing(self.shared and not group):
                self.nest(inner, level + 1, nodes, leaf, stages, vector=vector)
            self.close(with_scope)

        innermost = vector and not inner and not any(x.kind == "fold" and n == level + 1 for x, n in nodes)
        parallel = level == 0 and bounds is not None and not self.kernel.ordered
        hints = ["parallel"] * parallel + ["group"] * group
        if innermost:
            hints += self.vector_hints(axis, stages)
        self.loop(axis, bounds, body, " ".join(hints))

    def vector_hints(self, axis: Axis, stages: Sequence[Stage]) -> list[str]:
        """What is told of an innermost loop whose iterations may run in any order."""
        near = all(stride(at, axis) in NEAR for at in places(stages))
        return ["vector"] + ["near"] * near + ["unroll"] * self.unrolls(axis)

    def loop(self, axis: Axis, bounds: tuple[T, T] | None, body: Callable[[T], None], hint: str) -> None:
        """One over ``axis``, whole unless there are ``bounds``; in blocks, if it is one of these."""
        start, stop = bounds or (self.emitter.const(0, INT), self.extent(axis))
        blocks = self.blocks.get(axis)
        if blocks is None:
            self.emitter.loop(start, stop, body, hint=hint)
        elif blocks.ragged or (bounds is not None and blocks.lanes >= MEMORY):
            self.loop_over_ragged_blocks(blocks, start, stop, body, hint)
        else:
            length = axis.extent if bounds is None and isinstance(axis.extent, int) else None
            self.loop_over_blocks(blocks, start, stop, length, body, hint)

    def unrolls(self, axis: Axis) -> bool:
        """Whether a short loop over ``axis`` is to be unrolled: lanes are registers then, conditions on its index are
        known, and what isn't in order in memory is no vector."""
        if not isinstance(axis.extent, int):
            return any(axis is b.lane for b in self.blocks.values())
        return axis.extent < SHORT and not self.in_order(axis)

    def in_order(self, axis: Axis) -> bool:
        """Whether the kernel does the same at each step along ``axis``, on words that are next to each other."""
        nodes = postorder(*kernel_roots(self.kernel))
        stores = [store for stage in self.kernel.stages for store in stage.stores]
        narrow = any(operand.dtype.itemsize < WORD for operand in self.kernel.operands)
        if narrow or any(map(_differs, nodes)) or any(store.mask is not None for store in stores):
            return False
        return self.near(axis)

    def near(self, axis: Axis) -> bool:
        if axis not in self.nearby:
            self.nearby[axis] = all(stride(at, axis) in NEAR for at in places(self.kernel.stages))
        return self.nearby[axis]

    def loop_over_blocks(
        self, blocks: Blocks, start: T, stop: T, length: int | None, body: Callable[[T], None], hint: str
    ) -> None:
        """Full blocks, whose number of lanes is constant, then the rest; ``length`` is that of the axis, if known."""
        emitter = self.emitter
        zero, lanes = emitter.const(0, INT), emitter.const(blocks.lanes, INT)

        def run(n: T, count: T, full: bool) -> None:
            self.indices[blocks.count] = count
            self.sides[blocks.lane] = blocks.lanes, full
            body(emitter.op("add", INT, start, emitter.op("mul", INT, n, lanes)))

        if length is not None:
            full, rest, more = (emitter.const(n, INT) for n in (*divmod(length, blocks.lanes), 1))
        else:
            span = emitter.op("sub", INT, stop, start)
            full = emitter.op("div", INT, span, lanes)
            rest = emitter.op("sub", INT, span, emitter.op("mul", INT, full, lanes))
            more = emitter.cast(emitter.op("ne", INT, rest, zero), BOOL, INT)
        emitter.loop(zero, full, lambda n: run(n, lanes, True), hint=hint)
        if length is None or length % blocks.lanes:
            emitter.loop(zero, more, lambda _: run(full, rest, False), hint=hint)

    def loop_over_ragged_blocks(self, blocks: Blocks, start: T, stop: T, body: Callable[[T], None], hint: str) -> None:
        """One code for all blocks, the last of which may have fewer points."""
        op, lanes = self.emitter.op, self.emitter.const(blocks.lanes, INT)
        most = self.emitter.const(blocks.lanes - 1, INT)

        def run(n: T) -> None:
            base = op("add", INT, start, op("mul", INT, n, lanes))
            self.indices[blocks.count] = op("min", INT, op("sub", INT, stop, base), lanes)
            body(base)

        count = op("div", INT, op("add", INT, op("sub", INT, stop, start), most), lanes)
        self.emitter.loop(self.emitter.const(0, INT), count, run, hint=hint.replace("parallel", ""))

    def stores(self, stores: Sequence[Store]) -> None:
        """All values are computed before the first is stored."""
        for store in stores:
            at, value = self.known[store.indices[0]], self.known[store.value]
            mask = None if store.mask is None else self.known[store.mask]
            dtype = self.kernel.operands[store.slot].dtype
            if store.combine is not None and self.emitter.atomic:
                combined = partial(self.accumulate, store.combine, dtype)
                self.emitter.accumulate(store.slot, at, value, dtype, mask, store.combine, combined)
                continue
            if store.combine is not None:
                old = self.emitter.load(store.slot, at, dtype, mask, None if mask is None else value)
                if store.combine in KEEPS and self.many_meet(store):
                    mask = self.changing(store.combine, dtype, old, value, mask)
                value = self.accumulate(store.combine, dtype, old, value)
            self.emitter.store(store.slot, at, value, dtype, mask)

    def many_meet(self, store: Store) -> bool:
        """Whether so many updates go to each place that few of them change it; of others nobody could guess which."""
        extents = [axis.extent for axis in self.kernel.grid]
        known = [n for n in (*extents, *self.kernel.operands[store.slot].shape) if isinstance(n, int)]
        if len(known) < len(extents) + len(self.kernel.operands[store.slot].shape):
            return True
        return prod(known[: len(extents)]) >= MANY * prod(known[len(extents) :])

    def changing(self, name: str, dtype: np.dtype, old: T, value: T, mask: T | None) -> T:
        """Where an extremum may change what is there: mostly it doesn't, and no later one waits for a store. Of points
        that are computed at once all are stored, if one may: those that don't change are what they were."""
        op, wide = self.emitter.op, FLOAT32 if dtype in NARROW else dtype
        keeps = op(KEEPS[name], wide, *self.widened(dtype, old, value))
        changes = self.emitter.some(op("xor", BOOL, keeps, self.emitter.const(True, BOOL)))
        return changes if mask is None else op("and", BOOL, mask, changes)

    def accumulate(self, name: str, dtype: np.dtype, *values: T) -> T:
        op = self.emitter.op
        if dtype not in NARROW:
            return op(name, dtype, *values)
        return self.emitter.cast(op(name, FLOAT32, *self.widened(dtype, *values)), FLOAT32, dtype)

    def widened(self, dtype: np.dtype, *values: T) -> list[T]:
        return [self.emitter.cast(v, dtype, FLOAT32) if dtype in NARROW else v for v in values]


def copies_across(stage: Stage) -> bool:
    """Whether a stage moves elements, and along its innermost axis takes long steps where it writes: no vector does."""
    copies = all(s.value.kind == "load" and not s.value.attr.masked and s.mask is None for s in stage.stores)
    return (
        copies
        and bool(stage.axes)
        and not any(stride(s.indices[0], stage.axes[-1]) in (None, *NEAR) for s in stage.stores)
    )


def places(stages: Iterable[Stage]) -> Iterator[Expr]:
    """Where stages read and write."""
    stores = [store for stage in stages for store in stage.stores]
    yield from (x.args[0] for x in postorder(*(y for s in stores for y in store_roots(s))) if x.kind == "load")
    yield from (store.indices[0] for store in stores)


def _differs(x: Expr) -> bool:
    """Whether ``x`` may do another thing at other indices: a fold, a load under a condition, a condition on indices."""
    if x.kind == "op":
        return x.attr in COMPARISONS and x.args[0].dtype == INT
    return x.kind == "fold" or (x.kind == "load" and x.attr.masked)
