"""Linear algebra of a few numbers, as code in the place of a library's call, whose elements LLVM keeps in registers:
products, factors and triangular systems of up to ``ROWS`` rows.

Says what LAPACK says: the first of the largest pivots is taken, what is singular is divided by zero, and the factor of
a matrix that isn't positive definite is NaN.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from itertools import starmap
from typing import Any, NamedTuple, Protocol

from polyax.ir.aval import ShapedArray
from polyax_cpu.libraries.by_vectors import by_vector
from polyax_cpu.libraries.products import NativeProduct, describe
from polyax_cpu.llvm import Builder, IrValue
from polyax_kernels.lower.lowering import Call
from polyax_kernels.plan.plan import CallStep

ROWS = 4
"""Of matrices that are factored."""
MULTIPLICATIONS = 64
"""Of one product, or in one triangular system."""
ITEMS = 1024
"""Longer stacks are called: threads may share them."""
TYPES = {"float32": "float", "float64": "double"}

Avals = Sequence[ShapedArray]
Params = Mapping[str, Any]
Matrix = list[list[IrValue]]


class Code(Protocol):
    """What takes the place of a call: ``write(builder, pointers)`` of operands and results."""

    @property
    def work(self) -> int: ...
    def write(self, b: Builder, pointers: Sequence[IrValue]) -> None: ...


class Stack(NamedTuple):
    """Matrices in memory: their sizes, how far apart rows, columns and matrices are, and the type of an element."""

    rows: int
    columns: int
    by_row: int
    by_column: int
    by_item: int
    type: str

    def places(self, b: Builder, pointer: IrValue, item: IrValue) -> Matrix:
        """Where the elements of a matrix are."""
        first = b.at(pointer, item * self.by_item, self.type)
        at = lambda i, j: b.at(first, i * self.by_row + j * self.by_column, self.type)
        return [[at(i, j) for j in range(self.columns)] for i in range(self.rows)]


@dataclass(frozen=True)
class Inlined:
    """Code for each matrix of a stack: ``compute`` gives the elements of results from those of operands."""

    operands: Sequence[Stack]
    results: Sequence[Stack]
    items: int
    work: int
    """How many operations there are in the code."""
    compute: Callable[..., Sequence[Matrix]]

    def write(self, b: Builder, pointers: Sequence[IrValue]) -> None:
        """All of a matrix is read before its results are written, whose memory may be the same."""
        places = lambda n, stack: stack.places(b, pointers[n], item)
        stacks, count = [*self.operands, *self.results], len(self.operands)
        with _each(b, self.items) as item:
            at = list(starmap(places, enumerate(stacks)))
            read = [[[b.load(p, s.type) for p in row] for row in m] for m, s in zip(at[:count], stacks, strict=False)]
            for places_of, values in zip(at[count:], self.compute(*read), strict=True):
                for row, found in zip(places_of, values, strict=True):
                    for place, value in zip(row, found, strict=True):
                        b.store(value, place)


@contextlib.contextmanager
def _each(b: Builder, count: int) -> Generator[IrValue]:
    if count == 1:
        yield b.const(0, "i64")
        return
    with b.loop(0, b.const(count, "i64")) as item:
        yield item


def never(args: Avals, outs: Avals, params: Params) -> Inlined | None:
    return None


@dataclass(frozen=True)
class InlinedCall(Call):
    """A library's call in whose place loops have code, if it is small: ``inlined(arg_avals, out_avals, params)``."""

    inlined: Callable[[Avals, Avals, Params], Code | None] = never


def inlined(step: CallStep) -> Code | None:
    """The code for a call; None if it is to be called."""
    lowering = step.lowering
    return lowering.inlined(step.arg_avals, step.out_avals, step.params) if isinstance(lowering, InlinedCall) else None


# --- products --------------------------------------------------------------------------------------------------------


def product(args: Avals, outs: Avals, params: Params) -> Code | None:
    found = describe(args, params) if args[0].dtype.name in TYPES else None
    if found is None or found.batch > min(ITEMS, found.group):
        return None
    if found.m * found.n * found.k > MULTIPLICATIONS:
        return by_vector(found, TYPES[args[0].dtype.name])
    return Inlined(*_stacks(found, TYPES[args[0].dtype.name]), found.batch, found.flops // found.batch, _product)


def _stacks(p: NativeProduct, type: str) -> tuple[list[Stack], list[Stack]]:
    a = (1, p.lda) if p.a_transposed else (p.lda, 1)
    b = (1, p.ldb) if p.b_transposed else (p.ldb, 1)
    operands = [Stack(p.m, p.k, *a, p.a_stride, type), Stack(p.k, p.n, *b, p.b_stride, type)]
    return operands, [Stack(p.m, p.n, p.n, 1, p.m * p.n, type)]


def _product(x: Matrix, y: Matrix) -> list[Matrix]:
    return [[[_dot(row, column) for column in zip(*y, strict=True)] for row in x]]


def _dot(xs: Sequence[IrValue], ys: Sequence[IrValue]) -> IrValue:
    """Each product is rounded with the sum that it is added to, as in BLAS: implicit solvers live on residuals, where
    rounding it alone costs digits."""
    total = xs[0] * ys[0]
    for x, y in zip(xs[1:], ys[1:], strict=True):
        total = x.b.intrinsic("fma", x, y, total)
    return total


def _minus(x: IrValue, ys: Sequence[IrValue], zs: Sequence[IrValue]) -> IrValue:
    """``x`` without the products of ``ys`` and ``zs``."""
    for y, z in zip(ys, zs, strict=True):
        x = x.b.intrinsic("fma", -y, z, x)
    return x


# --- factors ---------------------------------------------------------------------------------------------------------


def cholesky(args: Avals, outs: Avals, params: Params) -> Inlined | None:
    return _factor(args, outs, _cholesky, 1)


def lu(args: Avals, outs: Avals, params: Params) -> Inlined | None:
    return _factor(args, outs, _lu, 4)


def triangular_solve(args: Avals, outs: Avals, params: Params) -> Inlined | None:
    """``conjugate_a`` means nothing to real numbers."""
    left, unit = params["left_side"], params["unit_diagonal"]
    turned = params["transpose_a"] == left  # x a = b is a' x' = b'
    forward = params["lower"] != turned

    def solve(a: Matrix, b: Matrix) -> list[Matrix]:
        x = _solution(_transposed(a) if turned else a, b if left else _transposed(b), forward, unit)
        return [x if left else _transposed(x)]

    return _factor(args, outs, solve, 1)


def _factor(args: Avals, outs: Avals, compute: Callable[..., Sequence[Matrix]], each: int) -> Inlined | None:
    """``each``: operations for an element of the last operand and a row of the first one."""
    (rows, _), shape, items = args[0].shape[-2:], args[-1].shape, math.prod(args[0].shape[:-2])
    work = rows * math.prod(shape[-2:])
    if args[0].dtype.name not in TYPES or max(args[0].shape[-2:]) > ROWS or work > MULTIPLICATIONS or items > ITEMS:
        return None
    type = TYPES[args[0].dtype.name]
    operands, results = ([_stored(a, items, type) for a in avals] for avals in (args, outs))
    return Inlined(operands, results, items, each * work, compute)


def _stored(aval: ShapedArray, items: int, type: str) -> Stack:
    """How matrices are stored, or the numbers of their rows, a row for each matrix."""
    if aval.dtype.kind == "i":
        return Stack(1, aval.shape[-1], 0, 1, aval.shape[-1], "i32")
    rows, columns = aval.shape[-2:]
    return Stack(rows, columns, columns, 1, rows * columns, type)


def _transposed(x: Matrix) -> Matrix:
    return [list(column) for column in zip(*x, strict=True)]


def _cholesky(x: Matrix) -> list[Matrix]:
    """By columns; only the lower triangle is read."""
    b, n, zero = x[0][0].b, len(x), x[0][0].like(0.0)
    factor = [[zero] * n for _ in x]
    failed = b.const(False, "i1")
    for j in range(n):
        square = _minus(x[j][j], factor[j][:j], factor[j][:j])
        failed = failed | ~(square > 0.0)
        factor[j][j] = b.intrinsic("sqrt", square)
        for i in range(j + 1, n):
            factor[i][j] = _minus(x[i][j], factor[i][:j], factor[j][:j]) / factor[j][j]
    nan = zero.like(math.nan)
    return [[[b.select(failed, nan, y) if j <= i else y for j, y in enumerate(r)] for i, r in enumerate(factor)]]


def _lu(x: Matrix) -> list[Matrix]:
    """The rows exchanged, and their order, count from 0."""
    b, rows, steps = x[0][0].b, [list(row) for row in x], min(len(x), len(x[0]))
    order, pivots = [b.const(n, "i32") for n in range(len(x))], []
    for k in range(steps):
        pivots.append(_pivot(rows, k))
        for i in range(k + 1, len(rows)):
            chosen = pivots[k].compare("==", i)
            rows[k], rows[i] = _exchanged(chosen, rows[k], rows[i])
            (order[k],), (order[i],) = _exchanged(chosen, [order[k]], [order[i]])
        pivot = rows[k][k]
        divisor = b.select(pivot.compare("==", 0.0), 1.0, pivot)  # LAPACK leaves a column of zeros as it is
        for row in rows[k + 1 :]:
            row[k] = row[k] / divisor
            row[k + 1 :] = [_minus(y, row[k : k + 1], [z]) for y, z in zip(row[k + 1 :], rows[k][k + 1 :], strict=True)]
    return [rows, [pivots], [order]]


def _pivot(rows: Matrix, k: int) -> IrValue:
    """The number of the first row, from row ``k`` on, whose element is the largest."""
    b, number = rows[0][0].b, rows[0][0].b.const(k, "i32")
    largest = b.intrinsic("fabs", rows[k][k])
    for i in range(k + 1, len(rows)):
        size = b.intrinsic("fabs", rows[i][k])
        larger = size > largest
        largest, number = b.select(larger, size, largest), b.select(larger, i, number)
    return number


def _exchanged(condition: IrValue, xs: Sequence[IrValue], ys: Sequence[IrValue]) -> tuple[list[IrValue], list[IrValue]]:
    """``ys, xs`` where the condition holds, else ``xs, ys``."""
    select, pairs = condition.b.select, list(zip(xs, ys, strict=True))
    return [select(condition, y, x) for x, y in pairs], [select(condition, x, y) for x, y in pairs]


def _solution(a: Matrix, b: Matrix, forward: bool, unit: bool) -> Matrix:
    """``x`` of ``a x = b``, for a matrix whose lower triangle (``forward``) or upper one is read."""
    n = len(a)
    x: Matrix = [[] for _ in b]
    for i in range(n) if forward else reversed(range(n)):
        known = range(i) if forward else range(i + 1, n)
        for c, value in enumerate(b[i]):
            rest = _minus(value, [a[i][j] for j in known], [x[j][c] for j in known])
            x[i].append(rest if unit else rest / a[i][i])
    return x
