"""Squares of memory turned around in registers. Knows no kernels."""

from __future__ import annotations

from collections.abc import Sequence

from polyax_cpu.llvm import Builder, IrValue, size_of

MOST = 16
"""Rows that are turned at once: as many registers as there are to spare."""
UNPACKED = 16
"""Bytes of vectors of which one instruction interleaves two."""
SIDE = 4
"""Of squares of matrices whose sizes aren't known."""


def transpose(
    b: Builder,
    source: IrValue,
    pitch: int,
    target: IrValue,
    side: int,
    type: str,
    sizes: tuple[IrValue, IrValue] | None = None,
) -> None:
    """``target[i * side + j] = source[j * pitch + i]`` for ``i`` and ``j`` below ``side``, a power of two.

    ``sizes``: they are below these; the rest of the last squares in registers is written as well, but not read.
    """
    count, zero = min(side, _at_once(type)), b.const(0, "i64")
    rows, columns = sizes or (b.const(side, "i64"),) * 2
    with b.loop(zero, rows, step=count) as row, b.loop(zero, columns, step=count) as column:
        first = b.at(source, column * pitch + row, type)
        if sizes is None:
            mask, places = None, [b.const(n, "i64") for n in range(count)]
        else:
            mask = _below(b, rows - row, count)
            places = [b.intrinsic("smin", b.const(n, "i64"), columns - column - 1) for n in range(count)]
        none = b.const(0, type)
        read = [b.load_lanes(b.at(first, n * pitch, type), type, count, mask, none) for n in places]
        last = b.at(target, row * side + column, type)
        for n, vector in enumerate(turned(b, read)):
            b.store_lanes(vector, b.at(last, n * side, type), None)


def _at_once(type: str) -> int:
    """Rows of a square in registers: of narrow elements as many as one instruction interleaves."""
    return MOST if size_of(type) > UNPACKED // 8 else UNPACKED // size_of(type)


def _below(b: Builder, end: IrValue, count: int) -> IrValue:
    """The lanes whose numbers are below ``end``."""
    left = b.convert("trunc", b.intrinsic("smin", end, b.const(count, "i64")), "i8")
    return b.test("icmp ugt", left, b.numbers(range(count), "i8"))


Pitched = tuple[IrValue, IrValue]
"""A pointer, and how far apart the rows are there."""


def transpose_any(b: Builder, source: Pitched, target: Pitched, sizes: tuple[IrValue, IrValue], type: str) -> None:
    """``target[i, j] = source[j, i]`` for ``i`` and ``j`` below ``sizes``, which are known when the code runs: by
    squares, and what is left one by one."""
    rows, columns = sizes
    in_squares = rows & -SIDE, columns & -SIDE
    at = lambda matrix, i, j: b.at(matrix[0], i * matrix[1] + j, type)
    with b.loop(0, in_squares[1], step=SIDE) as j, b.loop(0, in_squares[0], step=SIDE) as i:
        read = [b.load_lanes(at(source, j + n, i), type, SIDE, None, b.const(0, type)) for n in range(SIDE)]
        for n, vector in enumerate(turned(b, read)):
            b.store_lanes(vector, at(target, i + n, j), None)
    zero = b.const(0, "i64")
    for from_row, from_column, to_column in ((in_squares[0], zero, in_squares[1]), (zero, in_squares[1], columns)):
        with b.loop(from_column, to_column) as j, b.loop(from_row, rows) as i:
            b.store(b.load(at(source, j, i), type), at(target, i, j))


def turned(b: Builder, rows: Sequence[IrValue]) -> list[IrValue]:
    """The columns of a square of vectors: for each power of two, squares of that size change places across the
    diagonal of those of twice the size (Eklundh, 1972)."""
    vectors, count = list(rows), len(rows)
    if size_of(rows[0].type) * count <= UNPACKED:
        return _interleaved(b, vectors)
    for near in (1 << k for k in range(count.bit_length() - 1)):
        upper = [n if not n & near else count + n - near for n in range(count)]
        lower = [n + near if not n & near else count + n for n in range(count)]
        for n in range(count):
            if not n & near:
                x, y = vectors[n], vectors[n + near]
                vectors[n], vectors[n + near] = b.mixed(x, y, upper), b.mixed(x, y, lower)
    return vectors


def _interleaved(b: Builder, vectors: list[IrValue]) -> list[IrValue]:
    """The columns: each step interleaves vectors that are half of them apart, whose numbers are rotated by a bit."""
    count = len(vectors)
    half = count // 2
    orders = [[start + n // 2 + count * (n % 2) for n in range(count)] for start in (0, half)]
    for _ in range(count.bit_length() - 1):
        pairs = [(vectors[n], vectors[n + half]) for n in range(half)]
        vectors = [b.mixed(x, y, order) for x, y in pairs for order in orders]
    return vectors
