"""Folds that the threads of a group share: a rewrite of kernels, of which no emitter knows.

``out = fold(body)`` at a point of the grid becomes stages over ``t`` threads with scratch that they share:
``part[t] = fold(body at t, t + threads, ...)``; ``next[t] = combine(part[t], part[t + half])`` for half the threads, a
quarter, ..., in turn from one half of the scratch to the other; in the end the first is the result, and scratch serves
the next fold. The order depends on the number of threads alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from polyax_kernels.ir.dependences import Facts, bodies, inits, rounds
from polyax_kernels.ir.expr import PICKS, Axis, Expr, Fold, const, index, load, make, op, postorder, rewrite, where
from polyax_kernels.ir.kernel import Kernel, Operand, Stage, Store, map_stores, store_roots
from polyax_kernels.passes.for_emission import as_expr, flatten, size, widen

NEUTRAL = {"add": 0, "mul": 1, "xor": 0}
"""What partial results start with; those of all other combinations start with the fold's initial values, as combining
them twice changes nothing."""


LOCKSTEP = 32
"""Threads that wait for each other alone where a dialect has words for it: CUDA's warp."""


def cooperate(kernel: Kernel, threads: int) -> Kernel:
    """The kernel with one-dimensional operands whose folds over whole points of the grid have become stages."""
    return _Cooperation(widen(flatten(kernel)), threads).kernel()


class _Cooperation:
    def __init__(self, kernel: Kernel, threads: int) -> None:
        self.before = kernel
        self.threads = threads
        self.facts = Facts(kernel)
        self.operands = list(kernel.operands)
        self.grid = 0
        for axis in kernel.grid:
            self.grid |= self.facts.bit(axis)
        self.known: dict[Expr, Expr] = {}
        """The folds that are computed already, and where they are read."""
        self.free: dict[tuple[np.dtype, Any], list[int]] = {}
        """Scratch that nobody reads any more, by what it is."""

    def kernel(self) -> Kernel:
        stages = tuple(new for stage in self.before.stages for new in self.stages(stage))
        return replace(self.before, stages=stages, operands=tuple(self.operands))

    def stages(self, stage: Stage) -> Iterator[Stage]:
        """What ``stage`` becomes; what it writes is read anew by later ones."""
        roots = [x for store in stage.stores for x in store_roots(store)]
        for folds in rounds(postorder(*roots), self.apart):
            yield from self.shared(folds)
        yield Stage(stage.axes, map_stores(stage.stores, self.changed))
        written = self.facts.written(stage)
        self.known = {x: y for x, y in self.known.items() if not self.facts.reads[x] & written}

    def changed(self, x: Expr) -> Expr:
        return rewrite(x, lambda _: None, dict(self.known))

    def apart(self, fold: Expr) -> bool:
        """Whether threads share it: it stands outside of all loops but the grid's."""
        return not self.facts.axes[fold] & ~self.grid and fold not in self.known

    def shared(self, folds: Sequence[Expr]) -> Iterator[Stage]:
        """The partial results of every thread, then the tree."""
        thread = Axis(self.threads, "t")
        axes, at = self.strided(folds[0].attr.axes, thread)
        carries = {(x.attr.combine, x.args): x for x in folds}
        parts = {key: [self.scratch(b.dtype, self.threads) for b in bodies(x)] for key, x in carries.items()}
        memo = {index(a): i for a, i in zip(folds[0].attr.axes, at, strict=True)} | self.known
        starts = [s for key, x in carries.items() for s in self.partial(x, axes, memo, thread, parts[key])]
        yield Stage((thread,), tuple(starts))
        other = {key: [self.scratch(b.dtype, self.threads // 2) for b in bodies(x)] for key, x in carries.items()}
        half, lent = self.threads // 2, [slot for slots in (*parts.values(), *other.values()) for slot in slots]
        while half:
            lower = Axis(half, "t")
            if half == 1:
                other = {key: [self.new(b.dtype, 1) for b in bodies(x)] for key, x in carries.items()}
            joined = [s for key, x in carries.items() for s in _joined(x, parts[key], other[key], lower)]
            yield Stage((lower,), tuple(joined), lockstep=1 < half <= LOCKSTEP)
            parts, other, half = other, parts, half // 2
        for slot in lent if self.threads > 1 else ():
            (size,), dtype = self.operands[slot].shape, self.operands[slot].dtype
            self.free.setdefault((dtype, size), []).append(slot)
        for x in folds:
            self.known[x] = self.result(x, parts[x.attr.combine, x.args][x.attr.which])

    def scratch(self, dtype: np.dtype, size: int) -> int:
        free = self.free.get((dtype, size))
        return free.pop(0) if free else self.new(dtype, size)

    def new(self, dtype: np.dtype, size: int) -> int:
        self.operands.append(Operand((size,), dtype, "local"))
        return len(self.operands) - 1

    def strided(self, axes: Sequence[Axis], thread: Axis) -> tuple[tuple[Axis, ...], list[Expr]]:
        """The axes of one thread's loops and the indices of the fold's: every ``threads``-th step of the last axis, or,
        if that is too short, of all of them in a row."""
        last = axes[-1].extent
        whole = len(axes) == 1 or (isinstance(last, int) and last >= 4 * self.threads)
        length = as_expr(last if whole else size([a.extent for a in axes]))
        t = index(thread)
        step = Axis(op("floordiv", length - t + (self.threads - 1), const(self.threads)), "n")
        place = index(step) * self.threads + t
        if whole:
            return (*axes[:-1], step), [*map(index, axes[:-1]), place]
        at: list[Expr] = []
        for axis in reversed(axes):
            at.append(place % as_expr(axis.extent) if axis is not axes[0] else place)
            place = op("floordiv", place, as_expr(axis.extent))
        return (step,), at[::-1]

    def partial(
        self, x: Expr, axes: tuple[Axis, ...], memo: dict[Expr, Expr], thread: Axis, slots: Sequence[int]
    ) -> Iterator[Store]:
        """One thread's part of a fold, into its scratch."""
        starts = [self.changed(a) for a in inits(x)]
        if x.attr.combine in NEUTRAL:
            starts = [const(NEUTRAL[x.attr.combine], a.dtype) for a in starts]
        values = [rewrite(b, lambda _: None, memo) for b in bodies(x)]
        for n, slot in enumerate(slots):
            part = make("fold", values[n].dtype, (*starts, *values), Fold(x.attr.combine, axes, n))
            yield Store(slot, (index(thread),), part)

    def result(self, x: Expr, slot: int) -> Expr:
        """The root of the tree, and what the fold started with."""
        total = load(slot, x.dtype, (const(0),))
        if x.attr.combine not in NEUTRAL:
            return total
        start = self.changed(inits(x)[0])
        neutral = start.kind == "const" and start.attr == NEUTRAL[x.attr.combine]
        return total if neutral else op(x.attr.combine, start, total)


def _joined(x: Expr, slots: Sequence[int], targets: Sequence[int], lower: Axis) -> Iterator[Store]:
    """Each of the lower half's partial results with its partner in the upper half, into other scratch: no thread
    waits for another one."""
    at = (index(lower),)
    pairs = [
        [load(n, b.dtype, (i,)) for i in (*at, at[0] + lower.extent)] for n, b in zip(slots, bodies(x), strict=True)
    ]
    if x.attr.combine not in PICKS:
        yield Store(targets[0], at, op(x.attr.combine, *pairs[0]))
        return
    better = _better(x.attr.combine, *zip(*pairs, strict=True))
    for slot, (mine, other) in zip(targets, pairs, strict=True):
        yield Store(slot, at, where(better, other, mine))


def _better(combine: str, mine: Sequence[Expr], other: Sequence[Expr]) -> Expr:
    """Whether the pair ``other`` (value, index) comes before ``mine``: of equal values the first, NaN before all."""
    (value, at), (new, new_at) = mine, other
    first = new_at < at
    better = (new > value if combine == "argmax" else new < value) | (op("eq", new, value) & first)
    if value.dtype.kind in "biu":
        return better
    number, new_number = op("eq", value, value), op("eq", new, new)
    return where(number, better | op("not", new_number), op("not", new_number) & first)
