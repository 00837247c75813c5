"""Running values that the threads of a group share: a rewrite of kernels, of which no emitter knows.

``out[k] = combine(out[k - 1], x[k])`` along memory goes from element to element. Here a group has the row: neighbouring
threads read neighbouring elements into memory that they share; each thread combines a few that follow each other; what
comes before these is found by doubling distances, in turn from one half of the scratch to the other; at last
neighbouring threads write neighbouring elements. The order depends on the lengths of rows and of groups alone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from polyax_kernels.ir.expr import Axis, Expr, const, fold, index, load, op, postorder, rewrite
from polyax_kernels.ir.kernel import Kernel, Operand, Stage, Store, store_roots
from polyax_kernels.ir.strides import origin, stride
from polyax_kernels.passes.for_emission import flatten

COMBINES = ("add", "mul", "max", "min")
FEW = 4
"""Elements that a thread combines alone, at least."""
SHORTEST, LONGEST = 32, 2048
"""The rows that a group has work for, and those that it has room for."""


class Running(NamedTuple):
    """A row of running values along ``axis``: ``start`` is what comes before the first, ``x`` what each adds."""

    axis: Axis
    length: int
    combine: str
    start: Expr
    x: Expr


def running(kernel: Kernel) -> Running | None:
    """What the flat ``kernel`` does, if that is one row of running values along memory at each point of its grid."""
    if len(kernel.stages) != 1 or len(kernel.stages[0].axes) != 1 or len(kernel.stages[0].stores) != 1:
        return None
    (axis,), (store,) = kernel.stages[0].axes, kernel.stages[0].stores
    value, length = store.value, axis.extent
    if store.mask is not None or store.combine or value.kind != "op" or value.attr not in COMBINES:
        return None
    own = [x for x in postorder(*store_roots(store)) if x.kind == "load" and x.attr.slot == store.slot]
    folds = any(x.kind == "fold" for x in postorder(value))
    if len(own) != 1 or own[0] not in value.args or folds or not isinstance(length, int):
        return None
    if not SHORTEST <= length <= LONGEST or not _is_before(own[0], store.indices[0], axis, kernel.grid):
        return None
    (x,) = [a for a in value.args if a is not own[0]]
    return Running(axis, length, value.attr, own[0].args[2], x)


def _is_before(previous: Expr, at: Expr, axis: Axis, grid: tuple[Axis, ...]) -> bool:
    """Whether the load ``previous`` reads what the step before wrote, next to ``at``, but nothing in the first step."""
    if not previous.attr.masked or not _is_later(previous.args[1], axis):
        return False
    before, step, here, there = previous.args[0], stride(at, axis), origin(at), origin(previous.args[0])
    alike = all(stride(before, a) == stride(at, a) is not None for a in (*grid, axis))
    return alike and step in (1, -1) and here is not None and there == here - step


def _is_later(mask: Expr, axis: Axis) -> bool:
    """Whether ``mask`` says that the index of ``axis`` is greater than 0."""
    if mask.kind != "op" or mask.attr != "gt":
        return False
    i, zero = mask.args
    return i.kind == "index" and i.attr is axis and zero.kind == "const" and zero.attr == 0


def shared_scan(kernel: Kernel, threads: int) -> Kernel:
    """The kernel, which has ``running`` values, with stages whose loops the threads of a group share."""
    kernel = flatten(kernel)
    found = running(kernel)
    assert found is not None
    return _Scan(kernel, found, threads).kernel()


class _Scan:
    def __init__(self, kernel: Kernel, row: Running, threads: int) -> None:
        self.before, self.row = kernel, row
        self.log = (max(FEW, -(-row.length // threads)) - 1).bit_length()
        """Of the number of elements that a thread combines alone."""
        self.parts = -(-row.length >> self.log)
        """How many threads combine elements that follow each other."""
        self.operands = list(kernel.operands)

    def kernel(self) -> Kernel:
        elements = self.scratch(self.row.length + self.parts)
        k = Axis(self.row.length, "t")
        (store,) = self.before.stages[0].stores
        at = index(self.row.axis)
        read = Stage((k,), (Store(elements, (self.place(index(k)),), _at(self.row.x, at, index(k))),))
        totals, doubling = self.doubled(self.totals(elements))
        value = self.last(elements, totals, index(k))
        written = Stage((k,), (replace(store, indices=(_at(store.indices[0], at, index(k)),), value=value),))
        return replace(self.before, stages=(read, *doubling, written), operands=tuple(self.operands))

    def scratch(self, size: int) -> int:
        self.operands.append(Operand((size,), self.row.x.dtype, "local"))
        return len(self.operands) - 1

    def place(self, k: Expr) -> Expr:
        """Where element ``k`` is in scratch: with a gap behind each part, so that threads meet in no bank."""
        return k + self.part(k)

    def part(self, k: Expr) -> Expr:
        """The thread that has element ``k``."""
        return op("shift_right_logical", k, const(self.log))

    def read(self, slot: int, at: Expr, where: Expr) -> Expr:
        return load(slot, self.row.x.dtype, (at,), where, self.row.start)

    def along(self, elements: int, start: Expr, part: Expr, end: Expr) -> Expr:
        """``start`` combined with the elements of ``part`` up to ``end``."""
        n = Axis(1 << self.log, "n")
        at = part * (1 << self.log) + index(n)
        return fold(self.row.combine, (n,), (start,), (self.read(elements, at + part, at < end),))

    def totals(self, elements: int) -> tuple[int, Stage]:
        """What each thread combines alone."""
        slot, part = self.scratch(self.parts), Axis(self.parts, "t")
        total = self.along(elements, self.row.start, index(part), const(self.row.length))
        return slot, Stage((part,), (Store(slot, (index(part),), total),))

    def doubled(self, totals: tuple[int, Stage]) -> tuple[int, list[Stage]]:
        """Where the running values of the ``totals`` are, and the stages that lead there."""
        slot, first = totals
        other, stages, distance = self.scratch(self.parts), [first], 1
        while distance < self.parts:
            part = Axis(self.parts, "t")
            t = index(part)
            before = self.read(slot, t - distance, t >= distance)
            joined = op(self.row.combine, before, load(slot, self.row.x.dtype, (t,)))
            stages.append(Stage((part,), (Store(other, (t,), joined),)))
            slot, other, distance = other, slot, 2 * distance
        return slot, stages

    def last(self, elements: int, totals: int, k: Expr) -> Expr:
        """The running value of element ``k``."""
        part = self.part(k)
        return self.along(elements, self.read(totals, part - 1, part > 0), part, k + 1)


def _at(x: Expr, i: Expr, to: Expr) -> Expr:
    return rewrite(x, lambda y: to if y is i else None)
