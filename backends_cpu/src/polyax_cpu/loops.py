"""Loops and branches as steps of native programs: what Python would do with windows of memory, written down for the
native runtime.

A loop is laid out on places instead of memory; what is moved meanwhile is recorded. Knows no primitive.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyax.ir.jaxpr import ClosedJaxpr
from polyax_cpu import pool
from polyax_cpu.native import MAX_OPERANDS
from polyax_cpu.steps import Described, Table, copying, described
from polyax_kernels.lower.control import Cond
from polyax_kernels.plan.loops import Loop, Scan, Turns, While
from polyax_kernels.plan.plan import CallStep, Ref, aligned
from polyax_kernels.plan.programs import InnerFrame, InnerProgram

MOST_TURNS = (1 << 63) - 1
OPERAND, SCRATCH, ADDRESS = 0, 1, 2


class Place:
    """Somewhere in the memory of a loop: ``offset`` bytes into a base of the outer program, or into scratch."""

    __slots__ = ("base", "kind", "offset")

    def __init__(self, kind: int, base: int, offset: int) -> None:
        self.kind = kind
        self.base = base
        self.offset = offset


class _Outer(dict[int, Place]):
    """The bases of the outer program."""

    def __missing__(self, base: int) -> Place:
        return Place(OPERAND, base, 0)


class _Shelf:
    def __init__(self, recorder: Recorder, nbytes: int) -> None:
        self.recorder = recorder
        self.nbytes = nbytes

    def take(self) -> Place:
        start = self.recorder.scratch
        self.recorder.scratch += aligned(self.nbytes)
        return Place(SCRATCH, start, 0)


Move = tuple[Any, Any, int]


class Recorder:
    """The machine that a loop is laid out on."""

    def __init__(self, executable: Any) -> None:
        self.executable = executable
        self.scratch = 0
        self.moves: list[Move] = []

    def inner(self, program: ClosedJaxpr, donated: tuple[bool, ...]) -> Any:
        return self.executable.inner(program, donated)

    def shelf(self, nbytes: int) -> _Shelf:
        return _Shelf(self, nbytes)

    def window(self, base: Place, offset: int, nbytes: int) -> Place:
        return Place(base.kind, base.base, base.offset + offset)

    def move(self, source: Any, target: Any, nbytes: int) -> None:
        self.moves.append((source, target, nbytes))

    def recorded(self) -> list[Move]:
        moves, self.moves = self.moves, []
        return moves

    def peek(self, base: Any, dtype: np.dtype) -> Any:
        raise AssertionError("nothing is computed while a loop is laid out")


class _Bases:
    """The memory of even and odd turns, side by side, by number."""

    def __init__(self) -> None:
        self.even: list[Any] = []
        self.odd: list[Any] = []

    def add(self, even: Any, odd: Any) -> int:
        self.even.append(even)
        self.odd.append(odd)
        return len(self.even) - 1

    def copies(self, evens: Sequence[Move], odds: Sequence[Move]) -> list[Described]:
        """Steps that copy from and to such places, the same number of bytes in both kinds of turn."""
        steps: list[Described] = []
        for (source, target, nbytes), (odd_source, odd_target, _) in zip(evens, odds, strict=True):
            refs = Ref(self.add(source, odd_source)), Ref(self.add(target, odd_target))
            if nbytes:
                steps.append(copying(*refs, nbytes))
        return steps

    def program(self, program: InnerProgram, frames: tuple[InnerFrame, InnerFrame]) -> list[Described]:
        """The steps of a program, numbered from the first base that isn't taken yet."""
        first = len(self.even)
        for pair in zip(frames[0].bases, frames[1].bases, strict=True):
            self.add(*pair)
        steps = [(s, table) for table in program.steps for s in table.steps]
        moves = [[(f.bases[b], target, n) for b, target, n in f.copies] for f in frames]
        copies = self.copies(*moves)
        return [*steps, *(_moved(step, first) for step in copies)]


def _moved(step: Described, first: int) -> Described:
    """A copy whose bases are counted from ``first``."""
    places = step[1][0]
    for place in places:
        place.base -= first
    return step


class _Operands:
    """The places in the outer program that a step reads or writes; each has a number."""

    def __init__(self) -> None:
        self.numbers: dict[tuple[int, int], int] = {}

    def number(self, place: Place) -> int:
        return self.numbers.setdefault((place.base, place.offset), len(self.numbers))

    def slot(self, base: Any) -> tuple[int, int, int]:
        """As the native runtime reads it: kind, number or address, offset."""
        if not isinstance(base, Place):
            return ADDRESS, 0 if base is None else base.pointer, 0
        if base.kind == OPERAND:
            return OPERAND, self.number(base), 0
        return base.kind, base.base, base.offset

    def step(self, function: str, records: Sequence[Any], keep: Any) -> Described | None:
        """The step that calls a function of the native runtime with these records; None if it has too many operands."""
        if len(self.numbers) > MAX_OPERANDS:
            return None
        refs = [Ref(base, offset) for base, offset in self.numbers]
        return described(pool.symbols()[function], refs, list(map(ctypes.addressof, records)), 1, 1, (records, keep))


def native_control(executable: Any, step: CallStep) -> Described | None:
    """The step that runs a loop or a branch without Python; None if some step of its programs needs Python."""
    make = step.lowering.make
    if make is Cond:
        return _native_cond(Recorder(executable), step)
    return _native_loop(Recorder(executable), make, step) if make in (Scan, While) else None


def _all_native(*programs: InnerProgram | None) -> bool:
    return all(isinstance(s, Table) for p in programs if p is not None for s in p.steps)


def _native_loop(recorder: Recorder, make: type[Loop], step: CallStep) -> Described | None:
    loop = make(recorder, step)
    if not _all_native(loop.body, loop.test):
        return None
    args, outs = loop.places.windows(_Outer())
    turns = loop.layout(args, outs)
    before = recorder.recorded()
    ends: list[list[Move]] = []
    for odd in (False, True):
        loop.finish(turns, odd, outs)
        ends.append(recorder.recorded())
    length = MOST_TURNS if loop.length is None else loop.length
    operands = _Operands()
    record, keep = _Laid(loop.body, turns, length, recorder.scratch, loop.test, before, ends).record(operands)
    return operands.step("polyax_loop", [record], (loop, keep))


def _native_cond(recorder: Recorder, step: CallStep) -> Described | None:
    """Each branch is a loop of one turn."""
    cond = Cond(recorder, step)
    if not _all_native(*cond.branches):
        return None
    args, outs = cond.places.windows(_Outer())
    operands = _Operands()
    operands.number(args[0])
    frames = [branch.frame(args[1:], outs) for branch in cond.branches]
    laid = [
        _Laid(branch, Turns((frame, frame), ([], [])), 1, recorder.scratch)
        for branch, frame in zip(cond.branches, frames, strict=True)
    ]
    records, kept = zip(*[x.record(operands) for x in laid], strict=True)
    return operands.step("polyax_cond", records, (cond, kept))


@dataclass(frozen=True)
class _Laid:
    """A loop that is laid out."""

    body: InnerProgram
    turns: Turns
    length: int
    scratch: int
    test: InnerProgram | None = None
    before: Sequence[Move] = ()
    ends: Sequence[Sequence[Move]] = ((), ())
    """What is copied after the last turn, if their number is even or odd."""

    def record(self, operands: _Operands) -> tuple[Any, Any]:
        """A ``Loop`` of the native runtime, and what must live as long as it."""
        bases, turns = _Bases(), self.turns
        steps = bases.program(self.body, turns.frames)
        test_first, test, holds = len(bases.even), list[Described](), -1
        if self.test is not None and turns.tests is not None:
            test = bases.program(self.test, turns.tests)
            holds = bases.add(turns.holds, turns.holds)
        parts = bases.copies(self.before, self.before), test, steps, bases.copies(*_padded(*self.ends))
        tables = [Table(part, 0) for part in parts]
        every = [*bases.even, *bases.odd]
        slots = _words([x for base in every for x in operands.slot(base)])
        moved = [(n, by) for row, by in turns.strides for n, base in enumerate(every) if base is row]
        moving = _words([x for pair in moved for x in pair])
        fields = [x for t in tables for x in (ctypes.addressof(t.steps), t.count)]
        fields += [ctypes.addressof(slots), len(bases.even), ctypes.addressof(moving), len(moved)]
        return _words([*fields, test_first, holds, self.length, self.scratch]), (every, tables, slots, moving)


def _padded(evens: Sequence[Move], odds: Sequence[Move]) -> tuple[list[Move], list[Move]]:
    """The same targets in both: what is there already is copied to itself."""
    sizes = {id(target): (target, nbytes) for _, target, nbytes in (*evens, *odds)}
    sources = [{id(target): source for source, target, _ in moves} for moves in (evens, odds)]
    even, odd = ([(s.get(key, target), target, n) for key, (target, n) in sizes.items()] for s in sources)
    return even, odd


def _words(values: Sequence[int]) -> Any:
    return (ctypes.c_int64 * len(values))(*values)
