"""Products by a matrix that is read where it lies, strip by strip of its columns: of a few rows by a large one, and of
many rows by a small one. BLAS copies both operands first. That takes as long as multiplying a large matrix by a few
rows, and the many rows are read, written and read again while a small one would be in the cache all the time.

Knows sizes when it runs, and how many rows are summed side by side when it is compiled.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import fields, replace

from polyax_cpu import compiler, machine_code
from polyax_cpu.libraries import registers
from polyax_cpu.libraries.products import COLUMNS, ROWS, NativeProduct
from polyax_cpu.libraries.registers import Vectors
from polyax_cpu.libraries.sums import IN_MANY, SumsKind, add_products, evenly, sums_kind
from polyax_cpu.llvm import Builder, IrValue, Module
from polyax_cpu.records import FUNCTION_PARAMS

FEW = 64
"""Rows, at most: copying takes little beside more of them."""
WIDE, LARGE = 64, 1 << 17
"""Columns and elements of a large matrix, at least: BLAS has kernels for smaller ones, which copy nothing."""
SMALL = 1 << 17
"""Elements of a small one, at most: it stays in a core's cache."""
TINY = 1_000_000
"""Products of numbers up to which BLAS copies nothing."""
TOGETHER = 8
"""Rows that are summed side by side, at most."""
BLOCK = 96
"""Rows that meet all strips before the next ones."""
TERMS = 512
"""Of a strip that all rows meet before the next ones: it stays in a core's cache, and rounding stays small."""


def fits(product: NativeProduct, dtype: str) -> bool:
    """Whether a product is one of these, on this processor."""
    if product.batch > 1 or product.b_transposed or dtype not in registers.TYPES or not registers.many():
        return False
    return _is_low(product) if product.split == COLUMNS else _is_tall(product, registers.lanes(registers.TYPES[dtype]))


def counted(product: NativeProduct) -> NativeProduct:
    """With each of its rows or columns counted: all sums begin with their first term, whoever adds them up."""
    return replace(product, unit=1, cuts=0)


def _is_low(product: NativeProduct) -> bool:
    """A few rows by a large matrix."""
    large = product.n >= WIDE and product.n * product.k >= LARGE
    return 1 < product.m <= FEW and large


def _is_tall(product: NativeProduct, lanes: int) -> bool:
    """Many rows by a small matrix, whose rows begin where vectors do, unless there is one strip of them."""
    small = product.n * product.k <= SMALL and (product.n % lanes == 0 or 1 < product.n <= IN_MANY.widths[0] * lanes)
    return product.m > FEW and small and product.m * product.n * product.k > TINY


def function(dtype: str, product: NativeProduct) -> int:
    """The address of ``product(a, b, result; scalars, begin, end)``, which counts rows of tall ones, else columns."""
    type = registers.TYPES[dtype]
    return _function(type, _kind(product, registers.lanes(type))).address("product")


def _kind(product: NativeProduct, lanes: int) -> SumsKind:
    if product.split == ROWS:
        return sums_kind(BLOCK, product.n, lanes, IN_MANY)
    rows = evenly(product.m, TOGETHER)
    return SumsKind(rows, IN_MANY.sums // rows)


@functools.cache
def _function(type: str, kind: SumsKind) -> compiler.LoadedCode:
    return machine_code.written(f"strips {type} {kind}", lambda: _text(type, kind), ["product"], {})


def _text(type: str, kind: SumsKind) -> str:
    module = Module(["product"])
    _Writer(module.function("void", "product", FUNCTION_PARAMS), type, kind).write()
    return module.text()


class _Writer:
    """Writes one loop for all strips and rows, as compiling another takes longer than most products."""

    def __init__(self, b: Builder, type: str, kind: SumsKind) -> None:
        buffers, scalars, begin, end = b.args
        numbers = (b.load(b.at(scalars, n, "i64"), "i64") for n in range(len(fields(NativeProduct))))
        told = {f.name: number for f, number in zip(fields(NativeProduct), numbers, strict=True)}
        m, self.n, self.k, self.by_term = (told[name] for name in ("m", "n", "k", "ldb"))
        by_rows = told["split"].compare("==", ROWS)
        self.rows_from, self.rows_to = b.select(by_rows, begin, 0), b.select(by_rows, end, m)
        self.columns_from, self.columns_to = b.select(by_rows, 0, begin), b.select(by_rows, self.n, end)
        plain, lda, one = told["a_transposed"].compare("==", 0), told["lda"], b.const(1, "i64")
        self.by_row, self.by_column = b.select(plain, lda, one), b.select(plain, one, lda)
        self.left, self.right, self.result = (b.load(b.at(buffers, n, "ptr"), "ptr") for n in range(3))
        self.b, self.kind, self.sums = b, Vectors(type), kind
        self.rows, self.vectors = range(kind.rows), range(kind.width)

    def write(self) -> None:
        b, lanes = self.b, self.kind.lanes
        with b.loop(self.rows_from, self.rows_to, step=BLOCK) as block:
            last = b.intrinsic("smin", block + BLOCK, self.rows_to)
            with b.loop(self.columns_from, self.columns_to, step=len(self.vectors) * lanes) as column:
                some = self.sums.lanes(b, self.kind, column, self.columns_to)
                with b.loop(0, self.k, step=TERMS) as start:
                    stop = b.intrinsic("smin", start + TERMS, self.k)
                    with b.loop(block, last, step=len(self.rows)) as row:
                        self._add(row, last, column, (start, stop), some)
        b.ret()

    def _add(
        self,
        row: IrValue,
        end: IrValue,
        column: IrValue,
        terms: tuple[IrValue, IrValue],
        some: Sequence[IrValue | None],
    ) -> None:
        """Adds up terms of some rows; the first ones are written. What is behind the last row is that again."""
        b, kind, lanes = self.b, self.kind, self.kind.lanes
        rows = [b.intrinsic("smin", row + n, end - 1) for n in self.rows]
        lefts = [kind.at(self.left, n * self.by_row) for n in rows]
        to = [(kind.at(self.result, n * self.n + column + v * lanes), some[v]) for n in rows for v in self.vectors]
        first, none = terms[0].compare("==", 0), kind.zero(b)

        def term(k: IrValue, carries: Sequence[IrValue]) -> Sequence[IrValue]:
            right = kind.at(self.right, k * self.by_term + column)
            return add_products(kind, [kind.at(left, k * self.by_column) for left in lefts], right, some, carries)

        before = [b.select(first, none, kind.load(*place)) for place in to]
        for x, place in zip(b.carry(*terms, before, term), to, strict=True):
            b.store_lanes(x, *place)
