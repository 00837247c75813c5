"""Linear algebra through LAPACK and BLAS: which routines compute a primitive, and how matrices are laid out for them.

LAPACK stores matrices by columns, we by rows: a routine gets our memory as the transpose, or a transposed copy.
What fails (no convergence, not positive definite) is NaN. Native code calls what is written here, in loops and outside.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from polyax.ir.aval import ShapedArray
from polyax.ir.primitive import Primitive
from polyax.ops import reflections, solve
from polyax.ops.eig import eig_p
from polyax.ops.qr import qr_p
from polyax.ops.schur import schur_p
from polyax.ops.spectral import eigh_p, householder_product_p, svd_p
from polyax_cpu import compiler
from polyax_cpu.libraries import (
    alone,
    interleaved,
    jacobi,
    openblas,
    reflecting,
    routines,
    small,
    spectral,
    unsymmetric,
)
from polyax_cpu.libraries.routines import BITS, LETTERS, RoutineWriter
from polyax_kernels.lower.libraries.factorizations import why_not
from polyax_kernels.lower.lowering import Call, Lowering

Avals = Sequence[ShapedArray]

# --- primitives ------------------------------------------------------------------------------------------------------


def _cholesky(w: RoutineWriter) -> None:
    """Our lower triangle is the upper one of LAPACK, and ``L L^H`` is the transpose of ``U^H U``."""
    (n,) = w.sizes
    with w.items(n * n, n * n) as (x, factor):
        w.copy(x, factor, n * n)
        w.spoil(w.lapack("potrf", "U", n, factor, n), [(factor, n * n * w.parts)])
        with w.b.loop(0, n) as i:
            w.clear(w.at(factor, i * n + i + 1), n - 1 - i)


def _triangular_solve(
    w: RoutineWriter, *, left_side: bool, lower: bool, transpose_a: bool, conjugate_a: bool, unit_diagonal: bool
) -> None:
    """Of one system the range counts right sides, of several the systems."""
    m, n, alone = w.sizes
    side, uplo = openblas.LEFT if left_side else openblas.RIGHT, openblas.LOWER if lower else openblas.UPPER
    diagonal = openblas.UNIT if unit_diagonal else openblas.GENERAL
    size, others, one, by_sides = *((m, n) if left_side else (n, m)), w.one(), alone.compare("!=", 0)
    first, last = (w.b.select(by_sides, x, y) for x, y in ((w.begin, 0), (w.end, others)))
    rows, columns = (m, last - first) if left_side else (last - first, n)
    with w.items(size * size, m * n, m * n, alone=by_sides) as (a, *both):
        b, x = (w.at(p, first if left_side else first * n) for p in both)
        with w.b.loop(0, rows) as i:
            w.copy(w.at(b, i * n), w.at(x, i * n), columns)
        w.blas(
            "trsm", side, uplo, openblas.TRANS[transpose_a, conjugate_a], diagonal, rows, columns, one, a, size, x, n
        )


def _lu(w: RoutineWriter) -> None:
    """LAPACK counts pivots from 1; a singular matrix has factors too."""
    m, n, k = w.sizes
    a, bits = w.scratch(m * n), BITS[w.letter]
    with w.items(m * n, m * n, k, m, kinds=(bits, bits, "i32", "i32")) as (x, packed, pivots, permutation):
        w.transpose(x, a, n, m)
        w.lapack("getrf", m, n, a, m, pivots)
        w.transpose(a, packed, m, n)
        _permute(w, pivots, k, permutation, m)


def _permute(w: RoutineWriter, pivots: Any, count: Any, permutation: Any, rows: Any) -> None:
    """The order that the exchanges of ``pivots`` make, which from here on count from 0."""
    b = w.b
    with b.loop(0, rows) as i:
        b.store(b.convert("trunc", i, "i32"), b.at(permutation, i, "i32"))
    with b.loop(0, count) as i:
        place = b.at(pivots, i, "i32")
        other = b.load(place, "i32") - 1
        b.store(other, place)
        here, there = b.at(permutation, i, "i32"), b.at(permutation, b.convert("sext", other, "i64"), "i32")
        first, second = b.load(here, "i32"), b.load(there, "i32")
        b.store(second, here)
        b.store(first, there)


def _qr(w: RoutineWriter) -> None:
    m, n, k, least, most = w.sizes
    a, taus = w.scratch(m * most), w.scratch(least)
    with w.items(m * n, m * k, k * n) as (x, q, r):
        _factor_qr(w, a, taus, x, q, r)


def _factor_qr(w: RoutineWriter, a: Any, taus: Any, x: Any, q: Any, r: Any) -> None:
    m, n, *_ = w.sizes
    w.transpose(x, a, n, m)
    w.lapack("geqrf", m, n, a, m, taus)
    _write_qr(w, a, taus, q, r)


def _pivoted_qr(w: RoutineWriter) -> None:
    """LAPACK counts columns from 1, and takes 0 for those that may go anywhere."""
    m, n, k, least, most = w.sizes
    a, taus, b, bits = w.scratch(m * most), w.scratch(least), w.b, BITS[w.letter]
    with w.items(m * n, m * k, k * n, n, kinds=(bits, bits, bits, "i32")) as (x, q, r, order):
        w.transpose(x, a, n, m)
        with b.loop(0, n) as i:
            b.store(b.const(0, "i32"), b.at(order, i, "i32"))
        w.lapack("geqp3", m, n, a, m, order, taus)
        _write_qr(w, a, taus, q, r)
        with b.loop(0, n) as i:
            b.store(b.load(b.at(order, i, "i32"), "i32") - 1, b.at(order, i, "i32"))


def _write_qr(w: RoutineWriter, a: Any, taus: Any, q: Any, r: Any) -> None:
    """The reflections are left below R; Q is their product, of ``k`` columns."""
    m, n, k, least, _ = w.sizes
    w.clear(r, k * n)
    _upper(w, a, m, r, least, n)
    w.lapack("orgqr", m, k, least, a, m, taus)
    w.transpose(a, q, m, k)


def _r(w: RoutineWriter) -> None:
    """Without Q."""
    m, n, k, least = w.sizes
    a, taus = w.scratch(m * n), w.scratch(least)
    with w.items(m * n, k * n) as (x, r):
        w.transpose(x, a, n, m)
        w.lapack("geqrf", m, n, a, m, taus)
        w.clear(r, k * n)
        _upper(w, a, m, r, least, n)


def _upper(w: RoutineWriter, a: Any, height: Any, r: Any, rows: Any, columns: Any) -> None:
    """The upper triangle of ``a``, which is stored by columns of such a height, in the first rows of ``r``."""
    with w.b.loop(0, rows) as i, w.b.loop(i, columns) as j:
        w.move(a, j * height + i, r, i * columns + j)


def _geqrf(w: RoutineWriter) -> None:
    """R, with the reflections below it."""
    m, n, k = w.sizes
    a = w.scratch(m * n)
    with w.items(m * n, m * n, k) as (x, packed, taus):
        w.transpose(x, a, n, m)
        w.lapack("geqrf", m, n, a, m, taus)
        w.transpose(a, packed, m, n)


def _householder_product(w: RoutineWriter) -> None:
    m, n, k = w.sizes
    a = w.scratch(m * n)
    with w.items(m * n, k, m * n) as (x, taus, q):
        w.transpose(x, a, n, m)
        w.lapack("orgqr", m, n, k, a, m, taus)
        w.transpose(a, q, m, n)


def _ormqr(w: RoutineWriter, *, left: bool, transpose: bool) -> None:
    """Without Q itself, which is square."""
    height, width, count, m, n = w.sizes
    a, c = w.scratch(height * width), w.scratch(m * n)
    adjoint = "C" if w.parts == 2 else "T"
    with w.items(height * width, count, m * n, m * n) as (reflected, taus, x, y):
        w.transpose(reflected, a, width, height)
        w.transpose(x, c, n, m)
        side, form = "L" if left else "R", adjoint if transpose else "N"
        w.lapack("ormqr", side, form, m, n, count, a, height, taus, c, m)
        w.transpose(c, y, m, n)


# --- calls -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NativeFactors:
    """What a step says of the factorization that it calls: sizes of matrices, and how many there are."""

    scalars: tuple[int, ...]
    extent: int
    flops: int


class _Way(NamedTuple):
    """Who writes the function, with which of the primitive's parameters; its sizes by those of operands and results;
    operations for each element and column of a matrix; who writes it for many small matrices, and for which; how many
    parts one matrix has that can be computed apart; who writes it for one small matrix."""

    write: Callable[..., None]
    sizes: Callable[[Avals, Avals], tuple[int, ...]]
    work: int
    flags: tuple[str, ...] = ()
    many: Callable[..., None] | None = None
    fits: Callable[[Avals, str], bool] = interleaved.fits
    parts: Callable[[Avals, Mapping[str, Any]], int] | None = None
    alone: Callable[[int], Callable[..., None]] | None = None
    """Who writes it for one small matrix, whose rows are vectors of so many lanes."""

    def writer(self, args: Avals, outs: Avals, letter: str) -> Callable[..., None]:
        if self.many is not None and self.fits(args, letter):
            return self.many
        lanes = self.alone and alone.lanes(args, outs, letter)
        return self.alone(lanes) if self.alone and lanes else self.write


def _order(args: Avals, outs: Avals) -> tuple[int, ...]:
    return (args[0].shape[-1],)


def _matrix(args: Avals, outs: Avals) -> tuple[int, ...]:
    m, n = args[0].shape[-2:]
    return m, n, min(m, n)


def _qr_sizes(args: Avals, outs: Avals) -> tuple[int, ...]:
    (m, n), k = args[0].shape[-2:], outs[0].shape[-1]
    return m, n, k, min(m, n), max(n, k)


def _r_sizes(args: Avals, outs: Avals) -> tuple[int, ...]:
    (m, n), k = args[0].shape[-2:], outs[0].shape[-2]
    return m, n, k, min(m, n)


def _ormqr_sizes(args: Avals, outs: Avals) -> tuple[int, ...]:
    return *args[0].shape[-2:], args[1].shape[-1], *args[2].shape[-2:]


def _product_sizes(args: Avals, outs: Avals) -> tuple[int, ...]:
    return *args[0].shape[-2:], args[1].shape[-1]


def _system(args: Avals, outs: Avals) -> tuple[int, ...]:
    """Rows and columns of the right side, and whether there is one system alone."""
    return *args[1].shape[-2:], int(math.prod(args[1].shape[:-2]) == 1)


def _right_sides(args: Avals, params: Mapping[str, Any]) -> int:
    return args[1].shape[-1 if params["left_side"] else -2]


_FLAGS = ("left_side", "lower", "transpose_a", "conjugate_a", "unit_diagonal")
_WAYS: dict[Primitive, _Way] = {
    solve.cholesky_p: _Way(_cholesky, _order, 1, many=interleaved.cholesky, alone=alone.cholesky),
    solve.triangular_solve_p: _Way(
        _triangular_solve, _system, 1, _FLAGS, interleaved.triangular_solve, parts=_right_sides
    ),
    solve.lu_p: _Way(_lu, _matrix, 2, many=interleaved.lu),
    reflections.geqrf_p: _Way(_geqrf, _matrix, 4, many=reflecting.geqrf),
    reflections.ormqr_p: _Way(_ormqr, _ormqr_sizes, 4, ("left", "transpose")),
    reflections.hessenberg_p: _Way(unsymmetric.hessenberg, _order, 6),
    reflections.tridiagonal_p: _Way(unsymmetric.tridiagonal, _order, 3, ("lower",)),
    eig_p: _Way(unsymmetric.eig, _order, 50, ("compute_left_eigenvectors", "compute_right_eigenvectors")),
    schur_p: _Way(unsymmetric.schur, _order, 50, ("compute_schur_vectors",)),
    householder_product_p: _Way(_householder_product, _product_sizes, 4, many=reflecting.householder_product),
}
_QR = _Way(_qr, _qr_sizes, 8, many=reflecting.qr, alone=lambda lanes: alone.qr(lanes, _factor_qr))
_PIVOTED_QR = _Way(_pivoted_qr, _qr_sizes, 8)
_R = _Way(_r, _r_sizes, 4, many=reflecting.r_alone)
_SINGULAR_VALUES = _Way(spectral.singular_values, _matrix, 20, (), jacobi.singular_values, jacobi.fits)
_SVD = _Way(spectral.svd, _matrix, 60, ("full_matrices",), jacobi.svd, jacobi.fits)
_EIGENVALUES = _Way(spectral.eigenvalues, _order, 15, ("lower",), jacobi.eigenvalues, jacobi.fits)
_EIGH, _SMALL_EIGH = (
    _Way(write, _order, 30, ("lower",), jacobi.eigh, jacobi.fits)
    for write in (spectral.eigh, spectral.eigh_of_few_rows)
)


Chooser = Callable[[Avals, Mapping[str, Any]], _Way]
"""The way for operands and parameters."""


def _native(way: Chooser) -> Callable[..., tuple[int, NativeFactors]]:
    """What compiled plans call: the address of the function, and what it is to compute."""

    def native(args: Avals, outs: Avals, params: Mapping[str, Any]) -> tuple[int, NativeFactors]:
        chosen, x = way(args, params), args[-1] if len(args[-1].shape) == len(args[0].shape) else args[0]
        flags = tuple((name, params[name]) for name in chosen.flags)
        letter = LETTERS[x.dtype.name]
        code = _function(
            chosen.writer(args, outs, letter), letter, flags, len(chosen.sizes(args, outs)), len(args) + len(outs)
        )
        flops, count = chosen.work * args[0].size * x.shape[-1], math.prod(x.shape[:-2])
        extent = chosen.parts(args, params) if count == 1 and chosen.parts else count
        return code.address("compute"), NativeFactors(chosen.sizes(args, outs), extent, flops)

    return native


@functools.cache
def _function(
    write: Callable[..., None], letter: str, flags: tuple[tuple[str, Any], ...], sizes: int, buffers: int
) -> compiler.LoadedCode:
    return routines.load(letter, sizes, buffers, lambda w: write(w, **dict(flags)))


def _declines(avals: Avals, params: Mapping[str, Any]) -> str | None:
    return why_not(avals, {**params, "pivoting": False}, LETTERS)


def _call(way: Chooser, inlined: Any = small.never, some: Callable[..., Call | None] | None = None) -> Call:
    return small.InlinedCall(native=_native(way), why_not=_declines, inlined=inlined, some=some)


def _always(way: _Way) -> Chooser:
    return lambda args, params: way


def _only(way: _Way, *wanted: bool) -> Callable[..., Call | None]:
    """A call that gives only these results, where no others are read."""
    call = _call(_always(way))
    return lambda read, params: call if read == wanted else None


def _which_qr(args: Avals, params: Mapping[str, Any]) -> _Way:
    return _PIVOTED_QR if params["pivoting"] else _QR


def _eigh(args: Avals, params: Mapping[str, Any]) -> _Way:
    return _SMALL_EIGH if args[0].shape[-1] <= spectral.QL_ROWS else _EIGH


def _svd(args: Avals, params: Mapping[str, Any]) -> _Way:
    return _SVD if params["compute_uv"] else _SINGULAR_VALUES


_INLINED = {solve.cholesky_p: small.cholesky, solve.triangular_solve_p: small.triangular_solve, solve.lu_p: small.lu}
LOWERINGS: dict[Primitive, Lowering] = {
    **{p: _call(_always(way), _INLINED.get(p, small.never)) for p, way in _WAYS.items()},
    qr_p: _call(_which_qr, some=_only(_R, False, True)),
    eigh_p: _call(_eigh, some=_only(_EIGENVALUES, False, True)),
    svd_p: _call(_svd, some=_only(_SINGULAR_VALUES, True, False, False)),
}
