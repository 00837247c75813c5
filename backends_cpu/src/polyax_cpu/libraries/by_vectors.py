"""Products of a small matrix and a vector as code in the place of a library's call: rows or columns are vectors, which
LLVM keeps in registers. Calling BLAS takes longer than computing them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from polyax_cpu.libraries.products import NativeProduct
from polyax_cpu.llvm import Builder, IrValue, size_of
from polyax_cpu.processors import host

MULTIPLICATIONS = 1024
"""Of more, the call takes no longer."""
LONGEST = 64
"""Elements of a row or a column."""


@dataclass(frozen=True)
class ByVector:
    """Each of ``rows`` results is the sum of ``terms``. ``turned``: the matrix is stored by columns, ``apart``;
    ``first``: it is the first operand."""

    rows: int
    terms: int
    apart: int
    turned: bool
    first: bool
    type: str

    @property
    def work(self) -> int:
        return 4 * (self.terms if self.turned else self.rows)

    def write(self, b: Builder, pointers: Sequence[IrValue]) -> None:
        matrix, x = pointers[:2] if self.first else (pointers[1], pointers[0])
        vector = self.load(b, x, 0, self.terms)
        find = self.by_columns if self.turned else self.by_rows
        total = find(b, matrix, vector)
        b.store_lanes(b.part(total, 0, self.rows), pointers[2], None)

    def load(self, b: Builder, pointer: IrValue, start: int, count: int) -> IrValue:
        """Elements, and zeros up to a power of two."""
        zero = b.const(0.0, self.type)
        found = b.load_lanes(b.at(pointer, start, self.type), self.type, count, None, zero)
        lanes = _power(count)
        return found if lanes == count else b.mixed(found, b.splat(zero, count), [min(n, count) for n in range(lanes)])

    def by_columns(self, b: Builder, matrix: IrValue, x: IrValue) -> IrValue:
        """Two sums, neither of which waits for each product."""
        sums = list[IrValue]()
        for n in range(self.terms):
            column, factor = self.load(b, matrix, n * self.apart, self.rows), b.lane(x, n)
            if n < 2:
                sums.append(b.splat(factor, column.lanes) * column)
            else:
                sums[n % 2] = b.intrinsic("fma", factor, column, sums[n % 2])
        return sums[0] if len(sums) < 2 else sums[0] + sums[1]

    def by_rows(self, b: Builder, matrix: IrValue, x: IrValue) -> IrValue:
        width = host().vector_bits // (8 * size_of(self.type))
        rows = [self.product(b, self.load(b, matrix, n * self.apart, self.terms), x, width) for n in range(self.rows)]
        rows += rows[-1:] * (_power(self.rows) - self.rows)
        together = rows[0].lanes
        found = [_totals(b, rows[n : n + together]) for n in range(0, len(rows), together)]
        return b.joined(found)

    def product(self, b: Builder, row: IrValue, x: IrValue, width: int) -> IrValue:
        """Of no more lanes than a register has."""
        lanes = min(width, row.lanes)
        total = b.part(row, 0, lanes) * b.part(x, 0, lanes)
        for n in range(lanes, row.lanes, lanes):
            total = b.intrinsic("fma", b.part(row, n, lanes), b.part(x, n, lanes), total)
        return total


def _power(count: int) -> int:
    return 1 << (count - 1).bit_length()


def _totals(b: Builder, rows: Sequence[IrValue]) -> IrValue:
    """The sums of the lanes of vectors, which are no more than they have lanes: neighbours are added, of two vectors at
    a time, until each has one lane."""
    rows, count = list(rows), len(rows)
    while len(rows) > 1:
        rows = [_neighbours(b, x, y) for x, y in zip(rows[::2], rows[1::2], strict=True)]
    (total,) = rows
    while total.lanes > count:
        even, odd = ([*range(start, total.lanes, 2)] for start in (0, 1))
        total = (
            b.shuffled(total, even) + b.shuffled(total, odd) if len(even) > 1 else b.lane(total, 0) + b.lane(total, 1)
        )
    return total


def _neighbours(b: Builder, x: IrValue, y: IrValue) -> IrValue:
    even, odd = (range(start, 2 * x.lanes, 2) for start in (0, 1))
    return b.mixed(x, y, even) + b.mixed(x, y, odd)


def by_vector(p: NativeProduct, type: str) -> ByVector | None:
    """The code for a product, if it is one of a small matrix and a vector."""
    small = p.m * p.n * p.k <= MULTIPLICATIONS and max(p.m, p.n, p.k) <= LONGEST
    if p.batch != 1 or min(p.m, p.n) != 1 or not small:
        return None
    first = p.n == 1
    step = (1 if p.b_transposed else p.ldb) if first else (p.lda if p.a_transposed else 1)
    if step != 1 and p.k > 1:
        return None
    turned = bool(p.a_transposed) if first else not p.b_transposed
    return ByVector(p.m if first else p.n, p.k, p.lda if first else p.ldb, turned, first, type)
