"""Products of some rows by a matrix that is read where it lies, strip by strip of its columns. BLAS would copy it, and
that takes as long as multiplying it by a few rows.

Knows sizes when it runs, and how many rows are summed side by side when it is compiled.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import fields

from polyax_cpu import compiler, machine_code
from polyax_cpu.libraries import blocks
from polyax_cpu.libraries.blocks import BlockKind
from polyax_cpu.libraries.plane_code import between
from polyax_cpu.libraries.products import COLUMNS, NativeProduct
from polyax_cpu.llvm import Builder, IrValue, Module
from polyax_cpu.records import FUNCTION_PARAMS

FEW = 64
"""Rows, at most: copying takes little beside more of them."""
WIDE, LARGE = 64, 1 << 17
"""Columns and elements of the matrix, at least: BLAS has kernels for smaller ones, which copy nothing."""
TOGETHER = 8
"""Rows that are summed side by side, at most."""
SUMS = 24
"""Vectors of sums that registers hold beside what is multiplied."""
TERMS = 512
"""Of a strip that all rows meet before the next ones: it stays in a core's cache, and rounding stays small."""


def fits(product: NativeProduct, dtype: str) -> bool:
    """Whether a product is one of these, on this processor."""
    few = product.batch == 1 < product.m <= FEW and product.split == COLUMNS and not product.b_transposed
    large = product.n >= WIDE and product.n * product.k >= LARGE
    return few and large and dtype in blocks.TYPES and blocks.why_not() is None


def function(dtype: str, m: int) -> int:
    """The address of ``product(a, b, result; scalars, begin, end)`` for ``m`` rows, which counts columns."""
    groups = -(-m // TOGETHER)
    return _function(blocks.TYPES[dtype], -(-m // groups)).address("product")


@functools.cache
def _function(type: str, rows: int) -> compiler.LoadedCode:
    """For so many rows at a time."""
    module = Module(["product"])
    _Writer(module.function("void", "product", FUNCTION_PARAMS), type, rows).write()
    return machine_code.library(module.text(), ["product"], {}, level=1)


class _Writer:
    """Writes one loop for all strips and rows, as compiling another takes longer than most products."""

    def __init__(self, b: Builder, type: str, rows: int) -> None:
        buffers, scalars, self.begin, self.end = b.args
        numbers = (b.load(b.at(scalars, n, "i64"), "i64") for n in range(len(fields(NativeProduct))))
        told = {f.name: number for f, number in zip(fields(NativeProduct), numbers, strict=True)}
        self.m, self.n, self.k, self.by_term = (told[name] for name in ("m", "n", "k", "ldb"))
        plain, lda, one = told["a_transposed"].compare("==", 0), told["lda"], b.const(1, "i64")
        self.by_row, self.by_column = b.select(plain, lda, one), b.select(plain, one, lda)
        self.left, self.right, self.result = (b.load(b.at(buffers, n, "ptr"), "ptr") for n in range(3))
        self.b, self.kind, self.rows = b, BlockKind(type, rows, False, False), range(rows)
        self.vectors = range(SUMS // rows)

    def write(self) -> None:
        b, lanes = self.b, self.kind.lanes
        with b.loop(self.begin, self.end, step=len(self.vectors) * lanes) as column:
            some = [between(b, column + v * lanes, lanes, column, self.end) for v in self.vectors]
            with b.loop(0, self.k, step=TERMS) as start:
                stop = b.intrinsic("smin", start + TERMS, self.k)
                with b.loop(0, self.m, step=len(self.rows)) as row:
                    self._add(row, column, (start, stop), some)
        b.ret()

    def _add(self, row: IrValue, column: IrValue, terms: tuple[IrValue, IrValue], some: Sequence[IrValue]) -> None:
        """Adds up terms of some rows; the first ones are written. What is behind the last row is that again."""
        b, kind, lanes = self.b, self.kind, self.kind.lanes
        rows = [b.intrinsic("smin", row + n, self.m - 1) for n in self.rows]
        lefts = [kind.at(self.left, n * self.by_row) for n in rows]
        to = [(kind.at(self.result, n * self.n + column + v * lanes), some[v]) for n in rows for v in self.vectors]
        first, none = terms[0].compare("==", 0), b.splat(b.const(0.0, kind.type), lanes)

        def term(k: IrValue, carries: Sequence[IrValue]) -> Sequence[IrValue]:
            right = kind.at(self.right, k * self.by_term + column)
            return add_products(kind, [kind.at(left, k * self.by_column) for left in lefts], right, some, carries)

        before = [b.select(first, none, kind.load(*place)) for place in to]
        for x, place in zip(b.carry(*terms, before, term), to, strict=True):
            b.store_lanes(x, *place)


def add_products(
    kind: BlockKind, lefts: Sequence[IrValue], right: IrValue, some: Sequence[IrValue], sums: Sequence[IrValue]
) -> list[IrValue]:
    """``sums``, and the products of the single numbers at ``lefts`` and the vectors from ``right`` on, with the lanes
    that each has: all of the first row, then those of the next."""
    b = right.b
    seen = [kind.load(kind.at(right, v * kind.lanes), mask) for v, mask in enumerate(some)]
    factors = [b.splat(kind.single(left), kind.lanes) for left in lefts]
    pairs = [(x, factor) for factor in factors for x in seen]
    return [b.intrinsic("fma", *pair, old) for pair, old in zip(pairs, sums, strict=True)]
