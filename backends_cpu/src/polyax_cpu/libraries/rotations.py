"""What methods of rotations are made of, for many small matrices at a time: each lane of a vector turns a matrix of its
own, pair after pair of columns, until nothing is left to turn.

Lanes that are done turn nothing more, so that no bit of a result depends on which matrices share a vector. What isn't
finite has results of NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from polyax_cpu.libraries.interleaved import Interleaved, lanes, swap
from polyax_cpu.libraries.routines import RoutineWriter
from polyax_cpu.llvm import BITS, IrValue

SWEEPS = 30
"""Of all pairs of columns. Ten are many: the last ones square what is left each time."""
DIGITS = {"float": 24, "double": 53}
"""Of a number's fraction, in bits."""
EXPONENT = {"float": 0x7F800000, "double": 0x7FF0000000000000}
"""The bits of a number that say of which power of two it is a multiple."""
LEAST_POWER = {"float": 2.0**-126, "double": 2.0**-1022}


@dataclass(frozen=True)
class Columns:
    """Matrices whose rows and columns are so far apart."""

    stack: Interleaved
    by_row: IrValue | int
    by_column: IrValue | int

    def at(self, i: IrValue, j: IrValue) -> IrValue:
        return i * self.by_row + j * self.by_column

    def __getitem__(self, place: tuple[IrValue, IrValue]) -> IrValue:
        return self.stack[self.at(*place)]

    def __setitem__(self, place: tuple[IrValue, IrValue], value: IrValue) -> None:
        self.stack[self.at(*place)] = value


class PlaneRotation(NamedTuple):
    """Of pairs of numbers: ``x - s (y + h x)`` and ``y + s (x - h y)``, where ``h`` is the tangent of half the angle.

    That keeps sums of squares better than products with a rounded cosine.
    """

    tangent: IrValue
    sine: IrValue
    half: IrValue

    @classmethod
    def diagonalizing(cls, gap: IrValue, beside: IrValue, chosen: IrValue) -> PlaneRotation:
        """By the lesser of the two angles that make ``beside`` zero, which two numbers of such a ``gap`` have beside
        them in a symmetric matrix; by none where it isn't ``chosen``."""
        b = gap.b
        ratio = gap / (beside * 2.0)
        root = b.intrinsic("sqrt", b.intrinsic("fma", ratio, ratio, ratio.like(1.0)))
        tangent = b.select(chosen, 1.0 / (ratio + b.intrinsic("copysign", root, ratio)), 0.0)
        cosine = 1.0 / b.intrinsic("sqrt", b.intrinsic("fma", tangent, tangent, tangent.like(1.0)))
        sine = tangent * cosine
        return cls(tangent, sine, sine / (cosine + 1.0))

    def turn(self, stack: Interleaved, n: IrValue, m: IrValue) -> None:
        """The elements with these numbers."""
        fma, x, y = stack.b.intrinsic, stack[n], stack[m]
        stack[n] = fma("fma", -self.sine, fma("fma", self.half, x, y), x)
        stack[m] = fma("fma", self.sine, fma("fma", -self.half, y, x), y)

    def turn_columns(self, x: Columns, p: IrValue, q: IrValue, rows: IrValue) -> None:
        with x.stack.b.loop(0, rows) as i:
            self.turn(x.stack, x.at(i, p), x.at(i, q))


def sweep(w: RoutineWriter, n: IrValue, visit: Callable[[IrValue, IrValue, IrValue], IrValue]) -> IrValue:
    """Visits all pairs ``p < q`` of ``n`` columns until nothing turns any more. ``visit`` says which of the active
    lanes have turned; the result, which still do."""
    b, zero, count = w.b, w.b.const(0, "i64"), lanes(w.letter)
    none, every = (b.splat(b.const(value, "i1"), count) for value in (False, True))

    def sweep(carries: list[IrValue]) -> list[IrValue]:
        number, active = carries

        def with_later(p: IrValue, turned: list[IrValue]) -> list[IrValue]:
            return b.carry(p + 1, n, turned, lambda q, turned: [turned[0] | visit(p, q, active)])

        return [number + 1, *b.carry(zero, n, [none], with_later)]

    return b.turns([zero, every], lambda c: b.any(c[1]) & (c[0] < SWEEPS), sweep)[1]


def scale(
    w: RoutineWriter, x: Columns, rows: IrValue, columns: Callable[[IrValue], IrValue]
) -> tuple[IrValue, IrValue]:
    """Divides matrices by the power of two that makes their largest element one to two, so that no square overflows;
    that power, and in which lanes there is what isn't finite, which is zero from now on."""
    b, type, zero = w.b, x.stack.type, w.b.const(0, "i64")
    nothing = b.splat(b.const(0.0, type), x.stack.lanes)

    def row(i: IrValue, found: list[IrValue]) -> list[IrValue]:
        def element(j: IrValue, found: list[IrValue]) -> list[IrValue]:
            largest, wrong = found
            return [
                b.intrinsic("maxnum", largest, b.intrinsic("fabs", x[i, j])),
                b.intrinsic("fma", x[i, j], nothing, wrong),
            ]

        return b.carry(zero, columns(i), found, element)

    largest, wrong = b.carry(zero, rows, [nothing, nothing], row)
    failed = wrong.compare("!=", 0.0)
    bits = b.convert("bitcast", largest, f"i{BITS[type]}") & EXPONENT[type]
    power = b.intrinsic("maxnum", b.convert("bitcast", bits, type), nothing.like(LEAST_POWER[type]))
    factor = 1.0 / power
    with b.loop(0, rows) as i, b.loop(0, columns(i)) as j:
        x[i, j] = b.select(failed, 0.0, x[i, j] * factor)
    return power, failed


def identity(x: Columns, rows: IrValue, columns: IrValue) -> None:
    b, type = x.stack.b, x.stack.type
    with b.loop(0, rows) as i, b.loop(0, columns) as j:
        x[i, j] = b.select(i.compare("==", j), b.const(1.0, type), b.const(0.0, type))


def sort(
    w: RoutineWriter,
    values: Interleaved,
    count: IrValue,
    *,
    ascending: bool,
    others: Sequence[tuple[Columns, IrValue]] = (),
) -> None:
    """Values; and the columns of ``others``, which have so many rows, as these."""
    b = w.b
    with b.loop(0, count) as i, b.loop(i + 1, count) as j:
        chosen = values[i].compare(">" if ascending else "<", values[j])
        with b.when(b.any(chosen)):
            swap(values, i, j, chosen)
            for x, rows in others:
                with b.loop(0, rows) as row:
                    swap(x.stack, x.at(row, i), x.at(row, j), chosen)


def spoil(failed: IrValue, *stacks: tuple[Interleaved, IrValue]) -> None:
    b = failed.b
    with b.when(b.any(failed)):
        for stack, size in stacks:
            with b.loop(0, size) as n:
                stack[n] = b.select(failed, math.nan, stack[n])
