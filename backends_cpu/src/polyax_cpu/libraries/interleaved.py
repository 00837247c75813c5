"""Factors of many small matrices at a time: each lane of a vector works on a matrix of its own.

The elements that as many matrices have at the same place lie next to each other while they are worked on. What is
computed is what ``small`` computes, in loops over any size. Knows how such functions are called, as ``routines`` does.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Generator, Sequence

from polyax.ir.aval import ShapedArray
from polyax_cpu import processors
from polyax_cpu.libraries.routines import PARTS, Number, RoutineWriter
from polyax_cpu.llvm import BITS, IrValue
from polyax_cpu.transposes import turned

ROWS = 32
"""Of larger matrices, not as many as there are lanes stay in the caches near a core: LAPACK is as fast for them."""
LETTERS = ("s", "d")
"""By which routines of LAPACK for numbers of such types begin."""


def lanes(letter: str) -> int:
    """How many matrices there are at a time."""
    return processors.host().vector_bits // BITS[PARTS[letter]]


def fits(args: Sequence[ShapedArray], letter: str) -> bool:
    """Whether there are enough matrices, and these small enough."""
    count, elements = math.prod(args[0].shape[:-2]), math.prod(args[-1].shape[-2:])
    small = max(args[0].shape[-2:]) <= ROWS and elements <= ROWS * ROWS
    return letter in LETTERS and small and count >= lanes(letter)


class Interleaved:
    """As many matrices of ``size`` elements as there are lanes, and their elements in memory, interleaved.

    They come from the buffer with the number ``source``, and end in the one with the number ``target``.
    """

    def __init__(self, w: RoutineWriter, size: IrValue, source: int | None, target: int | None, type: str = "") -> None:
        self.b, self.size, self.type, self.lanes = w.b, size, type or PARTS[w.letter], lanes(w.letter)
        self._source, self._target = (None if n is None else w.buffers[n] for n in (source, target))
        self._memory = self.b.alloca(self.type, ROWS * ROWS * self.lanes)

    def __getitem__(self, n: IrValue) -> IrValue:
        """The elements number ``n`` of all matrices."""
        return self._loaded(self._at(n))

    def __setitem__(self, n: IrValue, value: IrValue) -> None:
        self.b.store_lanes(self.b.splat(value, self.lanes), self._at(n), None)

    def _loaded(self, pointer: IrValue) -> IrValue:
        return self.b.load_lanes(pointer, self.type, self.lanes, None, self.b.const(0, self.type))

    def _at(self, n: IrValue, lane: Number = 0) -> IrValue:
        return self.b.at(self._memory, n * self.lanes + lane, self.type)

    def read(self, first: IrValue, last: IrValue) -> None:
        """The matrices from number ``first`` on; lanes beyond the ``last`` take that one again."""
        if self._source is None:
            return
        b, matrices = self.b, self._matrices(self._source, first, last)
        with self._whole() as n:
            columns = turned(b, [self._loaded(b.at(matrix, n, self.type)) for matrix in matrices])
            for i, column in enumerate(columns):
                self[n + i] = column
        with self._rest() as n:
            for lane, matrix in enumerate(matrices):
                b.store(b.load(b.at(matrix, n, self.type), self.type), self._at(n, lane))

    def write(self, first: IrValue, last: IrValue) -> None:
        if self._target is None:
            return
        b, matrices = self.b, self._matrices(self._target, first, last)
        with self._whole() as n:
            rows = turned(b, [self[n + i] for i in range(self.lanes)])
            for matrix, row in zip(matrices, rows, strict=True):
                b.store_lanes(row, b.at(matrix, n, self.type), None)
        with self._rest() as n:
            for lane, matrix in enumerate(matrices):
                b.store(b.load(self._at(n, lane), self.type), b.at(matrix, n, self.type))

    def _matrices(self, buffer: IrValue, first: IrValue, last: IrValue) -> list[IrValue]:
        numbers = [self.b.intrinsic("smin", first + n, last) for n in range(self.lanes)]
        return [self.b.at(buffer, n * self.size, self.type) for n in numbers]

    def _whole(self) -> contextlib.AbstractContextManager[IrValue]:
        """Where squares begin that are turned in registers: as many elements as matrices."""
        return self.b.loop(0, self.size & -self.lanes, step=self.lanes)

    def _rest(self) -> contextlib.AbstractContextManager[IrValue]:
        return self.b.loop(self.size & -self.lanes, self.size)


@contextlib.contextmanager
def each(w: RoutineWriter, *stacks: Interleaved) -> Generator[None]:
    """Code for as many matrices as there are lanes."""
    with w.b.loop(w.begin, w.end, step=lanes(w.letter)) as first:
        for stack in stacks:
            stack.read(first, w.end - 1)
        yield
        for stack in stacks:
            stack.write(first, w.end - 1)


def _minus(start: IrValue, stop: IrValue, x: IrValue, pair: Callable[[IrValue], tuple[IrValue, IrValue]]) -> IrValue:
    """``x`` without the products of pairs with these numbers."""

    def turn(k: IrValue, carries: list[IrValue]) -> list[IrValue]:
        y, z = pair(k)
        return [x.b.intrinsic("fma", -y, z, carries[0])]

    return x.b.carry(start, stop, [x], turn)[0]


# --- factors ---------------------------------------------------------------------------------------------------------


def cholesky(w: RoutineWriter) -> None:
    """By columns; only the lower triangle is read."""
    (n,), b = w.sizes, w.b
    x, zero = Interleaved(w, n * n, 0, 1), b.const(0, "i64")

    def rest(i: IrValue, j: IrValue) -> IrValue:
        return _minus(zero, j, x[i * n + j], lambda k: (x[i * n + k], x[j * n + k]))

    def column(j: IrValue, failed: list[IrValue]) -> list[IrValue]:
        square = rest(j, j)
        x[j * n + j] = root = b.intrinsic("sqrt", square)
        with b.loop(j + 1, n) as i:
            x[i * n + j] = rest(i, j) / root
            x[j * n + i] = root.like(0.0)
        return [failed[0] | ~(square > 0.0)]

    with each(w, x):
        (failed,) = b.carry(zero, n, [b.splat(b.const(False, "i1"), x.lanes)], column)
        with b.when(b.any(failed)), b.loop(0, n) as i, b.loop(0, i + 1) as j:
            x[i * n + j] = b.select(failed, math.nan, x[i * n + j])


def lu(w: RoutineWriter) -> None:
    """The rows exchanged, and their order, count from 0."""
    (m, n, k), b = w.sizes, w.b
    rows, pivots, order = (
        Interleaved(w, m * n, 0, 1),
        Interleaved(w, k, None, 2, "i32"),
        Interleaved(w, m, None, 3, "i32"),
    )
    with each(w, rows, pivots, order):
        with b.loop(0, m) as i:
            order[i] = b.convert("trunc", i, "i32")
        with b.loop(0, k) as step:
            pivots[step] = pivot = _pivot(rows, step, m, n)
            _exchange(rows, order, step, pivot, m, n)
            _eliminate(rows, step, m, n)


def _pivot(rows: Interleaved, k: IrValue, m: IrValue, n: IrValue) -> IrValue:
    """The number of the first row, from row ``k`` on, whose element is the largest."""
    b = rows.b

    def turn(i: IrValue, carries: list[IrValue]) -> list[IrValue]:
        largest, number = carries
        size = b.intrinsic("fabs", rows[i * n + k])
        larger = size > largest
        return [b.select(larger, size, largest), b.select(larger, b.convert("trunc", i, "i32"), number)]

    first = b.intrinsic("fabs", rows[k * n + k])
    return b.carry(k + 1, m, [first, b.splat(b.convert("trunc", k, "i32"), rows.lanes)], turn)[1]


def _exchange(rows: Interleaved, order: Interleaved, k: IrValue, pivot: IrValue, m: IrValue, n: IrValue) -> None:
    """Row ``k`` and the pivot's, which each matrix has elsewhere."""
    b = rows.b
    with b.loop(k + 1, m) as i:
        chosen = pivot.compare("==", b.convert("trunc", i, "i32"))
        with b.when(b.any(chosen)):
            swap(order, k, i, chosen)
            with b.loop(0, n) as j:
                swap(rows, k * n + j, i * n + j, chosen)


def swap(stack: Interleaved, n: IrValue, m: IrValue, chosen: IrValue) -> None:
    select, x, y = stack.b.select, stack[n], stack[m]
    stack[n], stack[m] = select(chosen, y, x), select(chosen, x, y)


def _eliminate(rows: Interleaved, k: IrValue, m: IrValue, n: IrValue) -> None:
    b, pivot = rows.b, rows[k * n + k]
    divisor = b.select(pivot.compare("==", 0.0), 1.0, pivot)  # LAPACK leaves a column of zeros as it is
    with b.loop(k + 1, m) as i:
        rows[i * n + k] = factor = rows[i * n + k] / divisor
        with b.loop(k + 1, n) as j:
            rows[i * n + j] = b.intrinsic("fma", -factor, rows[k * n + j], rows[i * n + j])


# --- triangular systems ----------------------------------------------------------------------------------------------


def triangular_solve(
    w: RoutineWriter, *, left_side: bool, lower: bool, transpose_a: bool, conjugate_a: bool, unit_diagonal: bool
) -> None:
    """``x a = b`` is ``a' x' = b'``; ``conjugate_a`` means nothing to real numbers."""
    (m, n, _), b = w.sizes, w.b
    size, others = (m, n) if left_side else (n, m)
    reflected = transpose_a == left_side
    forward = lower != reflected
    a, x = Interleaved(w, size * size, 0, None), Interleaved(w, m * n, 1, 2)

    def factor(i: IrValue, j: IrValue) -> IrValue:
        return a[j * size + i if reflected else i * size + j]

    def place(i: IrValue, c: IrValue) -> IrValue:
        return i * n + c if left_side else c * n + i

    with each(w, a, x), b.loop(0, size) as step, b.loop(0, others) as c:
        i = step if forward else size - step - 1
        start, stop = (b.const(0, "i64"), i) if forward else (i + 1, size)
        rest = _minus(start, stop, x[place(i, c)], lambda j: (factor(i, j), x[place(j, c)]))
        x[place(i, c)] = rest if unit_diagonal else rest / factor(i, i)
