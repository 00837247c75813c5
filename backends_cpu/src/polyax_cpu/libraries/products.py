"""Matrix products as steps of native programs: a function of the kernel ABI around ``cblas_?gemm`` and ``cblas_?gemv``.

``describe`` says how a ``dot_general`` is one of these, if it is; ``after_copies`` computes the others.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from polyax.ir.aval import ShapedArray
from polyax.reference.rules_together import Shared
from polyax_cpu import compiler, machine_code
from polyax_cpu.libraries import openblas
from polyax_cpu.libraries.routines import LETTERS, PARTS
from polyax_cpu.libraries.sharing import share
from polyax_cpu.llvm import Builder, IrValue, Module
from polyax_cpu.steps import PARALLEL_COST
from polyax_cpu.transposes import transpose_any
from polyax_kernels.host.backend import FUNCTION
from polyax_kernels.host.threads import num_threads
from polyax_kernels.ir.products import Side, Stored, count, grouped, sides, stored, taken

PLAIN = openblas.TRANS[False, False]
BATCH, ROWS, COLUMNS = 0, 1, 2  # what begin..end counts
WIDE = 32
"""Columns of a matrix by which a vector is multiplied from the left, for threads to share them: each would read nearly
all of the memory of a narrower one."""
TOGETHER = 12
"""Rows of a result that threads have multiples of: OpenBLAS's kernels begin anew with each so many, and add up the
terms of one in the order in which they would in the whole."""
FEW, FLAT = 100**3, 1200
"""Products that OpenBLAS adds up for a small result, and elements of one whose right operand alone is transposed: with
registers of 512 bits it has other kernels for as many at most, which add up in another order. Threads' parts of a
larger product are larger, too (``kernel/x86_64/sgemm_small_kernel_permit_skylakex.c`` there)."""
DOTS = 4
"""Rows that are multiplied by a vector together."""
PART, LEAST, LINE = 512, 128, 16
"""Columns that are a product of their own, at most, those that are cut rather than rows, and those of which parts are
multiples. OpenBLAS adds up terms in an order that depends on where the columns end: parts that any number of threads
share give the same bits."""
TURNED, SHORT = 1024, 32
"""Elements of a transposed right operand that are copied in order before the product, if so few terms are added up:
those are what OpenBLAS has no kernels for small matrices for, which take an eighth of the time."""
ELEMENTS = {"s": "float", "d": "double", "c": "{ float, float }", "z": "{ double, double }"}


@dataclass(frozen=True)
class NativeProduct:
    """``C[b] = A[b] B[b]`` for row-major C. Fields are in the order in which the native function reads them.

    Matrices of an operand are ``stride`` apart in groups of ``group``, which are ``apart``.
    """

    split: int
    batch: int
    m: int
    n: int
    k: int
    a_transposed: int
    lda: int
    a_stride: int
    a_apart: int
    b_transposed: int
    ldb: int
    b_stride: int
    b_apart: int
    group: int
    terms: int = 1
    """How many pairs of operands there are, one behind the other; their products are added up."""
    unit: int = 1
    """Matrices, rows or columns that ``begin..end`` counts as one."""
    cuts: int = 0
    """Whether each of these is a product of its own."""

    @property
    def extent(self) -> int:
        """Rows that are left over are the last ones'."""
        if self.split == ROWS and not self.cuts:
            return max(1, self.m // self.unit)
        return -(-(self.batch, self.m, self.n)[self.split] // self.unit)

    @property
    def scalars(self) -> tuple[int, ...]:
        return tuple(self.__dict__.values())

    @property
    def flops(self) -> int:
        return 2 * self.batch * self.m * self.n * self.k


def describe(avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> NativeProduct | None:
    """The product that a ``dot_general`` is; None if it is empty, or if operands would have to be copied."""
    found = grouped(*(both := sides(avals, params)))
    if found is None:
        return None
    group, (left, a_apart), (right, b_apart) = found
    a, b = stored(left, left=True), stored(right, left=False)
    return None if a is None or b is None else _product(both, a, b, (group, a_apart, b_apart))


def operations(avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> int:
    """Scalar operations of a ``dot_general``."""
    left, right = sides(avals, params)
    return 2 * math.prod(map(count, (left.batch, left.free, right.free, left.contracted)))


def terms(avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> int:
    """Products that each element of a ``dot_general`` is the sum of."""
    return count(sides(avals, params)[0].contracted)


def _product(
    both: tuple[Side, Side], a: Stored, b: Stored, groups: tuple[int, int, int] | None = None
) -> NativeProduct | None:
    """``groups``: their size, and how far apart those of each operand are; None: there is one."""
    left, right = both
    batch, m, n, k = (count(digits) for digits in (left.batch, left.free, right.free, left.contracted))
    if not batch * m * n * k:
        return None
    group, *apart = groups or (batch, 0, 0)
    one, other = ((int(x.transposed), x.ld, x.stride, y) for x, y in zip((a, b), apart, strict=True))
    found = NativeProduct(BATCH, batch, m, n, k, *one, *other, group)
    return found if batch > 1 else _of_vector(found) if min(m, n) == 1 else _of_matrices(found)


def _of_vector(p: NativeProduct) -> NativeProduct:
    """A row or a column of the matrix at a time is added to the result, or is an element of it."""
    adds = p.a_transposed if p.n == 1 else not p.b_transposed
    found, extent = replace(p, split=ROWS if p.n == 1 else COLUMNS), max(p.m, p.n)
    if adds:
        return p if extent < WIDE else _in_parts(found, extent)
    return replace(found, unit=DOTS) if extent > LINE else replace(found, cuts=1)


def _of_matrices(p: NativeProduct) -> NativeProduct:
    high = p.m >= p.n or (p.n < LEAST and p.m >= 2 * TOGETHER)
    return replace(p, split=ROWS, unit=_rows_together(p)) if high else _in_parts(replace(p, split=COLUMNS), p.n)


def _rows_together(p: NativeProduct) -> int:
    """As few as are added up in the order of all."""
    least = FEW // (p.n * p.k) + 1 if p.m * p.n * p.k > FEW else 1
    if p.b_transposed and not p.a_transposed and p.m * p.n > FLAT:
        least = max(least, FLAT // p.n + 1)
    return -(-least // TOGETHER) * TOGETHER


def _in_parts(p: NativeProduct, extent: int) -> NativeProduct:
    """If threads may share it, of whichever type its elements are: a power of two of parts, which is even."""
    if max(p.flops // 8, 16 * (p.m * p.k + p.k * p.n + p.m * p.n)) <= PARALLEL_COST:
        return replace(p, unit=extent)
    parts = 2
    while extent > PART * parts:
        parts *= 2
    return replace(p, unit=-(-extent // (parts * LINE)) * LINE, cuts=1)


Arrays = Sequence[np.ndarray]


def after_copies(avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> Callable[[Arrays, Arrays], None]:
    """The function of results and operands for a ``dot_general`` whose operands have to be copied first.

    It calls the BLAS that has no threads of its own: those of another one would spin while devices wait for cores.
    """
    both = sides(avals, params)
    (a, one), (b, other) = (taken(n, side, x, params) for n, (side, x) in enumerate(zip(both, avals, strict=True)))
    product, compute = _product(both, a, b), FUNCTION(function(avals[0].dtype.name))
    numbers = product and _numbers(product)

    def run(outs: Arrays, args: Arrays) -> None:
        if product is None:
            outs[0][...] = 0
            return
        xs = [x if o is None else np.ascontiguousarray(x.transpose(o)) for x, o in zip(args, (one, other), strict=True)]
        pointers = _pointers((*xs, *outs))
        if product.flops > PARALLEL_COST:
            share(product.extent, lambda begin, end: compute(pointers, numbers, begin, end))
        else:
            compute(pointers, numbers, 0, product.extent)

    return run


def adding(dtype: str, product: NativeProduct) -> Callable[[Sequence[Arrays], Sequence[Arrays], Shared], None]:
    """A function of the results and operands of several members: the sum of their products, for each of them."""
    compute = FUNCTION(function(dtype))
    numbers = functools.cache(lambda terms: _numbers(replace(product, terms=terms)))
    parts = min(num_threads(), product.extent) if product.flops > PARALLEL_COST else 1
    shape, before = (product.batch, product.m, product.n), (slice(None),) * product.split

    def run(outs: Sequence[Arrays], args: Sequence[Arrays], shared: Shared) -> None:
        total, *copies = [out.reshape(shape) for (out,) in outs]
        pointers = _pointers([*itertools.chain(*args), total])

        def add(n: int) -> None:
            begin, end = (product.extent * m // parts for m in (n, n + 1))
            compute(pointers, numbers(len(args)), begin, end)
            piece = (*before, slice(begin * product.unit, end * product.unit if end < product.extent else None))
            for copy in copies:
                copy[piece] = total[piece]

        shared(parts, add)

    return run


def _numbers(product: NativeProduct) -> Any:
    return (ctypes.c_int64 * len(product.scalars))(*product.scalars)


def _pointers(arrays: Arrays) -> Any:
    return (ctypes.c_void_p * len(arrays))(*[x.ctypes.data for x in arrays])


@functools.cache
def function(dtype: str) -> int:
    """The address of the native function for a dtype."""
    letter = LETTERS[dtype]
    names = [f"cblas_{letter}gemm", f"cblas_{letter}gemv"]
    imports = {name: openblas.address(name) for name in names}
    loaded = machine_code.written(f"product {letter}", lambda: source(letter), ["product"], imports, level=0)
    _loaded.append(loaded)
    return loaded.address("product")


_loaded: list[compiler.LoadedCode] = []


def source(letter: str) -> str:
    """The text of the function for a letter of BLAS."""
    type = ELEMENTS[letter]
    module = Module(["product"])
    params = [("ptr", "buffers"), ("ptr", "scalars"), ("i64", "begin"), ("i64", "end")]
    b = module.function("void", "product", params)
    buffers, scalars, begin, end = b.args
    fields = [b.load(b.at(scalars, n, "i64"), "i64") for n in range(len(NativeProduct.__dataclass_fields__))]
    split, batch, m, n, k, ta, lda, sa, a_apart, tb, ldb, sb, b_apart, group, terms, unit, cuts = fields
    by_batch, by_rows, by_columns = (split.compare("==", way) for way in (BATCH, ROWS, COLUMNS))
    first, whole = begin * unit, b.select(by_rows, m, b.select(by_columns, n, batch))
    last = b.intrinsic("smin", end * unit, whole)
    last = b.select(by_rows & cuts.compare("==", 0) & (whole - last < unit), whole, last)
    start, stop = b.select(by_batch, 0, first), b.select(by_batch, 1, last)
    length = b.select(cuts.compare("==", 0), stop - start, unit)
    result = b.load(b.at(buffers, terms * 2, "ptr"), "ptr")
    turns = (n * k <= TURNED) & (k < SHORT) & (n > 1) & (m > 1) & ta.compare("==", 0) & tb.compare("!=", 0)
    matrices = (b.select(by_batch, first, 0), b.select(by_batch, last, batch))
    with b.loop(0, terms) as t, b.loop(*matrices) as i, b.loop(start, stop, step=length) as part:
        size = b.intrinsic("smin", length, stop - part)
        row, column = (b.select(way, part, 0) for way in (by_rows, by_columns))
        rows, columns = b.select(by_rows, size, m), b.select(by_columns, size, n)
        a_skip = row * b.select(ta.compare("==", 0), lda, 1)
        b_skip = column * b.select(tb.compare("==", 0), 1, ldb)
        pointers = [b.load(b.at(buffers, t * 2 + n, "ptr"), "ptr") for n in range(2)]
        groups = b.binary("div", i, group)
        within = i - groups * group
        a_place, b_place = (groups * apart + within * step for apart, step in ((a_apart, sa), (b_apart, sb)))
        places = (a_place + a_skip, b_place + b_skip, i * (m * n) + row * n + column)
        x, y, z = (b.at(p, offset, type) for p, offset in zip((*pointers, result), places, strict=True))
        right = (y, tb, ldb)
        if type == PARTS[letter]:
            scratch = b.alloca(type, TURNED)
            with b.when(turns):
                transpose_any(b, (y, ldb), (scratch, n), (k, columns), type)
            right = b.select(turns, scratch, y), b.select(turns, 0, tb), b.select(turns, n, ldb)
        _call(b, letter, (rows, columns, k), (m, n), (x, ta, lda), right, z, t)
    b.ret()
    return module.text()


Matrix = tuple[IrValue, IrValue, IrValue]
"""Pointer, whether it is transposed, leading dimension."""
Vector = tuple[IrValue, IrValue]
"""Pointer, and how far apart elements are."""
Factors = tuple[IrValue, IrValue]
"""Of the product, and of what is there."""
Shape = tuple[IrValue, IrValue]
"""Rows and columns."""


def _call(
    b: Builder, letter: str, sizes: Sequence[IrValue], whole: Shape, x: Matrix, y: Matrix, z: IrValue, term: IrValue
) -> None:
    """Dispatches to a product with a column, to one with a row, and to that of two matrices: by what is ``whole``, so
    that a part of a result is computed as all of it would be."""
    by = factors(b, letter, term)
    (rows, columns, k), (m, n) = sizes, whole
    column, other, row, matrix, end = map(b.fresh, ("column", "other", "row", "matrix", "end"))
    b.branch(n.compare("==", 1), column, other)
    b.start(column)
    _gemv(b, letter, (rows, k), x, (y[0], b.select(y[1].compare("==", 0), y[2], 1)), z, by)
    b.jump(end)
    b.start(other)
    b.branch(m.compare("==", 1), row, matrix)
    b.start(row)
    turned = (y[0], b.const(1, "i64") - y[1], y[2])
    _gemv(b, letter, (columns, k), turned, (x[0], b.select(x[1].compare("==", 0), 1, x[2])), z, by)
    b.jump(end)
    b.start(matrix)
    gemm(b, letter, (*sizes, n), x, y, z, by)
    b.jump(end)
    b.start(end)


def factors(b: Builder, letter: str, term: IrValue) -> Factors:
    """The first of several terms is written, the others are added to it."""
    zero, one = (b.const(x, PARTS[letter]) for x in (0.0, 1.0))
    return _factor(b, letter, one), _factor(b, letter, b.select(term.compare("==", 0), zero, one))


def _factor(b: Builder, letter: str, value: IrValue) -> IrValue:
    """``value`` as BLAS takes it: complex factors are in memory."""
    if PARTS[letter] == ELEMENTS[letter]:
        return value
    pointer = b.alloca(value.type, 2)
    for n, part in enumerate((value, b.const(0.0, value.type))):
        b.store(part, b.at(pointer, n, value.type))
    return pointer


def _int(b: Builder, x: IrValue | int) -> IrValue:
    return b.convert("trunc", x, "i32") if isinstance(x, IrValue) else b.const(x, "i32")


def _trans(b: Builder, flag: IrValue) -> IrValue:
    return _int(b, flag + PLAIN)


def gemm(b: Builder, letter: str, sizes: Sequence[IrValue], x: Matrix, y: Matrix, z: IrValue, by: Factors) -> None:
    """Calls the product of two matrices; ``sizes``: rows, columns, how many terms are added, and how far apart rows of
    the result are."""
    rows, columns, k, ldc = (_int(b, s) for s in sizes)
    b.call(
        "void", f"cblas_{letter}gemm", _int(b, openblas.ROW_MAJOR), _trans(b, x[1]), _trans(b, y[1]), rows, columns, k,
        by[0], x[0], _int(b, x[2]), y[0], _int(b, y[2]), by[1], z, ldc,
    )  # fmt: skip


def _gemv(
    b: Builder,
    letter: str,
    sizes: tuple[IrValue, IrValue],
    x: Matrix,
    y: Vector,
    z: IrValue,
    by: Factors,
) -> None:
    """``sizes``: rows of the matrix and how many terms are added. The stored matrix has them exchanged if it is
    transposed."""
    rows, k = sizes
    plain = x[1].compare("==", 0)
    height, width = b.select(plain, rows, k), b.select(plain, k, rows)
    b.call(
        "void", f"cblas_{letter}gemv", _int(b, openblas.ROW_MAJOR), _trans(b, x[1]), _int(b, height), _int(b, width),
        by[0], x[0], _int(b, x[2]), y[0], _int(b, y[1]), by[1], z, _int(b, 1),
    )  # fmt: skip
