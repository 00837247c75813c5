"""Matrices that needn't be symmetric, through LAPACK: their eigenvalues, and the forms on the way to these, of which
symmetric ones have one, too.

What doesn't converge, or isn't finite, is NaN.
"""

from __future__ import annotations

from collections.abc import Callable

from polyax_cpu.libraries.routines import BITS, PARTS, RoutineWriter
from polyax_cpu.llvm import IrValue

PAIRS = {"s": "i64", "d": "<2 x i64>", "c": "i64", "z": "<2 x i64>"}
"""What a complex number is moved as."""


def eig(w: RoutineWriter, *, compute_left_eigenvectors: bool, compute_right_eigenvectors: bool) -> None:
    (n,), wanted = w.sizes, (compute_left_eigenvectors, compute_right_eigenvectors)
    a, numbers = w.scratch(n * n), [w.scratch(n) for _ in range(2 // w.parts)]
    jobs, vectors = ["V" if x else "N" for x in wanted], [w.scratch(n * n) for _ in wanted]
    found, kind = [v for v, x in zip(vectors, wanted, strict=True) if x], PAIRS[w.letter]
    with w.items(n * n, n, *[n * n for _ in found], kinds=[BITS[w.letter], kind, *[kind for _ in found]]) as (
        x,
        values,
        *outs,
    ):
        w.transpose(x, a, n, n)
        places = [p for v in vectors for p in (v, n)]
        failed = _of_finite(w, x, n * n, lambda: w.lapack("geev", *jobs, n, a, n, *numbers, *places))
        _write_values(w, numbers, values, n)
        for v, out in zip(found, outs, strict=True):
            _write_vectors(w, numbers, v, out, n)
        w.spoil(failed, [(values, n * 2), *[(out, n * n * 2) for out in outs]])


def _of_finite(w: RoutineWriter, x: IrValue, count: IrValue, call: Callable[[], IrValue]) -> IrValue:
    """What the routine says; not 0 without calling it where a number isn't finite: then it may never end."""
    b, type = w.b, PARTS[w.letter]
    zero = b.const(0.0, type)

    def add(n: IrValue, sums: list[IrValue]) -> list[IrValue]:
        return [b.intrinsic("fma", b.load(b.at(x, n, type), type), zero, sums[0])]

    (total,) = b.carry(b.const(0, "i64"), count * w.parts, [zero], add)
    return b.choose(total.compare("==", 0.0), call, b.const(1, "i32"))


def _write_values(w: RoutineWriter, numbers: list[IrValue], values: IrValue, n: IrValue) -> None:
    """Of real matrices LAPACK gives real and imaginary parts apart."""
    if w.parts == 2:
        return w.copy(numbers[0], values, n)
    with w.b.loop(0, n) as i:
        for part, source in enumerate(numbers):
            w.b.store(_number(w, source, i), _place(w, values, i * 2 + part))
    return None


def _write_vectors(w: RoutineWriter, numbers: list[IrValue], vectors: IrValue, out: IrValue, n: IrValue) -> None:
    """Of a pair of conjugate eigenvalues, the vectors' real part comes with the first, the imaginary one with the
    second."""
    if w.parts == 2:
        return w.transpose(vectors, out, n, n)
    b = w.b
    with b.loop(0, n) as j:
        imaginary = _number(w, numbers[1], j)
        real, first, second = (imaginary.compare(relation, 0.0) for relation in ("==", ">", "<"))
        re, im = j - b.convert("zext", second, "i64"), j + b.convert("zext", first, "i64")
        with b.loop(0, n) as i:
            value = _number(w, vectors, im * n + i)
            b.store(_number(w, vectors, re * n + i), _place(w, out, (i * n + j) * 2))
            b.store(b.select(real, 0.0, b.select(second, -value, value)), _place(w, out, (i * n + j) * 2 + 1))
    return None


def _place(w: RoutineWriter, pointer: IrValue, n: IrValue) -> IrValue:
    return w.b.at(pointer, n, PARTS[w.letter])


def _number(w: RoutineWriter, pointer: IrValue, n: IrValue) -> IrValue:
    return w.b.load(_place(w, pointer, n), PARTS[w.letter])


def schur(w: RoutineWriter, *, compute_schur_vectors: bool) -> None:
    (n,) = w.sizes
    a, vectors, numbers = w.scratch(n * n), w.scratch(n * n), [w.scratch(n) for _ in range(2 // w.parts)]
    unsorted, count, job = w.b.pointer("null"), w.b.alloca("i32"), "V" if compute_schur_vectors else "N"
    sources = [a, vectors][: 1 + compute_schur_vectors]
    with w.items(n * n, *[n * n for _ in sources]) as (x, *outs):
        w.transpose(x, a, n, n)
        call = lambda: w.lapack("gees", job, "N", unsorted, n, a, n, count, *numbers, vectors, n)
        failed = _of_finite(w, x, n * n, call)
        for source, out in zip(sources, outs, strict=True):
            w.transpose(source, out, n, n)
        w.spoil(failed, [(out, n * n * w.parts) for out in outs])


def hessenberg(w: RoutineWriter) -> None:
    (n,) = w.sizes
    a = w.scratch(n * n)
    with w.items(n * n, n * n, n - 1) as (x, packed, taus):
        w.transpose(x, a, n, n)
        w.lapack("gehrd", n, 1, n, a, n, taus)
        w.transpose(a, packed, n, n)


def tridiagonal(w: RoutineWriter, *, lower: bool) -> None:
    (n,) = w.sizes
    a, bits, real = w.scratch(n * n), BITS[w.letter], PARTS[w.letter]
    with w.items(n * n, n * n, n, n - 1, n - 1, kinds=(bits, bits, real, real, bits)) as (x, packed, *beside):
        w.transpose(x, a, n, n)
        w.lapack("sytrd", "L" if lower else "U", n, a, n, *beside)
        w.transpose(a, packed, n, n)
