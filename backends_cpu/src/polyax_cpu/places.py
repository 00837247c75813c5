"""Where the values of a plan within a loop are while its code runs: in memory of the plan around it, or, if they are
small, in locals of the loop's function, which the compiler keeps in registers. Writes no loop.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from polyax_cpu.llvm import Builder, IrValue
from polyax_kernels.plan.plan import CallStep, CopyStep, Inner, KernelStep, LoopStep, Plan, Ref, Step

SMALL = 128
"""Bytes of what is kept in locals."""
UNKNOWN = 1 << 62
"""The bytes of an array whose size is known when the program runs."""
Piece = tuple[Ref, int]
"""A place, and its size in bytes."""


@dataclass(frozen=True)
class LocalPiece:
    """Bytes of an arena that live elsewhere."""

    start: int
    end: int
    pointer: IrValue


class Frame:
    """The memory that a plan's steps see: an address for each base, and for small pieces of its arena."""

    def __init__(self, b: Builder, bases: Sequence[IrValue | None], arena: int = -1, local: Sequence[LocalPiece] = ()):
        self.b = b
        self.bases = bases
        self.arena = arena
        self.local = local

    def at(self, ref: Ref) -> IrValue:
        base, offset = self.bases[ref.base], ref.offset
        if ref.base == self.arena:
            for cell in self.local:
                if cell.start <= offset < cell.end:
                    base, offset = cell.pointer, offset - cell.start
        if base is None:
            return self.b.pointer("null")
        return self.b.at(base, offset, "i8") if offset else base


def copy(b: Builder, source: IrValue, target: IrValue, nbytes: int) -> None:
    if nbytes:
        b.call("void", "llvm.memmove.p0.p0.i64", target, source, b.const(nbytes, "i64"), b.const(False, "i1"))


def locals_of(b: Builder, plan: Plan) -> list[LocalPiece]:
    """Locals for the small pieces of a plan's arena, each of which may hold one value after the other."""
    found = sorted((r.offset, r.offset + n) for step in plan.steps for r, n in touched(step) if r.base == plan.arena)
    joined: list[tuple[int, int]] = []
    for start, end in found:
        if joined and start < joined[-1][1]:
            start, end = joined[-1][0], max(end, joined.pop()[1])
        joined.append((start, end))
    return [LocalPiece(start, end, b.alloca("i8", end - start)) for start, end in joined if 0 < end - start <= SMALL]


def touched(step: Step) -> Iterator[Piece]:
    """What a step reads or writes."""
    if isinstance(step, KernelStep):
        operands = [o for o in step.kernel.operands if o.role != "local"]
        for ref, operand in zip(step.operands, operands, strict=True):
            known = [n for n in operand.shape if isinstance(n, int)]
            yield ref, math.prod(known) * operand.dtype.itemsize if len(known) == len(operand.shape) else UNKNOWN
    elif isinstance(step, CallStep):
        both = zip((*step.args, *step.outs), (*step.arg_avals, *step.out_avals), strict=True)
        yield from ((ref, aval.nbytes) for ref, aval in both)
    elif isinstance(step, CopyStep):
        yield from ((step.source, step.nbytes), (step.target, step.nbytes))
    elif isinstance(step, LoopStep):
        yield from () if step.holds is None else ((step.holds, 1),)
        for copy in (*step.before, *step.ends[0], *step.ends[1]):
            yield from touched(copy)
        if step.test is not None:
            yield from _of_inner(step.test, {}, 1)
        yield from _of_inner(step.body, dict(step.strides), max(1, step.length or 1))
    else:
        yield step.index, 4
        for inner in step.branches:
            yield from _of_inner(inner, {}, 1)


def _of_inner(inner: Inner, strides: dict[int, int], turns: int) -> Iterator[Piece]:
    for n, (nbytes, *refs) in enumerate(zip(sizes(inner), inner.even, inner.odd, strict=True)):
        reach = strides.get(n, 0) * (turns - 1)
        for ref in refs:
            if ref is not None:
                yield Ref(ref.base, ref.offset + min(0, reach)), nbytes + abs(reach)


def sizes(inner: Inner) -> list[int]:
    """The bytes of each place of a plan within another one."""
    plan = inner.plan
    values = [a.nbytes for a in (*plan.inputs,)], [*plan.fresh, plan.arena_bytes], [x.nbytes for x in plan.literals]
    return [*(n for group in values for n in group), *(copy.nbytes for copy in inner.copies)]
