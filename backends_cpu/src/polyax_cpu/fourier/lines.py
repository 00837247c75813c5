"""Transforms along one axis of arrays as a native function: as many lines at a time as vectors have lanes.

A block of lines is read into memory of its own, interleaved, goes through the passes there, and is written to where the
results lie. All sizes, strides, tables and passes are numbers that the function is told, so there is one for each type.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from polyax_cpu import compiler, machine_code, pool
from polyax_cpu.fourier import blocks, factors, passes, special
from polyax_cpu.fourier.blocks import LineSide
from polyax_cpu.libraries.registers import Vectors
from polyax_cpu.llvm import Builder, IrValue, Module, size_of
from polyax_cpu.records import FUNCTION_PARAMS

ALIGNED = 64
N = TypeVar("N")


class LineNumbers(NamedTuple, Generic[N]):
    """What the native function is told beside both sides. Behind these are factors, each with its pass's address."""

    size: N
    """Elements of a line while it is transformed."""
    table: N
    read: N
    """The functions that read and write blocks."""
    write: N
    before: N
    """Functions for what is special before and behind the passes, or 0, and their table."""
    behind: N
    special_table: N
    inverse: N
    """1 if real and imaginary parts change places, which makes a transform the inverse one, else 0."""
    scale: N
    """A double, as bits: what all results are multiplied by."""
    room: N
    """Elements of a line that there must be room for."""
    lines: N
    """Of a row of lines, none of which is in a block with another's."""
    rows: N
    factors: N


@dataclass(frozen=True)
class Lines:
    """The transform of some lines, which is what an array of ``shape`` has; the native function counts blocks."""

    shape: tuple[int, ...]
    result: str
    """The dtype of the result."""
    type: str
    size: int
    rows: int
    lines: int
    inverse: bool
    scale: float
    source: LineSide[int]
    target: LineSide[int]
    special: str = ""
    span: int = 0
    """What the table for what is special depends on: the length on the real side, or the columns of a matrix."""

    @property
    def lanes(self) -> int:
        return Vectors(self.type).lanes

    @property
    def extent(self) -> int:
        return self.rows * -(-self.lines // self.lanes)

    @property
    def flops(self) -> int:
        each = sum(4 * p if p in factors.OWN else 2 * p for p in factors.factors(self.size))
        return self.rows * self.lines * self.size * (4 + each)

    @property
    def scalars(self) -> tuple[int, ...]:
        return *self._numbers, *self.source, *self.target, *self._passes()

    @property
    def _numbers(self) -> LineNumbers[int]:
        around = special.address(self.type, self.special) if self.special else 0
        early = self.special in special.BEFORE
        return LineNumbers(
            size=self.size,
            table=_address(factors.table(self.size, self.type)),
            read=blocks.address(self.type, blocks.READ),
            write=blocks.address(self.type, blocks.WRITE),
            before=around * early,
            behind=around * (not early),
            special_table=self._special_table(),
            inverse=int(self.inverse),
            scale=struct.unpack("q", struct.pack("d", self.scale))[0],
            room=max(self.source.elements, self.target.elements, self.size) + 1,
            lines=self.lines,
            rows=self.rows,
            factors=len(factors.factors(self.size)),
        )

    def _special_table(self) -> int:
        if self.special in (special.SPLIT, special.JOIN):
            return _address(factors.halves(self.span, self.type))
        if self.special == special.BETWEEN:
            return _address(factors.between(self.size, self.span, self.lanes, self.type))
        return 0

    def _passes(self) -> Iterator[int]:
        found = factors.factors(self.size)
        for n, p in enumerate(found):
            yield p
            yield passes.address(self.type, p, last=n == len(found) - 1)


def _address(table: Any) -> int:
    """Tables are kept as long as the process lives."""
    return table.ctypes.data


@functools.cache
def prepare(type: str, size: int, around: str) -> None:
    """Makes the code for lines of such a size, on all threads: each part of it is a module of its own."""
    found = factors.factors(size)
    made: list[Callable[[], Any]] = [partial(blocks.address, type, name) for name in (blocks.READ, blocks.WRITE)]
    made.append(partial(function, type))
    made += [partial(passes.address, type, p, last=n == len(found) - 1) for n, p in enumerate(found)]
    made += [partial(special.address, type, around)] if around else []
    with ThreadPoolExecutor(pool.thread_count(), "polyax-compile") as workers:
        for done in [workers.submit(make) for make in made]:
            done.result()


@functools.cache
def function(type: str) -> compiler.LoadedCode:
    """``transform(source, target; scalars, begin, end)``."""
    return machine_code.written(f"transforms {type}", lambda: _text(type), ["transform"], {}, level=0)


def _text(type: str) -> str:
    module = Module(["transform"])
    _Writer(module.function("void", "transform", FUNCTION_PARAMS), Vectors(type)).write()
    return module.text()


def _used(p: IrValue, rest: IrValue) -> IrValue:
    """How many numbers of the table belong to a pass."""
    half = (p - 1) / 2
    return rest * (p - 1) * 2 + half * half * 2


class _Writer:
    """Writes the function that reads, transforms and writes blocks."""

    def __init__(self, b: Builder, kind: Vectors) -> None:
        buffers, scalars, self.begin, self.end = b.args
        self.b, self.kind = b, kind
        load = lambda n: b.load(b.at(scalars, n, "i64"), "i64")
        count, width = len(LineNumbers._fields), len(LineSide._fields)
        self.told = LineNumbers(*[load(n) for n in range(count)])
        self.sides = [b.at(scalars, count + k * width, "i64") for k in range(2)]
        self.factors = b.at(scalars, count + 2 * width, "i64")
        self.buffers = [b.load(b.at(buffers, n, "ptr"), "ptr") for n in range(2)]
        self.per_row = (self.told.lines + (kind.lanes - 1)) / kind.lanes

    def write(self) -> None:
        b, told, lanes = self.b, self.told, self.kind.lanes
        raw, (here, there) = self._memory()
        early, late = (x.compare("!=", 0) for x in (told.before, told.behind))
        start, other = b.select(early, there, here), b.select(early, here, there)
        end = self._after_passes(start, other)
        spare = b.select(b.test("icmp eq", end, here), there, here)
        with b.loop(self.begin, self.end) as number:
            row = number / self.per_row
            first = (number - row * self.per_row) * lanes
            place, swapped = (row, first, told.lines), b.select(early, 0, told.inverse)
            self._call(told.read, here, self.buffers[0], self.sides[0], *place, swapped, told.scale)
            self._special(told.before, here, there, first)
            self._pass(start, other)
            self._special(told.behind, end, spare, first)
            result = b.select(late, spare, end)
            self._call(told.write, result, self.buffers[1], self.sides[1], *place, told.inverse, told.scale)
        b.call("void", "free", raw)
        b.ret()

    def _call(self, function: IrValue, *args: IrValue) -> None:
        self.b.invoke("void", self._pointer(function), *args)

    def _special(self, function: IrValue, source: IrValue, target: IrValue, first: IrValue) -> None:
        b, told, kind = self.b, self.told, self.kind
        with b.when(function.compare("!=", 0)):
            table, pitch = self._pointer(told.special_table), self.per_row * kind.lanes
            self._call(function, source, target, table, told.size, first, pitch)

    def _after_passes(self, start: IrValue, other: IrValue) -> IrValue:
        """Where the results of passes are, which go to and fro between two places."""
        return self.b.select((self.told.factors & 1).compare("!=", 0), other, start)

    def _pass(self, start: IrValue, other: IrValue) -> None:
        b, size = self.b, self.told.size
        one, none = b.const(1, "i64"), b.const(0, "i64")

        def turn(n: IrValue, carries: list[IrValue]) -> list[IrValue]:
            source, target, done, table = carries
            p, function = (b.load(b.at(self.factors, n * 2 + k, "i64"), "i64") for k in range(2))
            rest = size / (done * p)
            self._call(function, source, target, done, rest, table, p)
            return [target, source, done * p, self.kind.at(table, _used(p, rest))]

        b.carry(none, self.told.factors, [start, other, one, self._pointer(self.told.table)], turn)

    def _pointer(self, number: IrValue) -> IrValue:
        return self.b.convert("inttoptr", number, "ptr")

    def _memory(self) -> tuple[IrValue, tuple[IrValue, IrValue]]:
        """For two blocks, at addresses that no vector is cut at."""
        b, each = self.b, self.told.room * (2 * self.kind.lanes)
        raw = b.call("ptr", "malloc", each * (2 * size_of(self.kind.type)) + ALIGNED)
        start = b.at(raw, (0 - b.convert("ptrtoint", raw, "i64")) & (ALIGNED - 1), "i8")
        return raw, (start, self.kind.at(start, each))
