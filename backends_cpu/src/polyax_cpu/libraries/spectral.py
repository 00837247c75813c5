"""Eigenvalues and singular values through LAPACK: what is written around its routines, for stacks of matrices.

What doesn't converge is NaN.
"""

from __future__ import annotations

from collections.abc import Callable

from polyax_cpu.libraries.routines import BITS, PARTS, RoutineWriter
from polyax_cpu.llvm import IrValue

QL_ROWS = 25
"""Smaller matrices aren't divided by LAPACK's divide and conquer either: it hands them to the QL iteration."""
BLOCKS = 34
"""Numbers of room that reductions to a tridiagonal matrix want for each row, to do them in blocks."""
Solver = Callable[[str, str, IrValue, IrValue], IrValue]
"""Writes the call for a job, a triangle, a matrix that eigenvectors take the place of, and eigenvalues; not 0 if it
failed."""


def _divided(w: RoutineWriter, n: IrValue) -> Solver:
    return lambda job, side, a, values: w.lapack("syevd", job, side, n, a, n, values)


def _iterated(w: RoutineWriter, n: IrValue) -> Solver:
    """Its room is taken once for all matrices."""
    room, more = w.scratch(n * BLOCKS), [w.scratch(n * 3)] if w.parts == 2 else []
    return lambda job, side, a, values: w.lapack("syev_work", job, side, n, a, n, values, room, n * BLOCKS, *more)


def _eigh(w: RoutineWriter, lower: bool, solver: Callable[[RoutineWriter, IrValue], Solver]) -> None:
    (n,) = w.sizes
    a, bits, solve = w.scratch(n * n), BITS[w.letter], solver(w, n)
    with w.items(n * n, n * n, n, kinds=(bits, bits, PARTS[w.letter])) as (x, vectors, values):
        w.transpose(x, a, n, n)
        failed = solve("V", "L" if lower else "U", a, values)
        w.transpose(a, vectors, n, n)
        w.spoil(failed, [(values, n), (vectors, n * n * w.parts)])


def eigh(w: RoutineWriter, *, lower: bool) -> None:
    _eigh(w, lower, _divided)


def eigh_of_few_rows(w: RoutineWriter, *, lower: bool) -> None:
    """The same numbers, with less around them."""
    _eigh(w, lower, _iterated)


def eigenvalues(w: RoutineWriter, *, lower: bool) -> None:
    """Without eigenvectors."""
    (n,) = w.sizes
    a, solve = w.scratch(n * n), _iterated(w, n)
    with w.items(n * n, n, kinds=(BITS[w.letter], PARTS[w.letter])) as (x, values):
        w.transpose(x, a, n, n)
        w.spoil(solve("N", "L" if lower else "U", a, values), [(values, n)])


def singular_values(w: RoutineWriter) -> None:
    m, n, k = w.sizes
    a = w.scratch(m * n)
    with w.items(m * n, k, kinds=(BITS[w.letter], PARTS[w.letter])) as (x, values):
        w.transpose(x, a, n, m)
        w.spoil(w.lapack("gesdd", "N", m, n, a, m, values, a, m, a, n), [(values, k)])


def svd(w: RoutineWriter, *, full_matrices: bool) -> None:
    """``U`` has ``k`` columns, or as many as rows; ``V^H`` so many rows, or as many as columns."""
    m, n, k = w.sizes
    columns, rows = (m, n) if full_matrices else (k, k)
    a, u, vt = w.scratch(m * n), w.scratch(m * columns), w.scratch(rows * n)
    bits = BITS[w.letter]
    with w.items(m * n, k, m * columns, rows * n, kinds=(bits, PARTS[w.letter], bits, bits)) as (
        x,
        values,
        left,
        right,
    ):
        w.transpose(x, a, n, m)
        failed = w.lapack("gesdd", "A" if full_matrices else "S", m, n, a, m, values, u, m, vt, rows)
        w.transpose(u, left, m, columns)
        w.transpose(vt, right, rows, n)
        w.spoil(failed, [(values, k), (left, m * columns * w.parts), (right, rows * n * w.parts)])
