"""Eigenvalues and singular values of many small matrices at a time by Jacobi's methods (Golub and Van Loan, "Matrix
Computations", 8.5 and 8.6).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from polyax.ir.aval import ShapedArray
from polyax_cpu.libraries import interleaved
from polyax_cpu.libraries.interleaved import Interleaved, each
from polyax_cpu.libraries.rotations import DIGITS, Columns, PlaneRotation, identity, scale, sort, spoil, sweep
from polyax_cpu.libraries.routines import RoutineWriter
from polyax_cpu.llvm import IrValue

ROWS = 24
"""Of larger matrices, LAPACK's reductions take so many fewer operations that no lanes make up for it."""


def fits(args: Sequence[ShapedArray], letter: str) -> bool:
    """Whether there are enough matrices: the larger, the longer a vector of them keeps one thread."""
    count, rows = math.prod(args[0].shape[:-2]), max(args[0].shape[-2:])
    return interleaved.fits(args, letter) and rows <= ROWS and 8 * count >= rows * interleaved.lanes(letter)


# --- symmetric matrices ----------------------------------------------------------------------------------------------


def eigh(w: RoutineWriter, *, lower: bool) -> None:
    (n,) = w.sizes
    x, vectors, values = Interleaved(w, n * n, 0, None), Interleaved(w, n * n, None, 1), Interleaved(w, n, None, 2)
    basis = Columns(vectors, n, 1)
    with each(w, x, vectors, values):
        identity(basis, n, n)
        failed = _eigenvalues(w, x, values, lower, lambda p, q, rotation: rotation.turn_columns(basis, p, q, n))
        sort(w, values, n, ascending=True, others=[(basis, n)])
        spoil(failed, (values, n), (vectors, n * n))


def eigenvalues(w: RoutineWriter, *, lower: bool) -> None:
    """Without eigenvectors."""
    (n,) = w.sizes
    x, values = Interleaved(w, n * n, 0, None), Interleaved(w, n, None, 1)
    with each(w, x, values):
        failed = _eigenvalues(w, x, values, lower, lambda p, q, rotation: None)
        sort(w, values, n, ascending=True)
        spoil(failed, (values, n))


def _eigenvalues(
    w: RoutineWriter,
    stack: Interleaved,
    values: Interleaved,
    lower: bool,
    turn: Callable[[IrValue, IrValue, PlaneRotation], None],
) -> IrValue:
    """In no order; each rotation is told to ``turn``. Which lanes failed.

    What is less beside the diagonal than the rounding of the largest element is as good as zero.
    """
    (n,), b = w.sizes, w.b
    x = Columns(stack, n, 1) if lower else Columns(stack, 1, n)
    power, failed = scale(w, x, n, lambda i: i + 1)
    least = 2.0 ** -DIGITS[stack.type]

    def visit(p: IrValue, q: IrValue, active: IrValue) -> IrValue:
        beside = x[q, p]
        chosen = active & (b.intrinsic("fabs", beside) > least)
        with b.when(b.any(chosen)):
            rotation = PlaneRotation.diagonalizing(x[q, q] - x[p, p], beside, chosen)
            _turn_both(x, n, p, q, rotation, chosen)
            turn(p, q, rotation)
        return chosen

    unsettled = sweep(w, n, visit)
    with b.loop(0, n) as i:
        values[i] = x[i, i] * power
    return failed | unsettled


def _turn_both(x: Columns, n: IrValue, p: IrValue, q: IrValue, rotation: PlaneRotation, chosen: IrValue) -> None:
    """Rows and columns ``p`` and ``q`` of matrices of which the lower triangle is kept."""
    b, stack, beside = x.stack.b, x.stack, x[q, p]
    with b.loop(0, p) as i:
        rotation.turn(stack, x.at(p, i), x.at(q, i))
    with b.loop(p + 1, q) as i:
        rotation.turn(stack, x.at(i, p), x.at(q, i))
    with b.loop(q + 1, n) as i:
        rotation.turn(stack, x.at(i, p), x.at(i, q))
    x[p, p] = b.intrinsic("fma", -rotation.tangent, beside, x[p, p])
    x[q, q] = b.intrinsic("fma", rotation.tangent, beside, x[q, q])
    x[q, p] = b.select(chosen, 0.0, beside)


# --- singular values -------------------------------------------------------------------------------------------------


class Shape(NamedTuple):
    """Of matrices that are turned to have no fewer rows than columns."""

    rows: IrValue
    columns: IrValue
    is_tall: IrValue
    """Whether they are so without."""

    def view(self, stack: Interleaved, pitch: IrValue, turned_pitch: IrValue) -> Columns:
        """Of memory with rows of such a length, or of columns if the matrices are turned."""
        b, one = stack.b, self.rows.like(1)
        return Columns(stack, b.select(self.is_tall, pitch, one), b.select(self.is_tall, one, turned_pitch))


def _shape(w: RoutineWriter) -> Shape:
    m, n, k = w.sizes
    return Shape(w.b.intrinsic("smax", m, n), k, m >= n)


def svd(w: RoutineWriter, *, full_matrices: bool) -> None:
    """Columns are turned until they are orthogonal. Their lengths are the singular values."""
    (m, n, k), shape = w.sizes, _shape(w)
    left, right = (w.b.select(shape.is_tall, *pair) for pair in (w.buffers[2:], w.buffers[:1:-1]))
    w.buffers[2:] = left, right
    width = shape.rows if full_matrices else k
    x, values = Interleaved(w, m * n, 0, None), Interleaved(w, k, None, 1)
    long, short = Interleaved(w, shape.rows * width, None, 2), Interleaved(w, k * k, None, 3)
    u, v, source = shape.view(long, width, shape.rows), _transposed(shape.view(short, k, k)), shape.view(x, n, n)
    with each(w, x, values, long, short):
        with w.b.loop(0, shape.rows) as i, w.b.loop(0, k) as j:
            u[i, j] = source[i, j]
        identity(v, k, k)
        power, failed = _orthogonalize(w, u, values, shape, lambda p, q, rotation: rotation.turn_columns(v, p, q, k))
        sort(w, values, k, ascending=False, others=[(u, shape.rows), (v, k)])
        _normalize(u, values, shape, width)
        _multiply(values, k, power)
        spoil(failed, (values, k), (long, shape.rows * width), (short, k * k))


def singular_values(w: RoutineWriter) -> None:
    (m, n, k), shape = w.sizes, _shape(w)
    x, values = Interleaved(w, m * n, 0, None), Interleaved(w, k, None, 1)
    with each(w, x, values):
        power, failed = _orthogonalize(w, shape.view(x, n, n), values, shape, lambda p, q, rotation: None)
        sort(w, values, k, ascending=False)
        _multiply(values, k, power)
        spoil(failed, (values, k))


def _transposed(x: Columns) -> Columns:
    return Columns(x.stack, x.by_column, x.by_row)


def _multiply(values: Interleaved, count: IrValue, factor: IrValue) -> None:
    with values.b.loop(0, count) as n:
        values[n] = values[n] * factor


def _orthogonalize(
    w: RoutineWriter,
    x: Columns,
    values: Interleaved,
    shape: Shape,
    turn: Callable[[IrValue, IrValue, PlaneRotation], None],
) -> tuple[IrValue, IrValue]:
    """Each rotation is told to ``turn``. What the lengths of columns are to be multiplied by; which lanes failed.

    Columns are orthogonal if they are so but for the rounding of their product, however short they are.
    """
    b, rows, type = w.b, shape.rows, x.stack.type
    power, failed = scale(w, x, rows, lambda i: shape.columns)
    least = b.intrinsic("sqrt", b.convert("sitofp", rows, type)) * 2.0 ** (1 - DIGITS[type])

    def visit(p: IrValue, q: IrValue, active: IrValue) -> IrValue:
        first, last, beside = _products(x, rows, (p, p), (q, q), (p, q))
        shorter = b.intrinsic("minnum", first, last)
        size = b.intrinsic("fabs", beside)
        chosen = active & (shorter > _nothing(type) ** 2) & (size > least * b.intrinsic("sqrt", first * last))
        with b.when(b.any(chosen)):
            rotation = PlaneRotation.diagonalizing(last - first, beside, chosen)
            rotation.turn_columns(x, p, q, rows)
            turn(p, q, rotation)
        return chosen

    sweep(w, shape.columns, visit)
    with b.loop(0, shape.columns) as j:
        values[j] = _length(x, rows, j)
    return power, failed


def _nothing(type: str) -> float:
    """What is rounded away beside matrices of numbers of about one."""
    return 2.0 ** (-6 - DIGITS[type])


def _products(x: Columns, rows: IrValue, *pairs: tuple[IrValue, IrValue]) -> list[IrValue]:
    """Of columns."""
    b = x.stack.b
    zero, nothing = b.const(0, "i64"), b.splat(b.const(0.0, x.stack.type), x.stack.lanes)

    def add(i: IrValue, sums: list[IrValue]) -> list[IrValue]:
        return [b.intrinsic("fma", x[i, p], x[i, q], total) for (p, q), total in zip(pairs, sums, strict=True)]

    return b.carry(zero, rows, [nothing] * len(pairs), add)


def _length(x: Columns, rows: IrValue, j: IrValue) -> IrValue:
    """Of a column."""
    return x.stack.b.intrinsic("sqrt", *_products(x, rows, (j, j)))


def _normalize(x: Columns, lengths: Interleaved, shape: Shape, count: IrValue) -> None:
    """Columns of length one. Those of no length come last, as do those that there are none of yet."""
    b = x.stack.b
    with b.loop(0, count) as j:
        missing = (j >= shape.columns) | ~(lengths[j] > _nothing(x.stack.type))
        with b.when(b.any(missing)):
            _complete(x, shape.rows, j, missing)
        length = b.select(missing, 1.0, lengths[j])
        with b.loop(0, shape.rows) as i:
            x[i, j] = x[i, j] / length


def _complete(x: Columns, rows: IrValue, j: IrValue, chosen: IrValue) -> None:
    """A column of length one, orthogonal to the ``j`` before it: what these leave of the unit vector that they span
    least. What is subtracted once leaves its rounding; twice, nothing."""
    b = x.stack.b
    row = _least_spanned(x, rows, j)
    with b.loop(0, rows) as i:
        unit = b.select(row.compare("==", b.convert("trunc", i, "i32")), b.const(1.0, x.stack.type), 0.0)
        x[i, j] = b.select(chosen, unit, x[i, j])
    with b.loop(0, b.const(2, "i64")), b.loop(0, j) as c:
        (product,) = _products(x, rows, (c, j))
        part = b.select(chosen, product, 0.0)
        with b.loop(0, rows) as i:
            x[i, j] = b.intrinsic("fma", -part, x[i, c], x[i, j])
    length = b.select(chosen, _length(x, rows, j), 1.0)
    with b.loop(0, rows) as i:
        x[i, j] = x[i, j] / length


def _least_spanned(x: Columns, rows: IrValue, count: IrValue) -> IrValue:
    """The number of the row with the least sum of squares in these first columns."""
    b, zero = x.stack.b, x.stack.b.const(0, "i64")
    start = [b.splat(b.const(value, type), x.stack.lanes) for value, type in ((math.inf, x.stack.type), (0, "i32"))]

    def turn(i: IrValue, carries: list[IrValue]) -> list[IrValue]:
        least, number = carries
        (total,) = _products(_transposed(x), count, (i, i))
        less = total < least
        return [b.select(less, total, least), b.select(less, b.convert("trunc", i, "i32"), number)]

    return b.carry(zero, rows, start, turn)[1]
