"""Orthogonal factors of many small matrices at a time by Householder's reflections, a lane for each, with LAPACK's
signs and storage (Golub and Van Loan, "Matrix Computations", 5.2).

What isn't finite has factors of NaN.
"""

from __future__ import annotations

from polyax_cpu.libraries.interleaved import Interleaved, each
from polyax_cpu.libraries.rotations import Columns, identity, scale, spoil
from polyax_cpu.libraries.routines import RoutineWriter
from polyax_cpu.llvm import IrValue


def qr(w: RoutineWriter) -> None:
    m, n, k, least, _ = w.sizes
    q, r = Interleaved(w, m * k, None, 1), Interleaved(w, k * n, None, 2)
    a, taus = Columns(Interleaved(w, m * n, 0, None), n, 1), Interleaved(w, least, None, None)
    basis = Columns(q, k, 1)
    with each(w, a.stack, q, r):
        failed = _reduce(w, a, taus, m, n, least)
        _write_upper(a, Columns(r, n, 1), k, n, least)
        identity(basis, m, k)
        _multiply_out(a, taus, basis, m, k, least)
        spoil(failed, (q, m * k), (r, k * n))


def r_alone(w: RoutineWriter) -> None:
    m, n, k, least = w.sizes
    r, taus = Interleaved(w, k * n, None, 1), Interleaved(w, least, None, None)
    a = Columns(Interleaved(w, m * n, 0, None), n, 1)
    with each(w, a.stack, r):
        failed = _reduce(w, a, taus, m, n, least)
        _write_upper(a, Columns(r, n, 1), k, n, least)
        spoil(failed, (r, k * n))


def geqrf(w: RoutineWriter) -> None:
    m, n, k = w.sizes
    a, taus = Columns(Interleaved(w, m * n, 0, 1), n, 1), Interleaved(w, k, None, 2)
    with each(w, a.stack, taus):
        failed = _reduce(w, a, taus, m, n, k)
        spoil(failed, (a.stack, m * n), (taus, k))


def householder_product(w: RoutineWriter) -> None:
    m, n, k = w.sizes
    a, taus, q = Interleaved(w, m * n, 0, None), Interleaved(w, k, 1, None), Interleaved(w, m * n, None, 2)
    basis = Columns(q, n, 1)
    with each(w, a, taus, q):
        identity(basis, m, n)
        _multiply_out(Columns(a, n, 1), taus, basis, m, n, k)


def _reduce(w: RoutineWriter, a: Columns, taus: Interleaved, m: IrValue, n: IrValue, count: IrValue) -> IrValue:
    """Makes ``a`` upper triangular but for the reflections below; which lanes failed."""
    b = w.b
    power, failed = scale(w, a, m, lambda _: n)
    with b.loop(0, count) as j:
        taus[j] = tau = _reflection(a, j, m)
        _reflect(a, j, tau, a, m, (j + 1, n))
    with b.loop(0, count) as i, b.loop(i, n) as j:
        a[i, j] = a[i, j] * power
    return failed


def _reflection(a: Columns, j: IrValue, rows: IrValue) -> IrValue:
    """Of column ``j``, which it makes zero below the diagonal; it is kept there, and its scale is returned."""
    b, first = a.stack.b, a[j, j]
    nothing = b.splat(b.const(0.0, a.stack.type), a.stack.lanes)
    (rest,) = b.carry(j + 1, rows, [nothing], lambda i, sums: [b.intrinsic("fma", a[i, j], a[i, j], sums[0])])
    done = rest.compare("==", 0.0)
    length = -b.intrinsic("copysign", b.intrinsic("sqrt", b.intrinsic("fma", first, first, rest)), first)
    divisor = b.select(done, 1.0, first - length)
    with b.loop(j + 1, rows) as i:
        a[i, j] = a[i, j] / divisor
    a[j, j] = b.select(done, first, length)
    return b.select(done, 0.0, (length - first) / b.select(done, 1.0, length))


def _reflect(a: Columns, j: IrValue, tau: IrValue, x: Columns, rows: IrValue, columns: tuple[IrValue, IrValue]) -> None:
    """Applies the reflection of column ``j`` of ``a`` to these columns of ``x``."""
    b = x.stack.b
    with b.loop(*columns) as c:
        (part,) = b.carry(j + 1, rows, [x[j, c]], lambda i, sums: [b.intrinsic("fma", a[i, j], x[i, c], sums[0])])
        part = part * tau
        x[j, c] = x[j, c] - part
        with b.loop(j + 1, rows) as i:
            x[i, c] = b.intrinsic("fma", -part, a[i, j], x[i, c])


def _multiply_out(a: Columns, taus: Interleaved, x: Columns, rows: IrValue, columns: IrValue, count: IrValue) -> None:
    """The product of the reflections, from the last one on: each leaves the columns before its own as they are."""
    with x.stack.b.loop(0, count) as done:
        j = count - done - 1
        _reflect(a, j, taus[j], x, rows, (j, columns))


def _write_upper(a: Columns, r: Columns, rows: IrValue, columns: IrValue, count: IrValue) -> None:
    b = a.stack.b
    with b.loop(0, rows) as i, b.loop(0, columns) as j:
        r[i, j] = b.select((i < count) & (i <= j), a[b.select(i < count, i, 0), j], 0.0)
