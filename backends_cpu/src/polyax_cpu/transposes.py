"""Squares of memory turned around in registers. Knows no kernels."""

from __future__ import annotations

from collections.abc import Sequence

from polyax_cpu.llvm import Builder, IrValue

MOST = 16
"""Rows that are turned at once: as many registers as there are to spare."""


def transpose(b: Builder, source: IrValue, pitch: int, target: IrValue, side: int, type: str) -> None:
    """``target[i * side + j] = source[j * pitch + i]`` for ``i`` and ``j`` below ``side``, a power of two."""
    count = min(side, MOST)
    zero, end = b.const(0, "i64"), b.const(side, "i64")
    with b.loop(zero, end, step=count) as row, b.loop(zero, end, step=count) as column:
        first = b.at(source, column * pitch + row, type)
        read = [b.load_lanes(b.at(first, n * pitch, type), type, count, None, b.const(0, type)) for n in range(count)]
        last = b.at(target, row * side + column, type)
        for n, vector in enumerate(turned(b, read)):
            b.store_lanes(vector, b.at(last, n * side, type), None)


def turned(b: Builder, rows: Sequence[IrValue]) -> list[IrValue]:
    """The columns of a square of vectors: for each power of two, squares of that size change places across the
    diagonal of those of twice the size (Eklundh, 1972)."""
    vectors, count = list(rows), len(rows)
    for near in (1 << k for k in range(count.bit_length() - 1)):
        upper = [n if not n & near else count + n - near for n in range(count)]
        lower = [n + near if not n & near else count + n for n in range(count)]
        for n in range(count):
            if not n & near:
                x, y = vectors[n], vectors[n + near]
                vectors[n], vectors[n + near] = b.mixed(x, y, upper), b.mixed(x, y, lower)
    return vectors
