"""Sums of products in registers: of some rows, each by vectors of columns that all of them meet.

Knows no arrays' shapes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from polyax_cpu.libraries import registers
from polyax_cpu.libraries.registers import Vectors, between
from polyax_cpu.llvm import Builder, IrValue

LATENCY = 8
"""Products that are begun before the sum with the first one is there."""


class SumsInRegisters(NamedTuple):
    """Vectors of sums that registers hold beside what is multiplied, and vectors of columns that are summed side by
    side, of so many rows that the sums fill the registers."""

    sums: int
    widths: tuple[int, ...]


IN_MANY, IN_FEW = SumsInRegisters(24, (4, 3, 2, 1)), SumsInRegisters(12, (3, 2, 1))


class SumsKind(NamedTuple):
    """How many rows and vectors of columns are summed side by side."""

    rows: int
    width: int
    whole: bool = False
    """Whether there are columns for all lanes of all vectors: to load some lanes takes some processors a port that
    multiplies."""

    def lanes(self, b: Builder, kind: Vectors, first: IrValue, end: IrValue) -> list[IrValue | None]:
        """The lanes that each vector from the column ``first`` on has; None: all of them."""
        starts = [first + v * kind.lanes for v in range(self.width)]
        return [None if self.whole else between(b, at, kind.lanes, first, end) for at in starts]


def sums_kind(rows: int, columns: int, lanes: int, held: SumsInRegisters | None = None) -> SumsKind:
    """Which takes the least time: what is computed for nothing counts, loads do, and that each sum waits for its last
    product. ``held``: what registers hold, if not those of this processor."""
    held, vectors = held or (IN_MANY if registers.many() else IN_FEW), -(-columns // lanes)
    kinds = [SumsKind(evenly(rows, held.sums // width), width) for width in held.widths if width <= vectors]

    def cycles(kind: SumsKind) -> int:
        each = max(kind.rows * kind.width, kind.rows + kind.width, LATENCY)
        return -(-rows // kind.rows) * -(-vectors // kind.width) * each

    kind = min(kinds, key=cycles)
    return kind._replace(whole=columns % (kind.width * lanes) == 0)


def evenly(count: int, most: int) -> int:
    """How much parts have that are at most so large."""
    return -(-count // -(-count // most))


def add_products(
    kind: Vectors, lefts: Sequence[IrValue], right: IrValue, some: Sequence[IrValue | None], sums: Sequence[IrValue]
) -> list[IrValue]:
    """``sums``, and the products of the single numbers at ``lefts`` and the vectors from ``right`` on, with the lanes
    that each has: all of the first row, then those of the next."""
    b = right.b
    seen = [kind.load(kind.at(right, v * kind.lanes), mask) for v, mask in enumerate(some)]
    factors = [b.splat(kind.single(left), kind.lanes) for left in lefts]
    pairs = [(x, factor) for factor in factors for x in seen]
    return [b.intrinsic("fma", *pair, old) for pair, old in zip(pairs, sums, strict=True)]
