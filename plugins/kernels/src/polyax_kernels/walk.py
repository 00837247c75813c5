"""The kernel walker: turns a kernel and a schedule into calls of an emitter.

It places every expression at the outermost loop where its inputs are known, once per scope, and opens the loops. It
knows no language; and no value of an array.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Generic, TypeVar

import numpy as np

from polyax_kernels.emitter import Emitter
from polyax_kernels.expr import BOOL, INT, Axis, Expr, Fold, consing, make
from polyax_kernels.facts import Facts, Levels
from polyax_kernels.kernel import Kernel, Schedule, Store
from polyax_kernels.lanes import Blocks, block
from polyax_kernels.prepare import FLOAT32, NARROW, prepare

T = TypeVar("T")


def emit_kernel(kernel: Kernel, schedule: Schedule, emitter: Emitter[T], begin: T, end: T) -> None:
    """Emits the loops and stores of ``kernel`` for the points ``begin..end`` of its first grid axis.

    Raises:
      NotImplementedError: an operation that the emitter lacks has no decomposition.
    """
    with consing():
        prepared, blocks = prepare(kernel, emitter.supports), None
        if schedule.lanes > 1:
            prepared, blocks = block(prepared, schedule.lanes)
        _Walker(prepared, emitter, blocks).emit(begin, end)


class _Walker(Generic[T]):
    """``known`` holds the values of the expressions of all open scopes, in the order in which they were emitted."""

    def __init__(self, kernel: Kernel, emitter: Emitter[T], blocks: Blocks | None = None) -> None:
        self.kernel = kernel
        self.blocks = blocks
        self.emitter = emitter
        self.facts = Facts(kernel)
        self.known: dict[Expr, T] = {}
        self.indices: dict[Axis, T] = {}

    # --- loops ---

    def emit(self, begin: T, end: T) -> None:
        for slot, operand in enumerate(self.kernel.operands):
            if operand.role == "local":
                (size,) = operand.shape
                assert isinstance(size, int), "scratch memory has a constant size"
                self.emitter.local(slot, operand.dtype, size)
        grid, stages = self.kernel.grid, self.kernel.stages
        nodes = [pair for stage in stages for pair in self.facts.levels(stage) if pair[1] < len(grid)]
        flat = all(not s.axes and self.facts.independent(s) and not self.facts.folds(s) for s in stages)
        self.nest(grid, 0, list(dict.fromkeys(nodes)), self.stages, vector=flat, bounds=(begin, end))

    def stages(self) -> None:
        grid = len(self.kernel.grid)
        for n, stage in enumerate(self.kernel.stages):
            if n:
                self.emitter.barrier()
            nodes = [pair for pair in self.facts.levels(stage) if pair[1] >= grid]
            leaf = partial(self.stores, stage.stores)
            self.nest(stage.axes, grid, nodes, leaf, vector=self.facts.independent(stage))
            self.forget(self.facts.written(stage))

    def nest(
        self,
        axes: Sequence[Axis],
        level: int,
        nodes: Levels,
        leaf: Callable[[], None],
        *,
        vector: bool,
        bounds: tuple[T, T] | None = None,
    ) -> None:
        """Opens loops over ``axes`` around ``leaf``; nodes are evaluated inside as many loops as their level says."""
        self.evaluate(x for x, n in nodes if n == level)
        if not axes:
            leaf()
            return
        axis, inner = axes[0], axes[1:]

        def body(i: T) -> None:
            with_scope = len(self.known)
            self.indices[axis] = i
            self.nest(inner, level + 1, nodes, leaf, vector=vector)
            self.close(with_scope)

        innermost = vector and not inner and not any(x.kind == "fold" and n == level + 1 for x, n in nodes)
        parallel = level == 0 and bounds is not None and not self.kernel.ordered
        hint = " ".join(["parallel"] * parallel + ["vector"] * innermost)
        start, stop = bounds or (self.emitter.const(0, INT), self.extent(axis))
        if self.blocks is not None and axis is self.blocks.base:
            length = axis.extent if bounds is None and isinstance(axis.extent, int) else None
            self.loop_over_blocks(self.blocks, start, stop, length, body, hint)
            return
        self.emitter.loop(start, stop, body, hint=hint)

    def loop_over_blocks(
        self, blocks: Blocks, start: T, stop: T, length: int | None, body: Callable[[T], None], hint: str
    ) -> None:
        """Full blocks, whose number of lanes is constant, then the rest; ``length`` is that of the axis, if known."""
        emitter = self.emitter
        zero, lanes = emitter.const(0, INT), emitter.const(blocks.lanes, INT)

        def run(n: T, count: T) -> None:
            self.indices[blocks.count] = count
            body(emitter.op("add", INT, start, emitter.op("mul", INT, n, lanes)))

        if length is None:
            span = emitter.op("sub", INT, stop, start)
            full = emitter.op("div", INT, span, lanes)
            rest = emitter.op("sub", INT, span, emitter.op("mul", INT, full, lanes))
            more = emitter.cast(emitter.op("ne", INT, rest, zero), BOOL, INT)
        else:
            full, rest, more = (emitter.const(n, INT) for n in (*divmod(length, blocks.lanes), 1))
        emitter.loop(zero, full, lambda n: run(n, lanes), hint=hint)
        if length is None or length % blocks.lanes:
            emitter.loop(zero, more, lambda _: run(full, rest), hint=hint)

    def extent(self, axis: Axis) -> T:
        if not isinstance(axis.extent, Expr):
            return self.emitter.const(axis.extent, INT)
        self.evaluate(self.facts.needed([axis.extent]))
        return self.known[axis.extent]

    def close(self, size: int) -> None:
        """Leaves a scope: values emitted inside it are known no more."""
        while len(self.known) > size:
            self.known.popitem()

    def forget(self, written: int) -> None:
        """Values read from memory that a stage wrote are known no more."""
        for x in [x for x in self.known if self.facts.reads[x] & written]:
            del self.known[x]

    # --- expressions ---

    def evaluate(self, nodes: Iterable[Expr]) -> None:
        for x in nodes:
            if x.kind == "fold" and x not in self.known:
                self.fold(x)
            elif x not in self.known:
                self.known[x] = self.value(x)

    def value(self, x: Expr) -> T:
        args = [self.known[a] for a in x.args]
        emitter = self.emitter
        match x.kind:
            case "op":
                return emitter.op(x.attr, x.args[-1].dtype, *args)
            case "load":
                return emitter.load(x.attr.slot, args[0], x.dtype, *args[1:])
            case "index":
                return self.indices[x.attr]
            case "const":
                return emitter.const(x.attr, x.dtype)
            case "cast":
                return emitter.cast(args[0], x.args[0].dtype, x.dtype)
            case "bitcast":
                return emitter.bitcast(args[0], x.args[0].dtype, x.dtype)
            case _:
                return emitter.param(x.attr, x.dtype)

    def fold(self, x: Expr) -> None:
        """Emits the loops of ``x``; all carries become known, since siblings often want them (argmax and max)."""
        half = len(x.args) // 2
        carries = self.fold_axis(x, 0, [self.known[a] for a in x.args[:half]], self.facts.inside(x))
        for n, carry in enumerate(carries):
            sibling = make("fold", x.args[half + n].dtype, x.args, Fold(x.attr.combine, x.attr.axes, n))
            self.facts.like(x, sibling)
            self.known[sibling] = carry
        self.known[x] = carries[x.attr.which]  # it may be of another table than the siblings made here

    def fold_axis(self, x: Expr, depth: int, carries: Sequence[T], nodes: Levels) -> Sequence[T]:
        """The loops over the axes from number ``depth`` on, or, inside all of them, one combination."""
        self.evaluate(y for y, n in nodes if n == depth)
        axes, bodies = x.attr.axes, x.args[len(x.args) // 2 :]
        if depth == len(axes):
            return self.combine(x.attr.combine, bodies, carries)

        def body(i: T, inner: Sequence[T]) -> Sequence[T]:
            scope = len(self.known)
            self.indices[axes[depth]] = i
            result = self.fold_axis(x, depth + 1, inner, nodes)
            self.close(scope)
            return result

        ordered = x.attr.combine in ("argmax", "argmin")
        combines = [x.attr.combine] * len(carries) if depth == len(axes) - 1 and not ordered else []
        dtypes = [b.dtype for b in bodies]
        return self.emitter.fold(
            self.extent(axes[depth]), carries, dtypes, body, combines=combines, reassociate=not ordered
        )

    def combine(self, name: str, bodies: Sequence[Expr], carries: Sequence[T]) -> list[T]:
        values = [self.known[b] for b in bodies]
        if name in ("argmax", "argmin"):
            return self.pick(name, bodies, carries, values)
        return [self.emitter.op(name, b.dtype, c, v) for b, c, v in zip(bodies, carries, values, strict=True)]

    def pick(self, name: str, bodies: Sequence[Expr], carries: Sequence[T], values: Sequence[T]) -> list[T]:
        """The better of two (value, index) pairs; the first of equal ones, and NaN before all."""
        op, dtype = self.emitter.op, bodies[0].dtype
        best, value = carries[0], values[0]
        better = op("gt" if name == "argmax" else "lt", dtype, value, best)
        if dtype.kind == "f":
            ordered, new_nan = op("eq", dtype, best, best), op("ne", dtype, value, value)
            better = op("and", BOOL, ordered, op("or", BOOL, better, new_nan))
        return [op("select", b.dtype, better, v, c) for b, c, v in zip(bodies, carries, values, strict=True)]

    def stores(self, stores: Sequence[Store]) -> None:
        """All values are computed before the first is stored."""
        for store in stores:
            at, value = self.known[store.indices[0]], self.known[store.value]
            mask = None if store.mask is None else self.known[store.mask]
            dtype = self.kernel.operands[store.slot].dtype
            if store.combine is not None:
                old = self.emitter.load(store.slot, at, dtype, mask, None if mask is None else value)
                value = self.accumulate(store.combine, dtype, old, value)
            self.emitter.store(store.slot, at, value, dtype, mask)

    def accumulate(self, name: str, dtype: np.dtype, *values: T) -> T:
        cast, op = self.emitter.cast, self.emitter.op
        if dtype not in NARROW:
            return op(name, dtype, *values)
        return cast(op(name, FLOAT32, *(cast(v, dtype, FLOAT32) for v in values)), FLOAT32, dtype)
