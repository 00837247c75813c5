"""Factors of one small matrix, whose rows are vectors: LAPACK spends most of its time there around the arithmetic.

Code is written for the number of lanes that a row takes, so that it has no loops along rows. Orthogonal factors have
LAPACK's signs; matrices whose squares may leave the range of numbers, and what isn't finite, are left to it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from polyax.ir.aval import ShapedArray
from polyax_cpu import processors
from polyax_cpu.libraries.routines import PARTS, RoutineWriter
from polyax_cpu.llvm import BITS, Builder, IrValue
from polyax_cpu.transposes import turned

ROWS = 64
"""Of larger matrices LAPACK works on blocks, which is as fast."""
LETTERS = ("s", "d")
RANGES = {"s": (1e-24, 1e36), "d": (1e-200, 1e300)}
"""What squares of the norms of columns are, where nothing is lost of them."""
SIDE = 4
"""Of squares that are turned in registers; larger ones are as fast, and half as much again to compile."""

Avals = Sequence[ShapedArray]
Write = Callable[[RoutineWriter], None]
Factor = Callable[[RoutineWriter, IrValue, IrValue, IrValue, IrValue, IrValue], None]
"""Writes the factors Q and R of a matrix with LAPACK, given scratch for the matrix and for scales of reflections."""


def lanes(args: Avals, outs: Avals, letter: str) -> int | None:
    """Those of a vector that holds a row of operands and results; None if LAPACK is to compute it."""
    longest = max(n for aval in (*args, *outs) for n in aval.shape[-2:])
    least = processors.host().vector_bits // BITS[PARTS[letter]] if letter in LETTERS else 0
    return max(least, 1 << (longest - 1).bit_length()) if least and longest <= ROWS else None


class Rows:
    """A matrix in scratch memory, whose rows have room for ``ROWS`` elements."""

    def __init__(self, w: RoutineWriter, lanes: int, count: int = ROWS) -> None:
        self.b, self.type, self.lanes = w.b, PARTS[w.letter], lanes
        self.memory = self.b.alloca(self.type, count * ROWS)

    def at(self, i: IrValue, j: IrValue | int = 0) -> IrValue:
        return self.b.at(self.memory, i * ROWS + j, self.type)

    def __getitem__(self, i: IrValue) -> IrValue:
        return self.b.load_lanes(self.at(i), self.type, self.lanes, None, self.b.const(0.0, self.type))

    def __setitem__(self, i: IrValue, row: IrValue) -> None:
        self.b.store_lanes(row, self.at(i), None)

    def element(self, i: IrValue, j: IrValue) -> IrValue:
        return self.b.load(self.at(i, j), self.type)

    def all(self, i: IrValue, j: IrValue) -> IrValue:
        """An element in each lane."""
        return self.b.splat(self.element(i, j), self.lanes)

    def set(self, i: IrValue, j: IrValue, value: IrValue) -> None:
        self.b.store(value, self.at(i, j))

    def read(self, matrix: IrValue, rows: IrValue, columns: IrValue) -> None:
        mask, zero = _below(self.b, columns, self.lanes), self.b.const(0.0, self.type)
        with self.b.loop(0, rows) as i:
            place = self.b.at(matrix, i * columns, self.type)
            self[i] = self.b.load_lanes(place, self.type, self.lanes, mask, zero)

    def write(
        self, matrix: IrValue, rows: IrValue, columns: IrValue, change: Callable[[IrValue, IrValue], IrValue]
    ) -> None:
        mask = _below(self.b, columns, self.lanes)
        with self.b.loop(0, rows) as i:
            self.b.store_lanes(change(i, self[i]), self.b.at(matrix, i * columns, self.type), mask)


def _below(b: Builder, bound: IrValue, lanes: int) -> IrValue:
    """The lanes whose numbers are below ``bound``."""
    return b.test("icmp slt", b.numbers(range(lanes), "i32"), b.splat(b.convert("trunc", bound, "i32"), lanes))


# --- Cholesky --------------------------------------------------------------------------------------------------------


@functools.cache
def cholesky(lanes: int) -> Write:
    """By rows of the transpose; only the lower triangle is read."""

    def write(w: RoutineWriter) -> None:
        (n,), b, u = w.sizes, w.b, Rows(w, lanes)

        def row(j: IrValue, failed: list[IrValue]) -> list[IrValue]:
            before = lambda k, found: [b.intrinsic("fma", -u.all(k, j), u[k], found[0])]
            (u[j],) = (rest,) = b.carry(b.const(0, "i64"), j, [u[j]], before)
            square = u.element(j, j)
            u[j] = rest / b.splat(b.intrinsic("sqrt", square), lanes)
            return [failed[0] | ~(square > 0.0)]

        with w.items(n * n, n * n) as (x, factor):
            _turn_lower(b, u, x, n)
            (failed,) = b.carry(b.const(0, "i64"), n, [b.const(False, "i1")], row)
            w.spoil(b.convert("zext", failed, "i32"), [(u.memory, n * ROWS)])
            w.clear(factor, n * n)
            _turn_upper(b, u, factor, n)

    return write


def _turn_lower(b: Builder, u: Rows, x: IrValue, n: IrValue) -> None:
    """The lower triangle of ``x`` as the upper one of ``u``. Lanes that nobody reads are zero: what was in memory could
    be numbers so small that processors take their time for them."""
    with b.loop(0, n) as i:
        u[i] = b.splat(b.const(0.0, u.type), u.lanes)
    with b.loop(0, n, step=SIDE) as i, b.loop(0, i + 1, step=SIDE) as j:
        mask, zero = _below(b, n - j, SIDE), b.const(0.0, u.type)
        rows = [b.intrinsic("smin", i + k, n - 1) for k in range(SIDE)]
        read = [b.load_lanes(b.at(x, row * n + j, u.type), u.type, SIDE, mask, zero) for row in rows]
        for k, row in enumerate(turned(b, read)):
            b.store_lanes(row, u.at(j + k, i), None)


def _turn_upper(b: Builder, u: Rows, factor: IrValue, n: IrValue) -> None:
    """The upper triangle of ``u`` as the lower one of ``factor``."""
    with b.loop(0, n, step=SIDE) as i, b.loop(0, i + 1, step=SIDE) as j:
        zero = b.const(0.0, u.type)
        read = [b.load_lanes(u.at(j + k, i), u.type, SIDE, None, zero) for k in range(SIDE)]
        for k, row in enumerate(turned(b, read)):
            last = b.select(i + k < n, i + k + 1, 0)
            b.store_lanes(row, b.at(factor, (i + k) * n + j, u.type), _below(b, last - j, SIDE))


# --- orthogonal factors ----------------------------------------------------------------------------------------------


@functools.cache
def qr(lanes: int, factor: Factor) -> Write:
    """By Householder's reflections. ``factor`` writes what this doesn't compute."""

    def write(w: RoutineWriter) -> None:
        m, n, k, least, _ = w.sizes
        b, a, v, basis = w.b, *(Rows(w, lanes) for _ in range(3))
        with w.items(m * n, m * k, k * n) as (x, q, r):
            a.read(x, m, n)
            done = _reduce(w, a, v, m, least)
            with b.when(done):
                _write_upper(a, r, k, n, least)
                _multiply_out(v, basis, m, least)
                basis.write(q, m, k, lambda _, row: row)
            with b.when(~done):
                factor(w, a.memory, v.memory, x, q, r)

    return write


def _reduce(w: RoutineWriter, a: Rows, v: Rows, m: IrValue, count: IrValue) -> IrValue:
    """Makes ``a`` upper triangular but for what is left of rounding; whether it could be done. Row ``j`` of ``v`` is
    the reflection of column ``j``, whose own element there, which is one, is its scale instead."""
    b, (least, most) = a.b, RANGES[w.letter]
    nothing = b.splat(b.const(0.0, a.type), a.lanes)
    sums = Rows(w, a.lanes, 1)

    def column(j: IrValue, held: list[IrValue]) -> list[IrValue]:
        (found,) = b.carry(j + 1, m, [nothing], lambda i, s: [b.intrinsic("fma", a.all(i, j), a[i], s[0])])
        sums[b.const(0, "i64")] = found
        first, rest = a.element(j, j), sums.element(b.const(0, "i64"), j)
        square, still = b.intrinsic("fma", first, first, rest), rest.compare("==", 0.0)
        turned = -b.intrinsic("copysign", b.intrinsic("sqrt", square), first)
        length, divisor = b.select(still, first, turned), b.select(still, 1.0, first - turned)
        scale, inverse = (length - first) / length, 1.0 / divisor
        with b.loop(j + 1, m) as i:
            v.set(j, i, a.element(i, j) * inverse)
        v.set(j, j, scale)
        part = b.intrinsic("fma", found, b.splat(inverse, a.lanes), a[j]) * b.splat(scale, a.lanes)
        _subtract(v, a, j, part, m)
        a.set(j, j, length)
        return [held[0] & (square >= least) & (square <= most)]

    return b.carry(b.const(0, "i64"), count, [b.const(True, "i1")], column)[0]


def _subtract(v: Rows, x: Rows, j: IrValue, part: IrValue, m: IrValue) -> None:
    """From rows of ``x`` what the reflection number ``j`` takes of them."""
    x[j] = x[j] - part
    with x.b.loop(j + 1, m) as i:
        x[i] = x.b.intrinsic("fma", -v.all(j, i), part, x[i])


def _write_upper(a: Rows, r: IrValue, rows: IrValue, columns: IrValue, count: IrValue) -> None:
    b, nothing = a.b, a.b.splat(a.b.const(0.0, a.type), a.lanes)

    def upper(i: IrValue, row: IrValue) -> IrValue:
        return b.select(_below(b, b.select(i < count, i, a.lanes), a.lanes), nothing, row)

    a.write(r, rows, columns, upper)


def _multiply_out(v: Rows, q: Rows, m: IrValue, count: IrValue) -> None:
    """The product of the reflections, from the last one on."""
    b, one = v.b, v.b.const(1.0, v.type)
    zero = b.splat(b.const(0.0, v.type), q.lanes)
    with b.loop(0, m) as i:
        q[i] = zero
        with b.when(i < q.lanes):
            q.set(i, i, one)
    with b.loop(0, count) as done:
        j = count - done - 1
        (found,) = b.carry(j + 1, m, [q[j]], lambda i, s: [b.intrinsic("fma", v.all(j, i), q[i], s[0])])
        _subtract(v, q, j, found * v.all(j, j), m)
