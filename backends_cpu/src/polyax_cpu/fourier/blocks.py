"""Blocks of as many lines as vectors have lanes, read from arrays and written to them.

Lines whose elements are neighbours are turned by squares in registers, neighbouring lines are read by vectors; what is
left of both, and lines that lie otherwise, goes element by element. Lanes behind the last line take that one again.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from polyax_cpu import compiler, machine_code
from polyax_cpu.fourier.passes import Lanes
from polyax_cpu.libraries.registers import Vectors
from polyax_cpu.llvm import Builder, IrValue, Module
from polyax_cpu.transposes import turned

N = TypeVar("N")


class LineSide(NamedTuple, Generic[N]):
    """Where lines lie in an operand or a result. Distances are in numbers, each of which has so many ``parts``: complex
    ones two. ``group`` lines are ``line`` apart, groups ``apart``."""

    elements: N
    """Of a line."""
    group: N
    apart: N
    line: N
    element: N
    parts: N


PARAMS = [
    *[("ptr", name) for name in ("memory", "buffer", "side")],
    *[("i64", name) for name in ("row", "first", "lines", "swapped", "scale")],
]
READ, WRITE = "read", "write"


def address(type: str, name: str) -> int:
    """Of the function that reads or writes a block on one ``side``: from line ``first`` on of a ``row`` of ``lines``.

    In memory, part ``k`` of elements is at ``k`` vectors if nothing is ``swapped``, at ``1 - k`` if that is 1.
    ``scale`` is a double, as bits: what is written is multiplied by it.
    """
    return _function(type, name).address(name)


@functools.cache
def _function(type: str, name: str) -> compiler.LoadedCode:
    return machine_code.written(f"transforms {type} {name}", lambda: text(type, name), [name], {})


def text(type: str, name: str) -> str:
    module = Module([name])
    b = module.function("void", name, PARAMS)
    block = _Block(b, Vectors(type))
    block.read() if name == READ else block.write()
    b.ret()
    return module.text()


class _Block:
    """Writes one of the functions."""

    def __init__(self, b: Builder, kind: Vectors) -> None:
        self.b, self.kind, self.lanes = b, kind, Lanes(b, kind)
        self.memory, buffer, told, row, first, lines, self.swapped, self.scale = b.args
        numbers = [b.load(b.at(told, n, "i64"), "i64") for n in range(len(LineSide._fields))]
        self.side = side = LineSide(*numbers)
        self.pitch, self.pointers = side.element * side.parts, b.alloca("ptr", kind.lanes)
        with b.loop(0, b.const(kind.lanes, "i64")) as lane:
            number = row * lines + b.intrinsic("smin", first + lane, lines - 1)
            b.store(self._line(buffer, number), b.at(self.pointers, lane, "ptr"))
        self.by_squares = side.element.compare("==", 1)
        neighbours = side.line.compare("==", 1) & side.group.compare("==", lines) & (first + kind.lanes <= lines)
        self.by_vectors = neighbours & side.parts.compare("==", 2) & ~self.by_squares

    def _line(self, buffer: IrValue, number: IrValue) -> IrValue:
        side, group = self.side, number / self.side.group
        offset = group * side.apart + (number - group * side.group) * side.line
        return self.kind.at(buffer, offset * side.parts)

    def _pointer(self, lane: IrValue | int) -> IrValue:
        return self.b.load(self.b.at(self.pointers, lane, "ptr"), "ptr")

    def _part(self, n: IrValue, which: IrValue | int) -> IrValue:
        """Where a part of element ``n`` of all lines is."""
        return self.kind.at(self.lanes.at(self.memory, n), (self.swapped ^ which) * self.kind.lanes)

    def _each(self, squares: Callable[[IrValue, IrValue], None], vectors: Callable[[IrValue], None]) -> IrValue:
        """Writes both fast ways, which are taken if they can; returns what is the first element that is left."""
        b, width, count = self.b, self.kind.lanes, self.side.elements
        left = b.alloca("i64")
        b.store(b.const(0, "i64"), left)
        with b.when(self.by_squares):
            most = b.const(width, "i64") / self.side.parts
            whole = count / most * most
            with b.loop(0, whole, step=most) as n:
                squares(n, most)
            b.store(whole, left)
        with b.when(self.by_vectors):
            with b.loop(0, count) as n:
                vectors(n)
            b.store(count, left)
        return b.load(left, "i64")

    def _of_square(self, n: IrValue) -> list[IrValue]:
        """Where the columns of a square lie: the parts of elements in turns, or real ones alone."""
        b, width = self.b, self.kind.lanes
        complex_ = self.side.parts.compare("==", 2)
        apart = b.select(complex_, b.const(2 * width, "i64"), 4 * width)
        second = b.select(complex_, (1 - self.swapped * 2) * width, b.const(2 * width, "i64"))
        at = self._part(n, 0)
        firsts = [self.kind.at(at, apart * k) for k in range(width // 2)]
        return [x for first in firsts for x in (first, self.kind.at(first, second))]

    def _one_by_one(self, left: IrValue, move: Callable[[IrValue, IrValue, IrValue, int], None]) -> None:
        """Code for each element from ``left`` on: where it is in the array and in memory, its lane, and each part."""
        b, side = self.b, self.side
        with b.loop(0, b.const(self.kind.lanes, "i64")) as lane:
            pointer = self._pointer(lane)
            with b.loop(left, side.elements) as n:
                at = self.kind.at(pointer, n * self.pitch)
                move(at, n, lane, 0)
                with b.when(side.parts.compare("==", 2)):
                    move(self.kind.at(at, 1), n, lane, 1)

    # --- reading ---

    def read(self) -> None:
        """Into memory, interleaved."""
        b, kind, pitch = self.b, self.kind, self.pitch
        zero = kind.zero(b)
        with b.when(self.side.parts.compare("==", 1)), b.loop(0, self.side.elements) as n:
            b.store_lanes(zero, self._part(n, 1), None)

        def squares(n: IrValue, _: IrValue) -> None:
            rows = [kind.load(kind.at(self._pointer(lane), n * pitch)) for lane in range(kind.lanes)]
            for column, at in zip(turned(b, rows), self._of_square(n), strict=True):
                b.store_lanes(column, at, None)

        def vectors(n: IrValue) -> None:
            at, places = kind.at(self._pointer(0), n * pitch), range(0, 2 * kind.lanes, 2)
            x, y = kind.load(at), kind.load(kind.at(at, kind.lanes))
            for which in range(2):
                b.store_lanes(b.mixed(x, y, [k + which for k in places]), self._part(n, which), None)

        def move(at: IrValue, n: IrValue, lane: IrValue, which: int) -> None:
            b.store(kind.single(at), kind.at(self._part(n, which), lane))

        self._one_by_one(self._each(squares, vectors), move)

    # --- writing ---

    def write(self) -> None:
        b, kind, pitch = self.b, self.kind, self.pitch
        one = b.convert("bitcast", self.scale, "double")
        one = one if kind.type == "double" else b.convert("fptrunc", one, kind.type)
        scale = b.splat(one, kind.lanes)

        def squares(n: IrValue, _: IrValue) -> None:
            columns = [kind.load(at) * scale for at in self._of_square(n)]
            for lane, row in enumerate(turned(b, columns)):
                b.store_lanes(row, kind.at(self._pointer(lane), n * pitch), None)

        def vectors(n: IrValue) -> None:
            at, width = kind.at(self._pointer(0), n * pitch), kind.lanes
            x, y = (kind.load(self._part(n, which)) * scale for which in range(2))
            order = [k // 2 + width * (k % 2) for k in range(2 * width)]
            for k in (0, width):
                b.store_lanes(b.mixed(x, y, order[k : k + width]), kind.at(at, k), None)

        def move(at: IrValue, n: IrValue, lane: IrValue, which: int) -> None:
            b.store(kind.single(kind.at(self._part(n, which), lane)) * one, at)

        self._one_by_one(self._each(squares, vectors), move)
