"""Loops as steps of native programs: what Python would do with windows of memory, written down for the native runtime.

The loop is laid out on places instead of memory; what is moved meanwhile is recorded. Knows no primitive.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from polyax.ir.jaxpr import ClosedJaxpr
from polyax_cpu import pool
from polyax_cpu.steps import Described, Table, copying, described
from polyax_kernels.loops import Loop, Turns
from polyax_kernels.plan import CallStep, Ref, aligned
from polyax_kernels.programs import Frame, Program

MOST_OPERANDS = 128
MOST_TURNS = (1 << 63) - 1
OPERAND, SCRATCH, ADDRESS = 0, 1, 2


class Place:
    """Somewhere in the memory of a loop: ``offset`` bytes into a base of the outer program, or into scratch."""

    __slots__ = ("base", "kind", "offset")

    def __init__(self, kind: int, base: int, offset: int) -> None:
        self.kind = kind
        self.base = base
        self.offset = offset


class _Outer:
    """The bases of the outer program."""

    def __getitem__(self, base: int) -> Place:
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

    def program(self, program: Program, frames: tuple[Frame, Frame]) -> list[Described]:
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


def native_loop(executable: Any, step: CallStep) -> Described | None:
    """The step that runs a loop without Python; None if some step of its programs needs Python."""
    if not (isinstance(step.lowering.make, type) and issubclass(step.lowering.make, Loop)):
        return None
    recorder = Recorder(executable)
    loop = step.lowering.make(recorder, step)
    programs = [loop.body, *([loop.test] if loop.test is not None else [])]
    if not all(isinstance(s, Table) for p in programs for s in p.steps):
        return None
    args, outs = loop.places.windows(_Outer())
    turns = loop.layout(args, outs)
    before = recorder.recorded()
    ends: list[list[Move]] = []
    for odd in (False, True):
        loop.finish(turns, odd, outs)
        ends.append(recorder.recorded())
    return _described(loop, turns, recorder.scratch, before, ends)


def _described(loop: Loop, turns: Turns, scratch: int, before: list[Move], ends: list[list[Move]]) -> Described | None:
    bases = _Bases()
    body = bases.program(loop.body, turns.frames)
    test_first, test, holds = len(bases.even), [], -1
    if loop.test is not None and turns.tests is not None:
        test = bases.program(loop.test, turns.tests)
        holds = bases.add(turns.holds, turns.holds)
    parts = bases.copies(before, before), test, body, bases.copies(*_padded(*ends))
    every = [*bases.even, *bases.odd]
    operands = list(dict.fromkeys((p.base, p.offset) for p in every if isinstance(p, Place) and p.kind == OPERAND))
    if len(operands) > MOST_OPERANDS:
        return None
    tables = [Table(steps, 0) for steps in parts]
    slots = _words([x for base in every for x in _slot(base, operands)])
    moving = _words([x for row, by in turns.strides for n, base in enumerate(every) if base is row for x in (n, by)])
    fields = [x for t in tables for x in (ctypes.addressof(t.steps), t.count)]
    fields += [ctypes.addressof(slots), len(bases.even), ctypes.addressof(moving), len(moving) // 2]
    fields += [test_first, holds, MOST_TURNS if loop.length is None else loop.length, scratch]
    record = _words(fields)
    keep = loop, every, tables, slots, moving, record
    refs = [Ref(base, offset) for base, offset in operands]
    return described(pool.symbols()["polyax_loop"], refs, [ctypes.addressof(record)], 1, 1, keep)


def _padded(evens: list[Move], odds: list[Move]) -> tuple[list[Move], list[Move]]:
    """The same targets in both: what is there already is copied to itself."""
    sizes = {id(target): (target, nbytes) for _, target, nbytes in (*evens, *odds)}
    sources = [{id(target): source for source, target, _ in moves} for moves in (evens, odds)]
    even, odd = ([(s.get(key, target), target, n) for key, (target, n) in sizes.items()] for s in sources)
    return even, odd


def _slot(base: Any, operands: list[tuple[int, int]]) -> tuple[int, int, int]:
    """As the native runtime reads it: kind, number or address, offset."""
    if not isinstance(base, Place):
        return ADDRESS, 0 if base is None else base.pointer, 0
    if base.kind == OPERAND:
        return OPERAND, operands.index((base.base, base.offset)), 0
    return base.kind, base.base, base.offset


def _words(values: Sequence[int]) -> Any:
    return (ctypes.c_int64 * len(values))(*values)
