"""What the code of convolutions in planes shares: the numbers that it is told, the parts that it is to compute, and the
rows of planes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from polyax_cpu.convolutions.planes import SPATIAL, PlaneDimension, PlaneHead, PlaneNumbers
from polyax_cpu.libraries.registers import digit
from polyax_cpu.llvm import IrValue, Module
from polyax_cpu.records import FUNCTION_PARAMS

ALIGNED = 64
"""Bytes: vectors then lie in one line of the cache each."""


class Told:
    """The numbers that native code is told: ``told.groups``, and ``told[n].places`` of a dimension."""

    def __init__(self, scalars: IrValue, fields: Sequence[str] = PlaneNumbers._fields, first: int = 0) -> None:
        self._scalars, self._fields, self._first = scalars, fields, first

    def __getattr__(self, name: str) -> IrValue:
        b = self._scalars.b
        return b.load(b.at(self._scalars, self._first + self._fields.index(name), "i64"), "i64")

    def __getitem__(self, n: int) -> Told:
        return Told(self._scalars, PlaneDimension._fields, len(PlaneNumbers._fields) + n * len(PlaneDimension._fields))

    def each(self, name: str) -> list[IrValue]:
        """Of every dimension."""
        return [getattr(self[n], name) for n in range(SPATIAL)]

    def rest(self, dimensions: int = 0) -> IrValue:
        """Where the numbers behind all fields are."""
        first = len(self._fields) + dimensions * len(PlaneDimension._fields)
        return self._scalars.b.at(self._scalars, first, "i64")


class PartAt(NamedTuple):
    """A part of a group of an image, or of a phase of it: where its operand, weights and results begin, and memory for
    its planes; its first places and how many there are; its numbers, and where they are."""

    source: IrValue
    weights: IrValue
    result: IrValue
    planes: IrValue
    group: IrValue
    firsts: Sequence[IrValue]
    counts: Sequence[IrValue]
    told: Told
    scalars: IrValue


def convolve(module: Module, type: str, compute: Callable[[PartAt], None]) -> None:
    """``convolve(operand, weights, result; scalars, begin, end)``, which counts parts, each of which is computed."""
    b = module.function("void", "convolve", FUNCTION_PARAMS)
    buffers, scalars, begin, end = b.args
    source, weights, result = (b.load(b.at(buffers, n, "ptr"), "ptr") for n in range(3))
    head = Told(scalars, PlaneHead._fields)
    phases, starts, taken = head.phases, head.rest(), b.call("ptr", "malloc", head.nbytes + ALIGNED)
    address = (b.convert("ptrtoint", taken, "i64") + (ALIGNED - 1)) & -ALIGNED
    memory = b.convert("inttoptr", address, "ptr")
    with b.loop(begin, end) as number:
        rest, phase = digit(number, phases)
        numbers = b.at(scalars, b.load(b.at(starts, phase, "i64"), "i64"), "i64")
        told = Told(numbers)
        rest, firsts, counts = _places(rest, told)
        image, group = digit(rest, told.groups)
        at = image * told.source_item + group * told.source_group
        to = image * told.result_item + group * told.result_group + told.result_first
        for first, by in zip(firsts, told.each("result_by"), strict=True):
            to = to + first * by
        place = b.at(source, at, type), weights, b.at(result, to, type), memory, group
        with b.when((counts[0] > 0) & (counts[1] > 0) & (counts[2] > 0)):
            compute(PartAt(*place, firsts, counts, told, numbers))
    b.call("void", "free", taken)
    b.ret()


def _places(number: IrValue, told: Told) -> tuple[IrValue, list[IrValue], list[IrValue]]:
    """What remains of a number; the first places of the part that it counts, and how many there are."""
    firsts, counts = list[IrValue](), list[IrValue]()
    for n in reversed(range(SPATIAL)):
        number, cut = digit(number, told[n].cuts)
        firsts.insert(0, cut * told[n].part)
        counts.insert(0, number.b.intrinsic("smin", told[n].part, told[n].places - firsts[0]))
    return number, firsts, counts


class PlaneRow(NamedTuple):
    """A row of a plane: where its first element is in the operand, and is to be; which of its elements are there."""

    source: IrValue
    target: IrValue
    begin: IrValue
    end: IrValue


def plane_rows(
    type: str,
    source: IrValue,
    plane: IrValue,
    told: Told,
    firsts: Sequence[IrValue],
    copy: Callable[[PlaneRow], None],
    pitch: IrValue | int = 1,
) -> None:
    """Every row of a plane, whose places have ``pitch`` elements, in the order of its memory: vectors may reach behind
    rows."""
    b, zero = source.b, source.b.const(0, "i64")
    (s0, s1, s2), (n0, n1, n2), (e0, e1, e2) = told.each("stride"), told.each("length"), told.each("source")
    by0, by1, by2 = told.each("source_by")
    o0, o1, o2 = (f * s - low for f, s, low in zip(firsts, (s0, s1, s2), told.each("low"), strict=True))
    steps = lambda x: b.intrinsic("smin", (b.intrinsic("smax", x, zero) + s2 - 1) / s2, n2)
    with b.loop(0, s0) as r0, b.loop(0, s1) as r1, b.loop(0, s2) as r2:
        residue, first = ((r0 * s1 + r1) * s2 + r2) * n0, o2 + r2
        begin, end = steps(0 - first), steps(e2 - first)
        with b.loop(0, n0) as i0, b.loop(0, n1) as i1:
            at0, at1 = o0 + r0 + i0 * s0, o1 + r1 + i1 * s1
            inside = (at0 >= 0) & (at0 < e0) & (at1 >= 0) & (at1 < e1)
            at = b.select(inside, at0 * by0 + at1 * by1, 0) + first * by2
            to = ((residue + i0) * n1 + i1) * n2
            copy(PlaneRow(b.at(source, at, type), b.at(plane, to * pitch, type), begin, b.select(inside, end, begin)))
