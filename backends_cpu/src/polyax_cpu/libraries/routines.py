"""Routines of LAPACK and BLAS, called for each item of stacks: the loop is native code that the pool may split.

A call reads its arguments from a table of words, two for each: its value for the first item, and the step to the next
item's. Knows the routines' signatures; must not know what they compute.
"""

from __future__ import annotations

import ctypes
import functools
import math
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from polyax_cpu import compiler, machine_code, pool
from polyax_cpu.libraries import openblas
from polyax_cpu.llvm import Builder, IrValue, Module
from polyax_kernels.host.backend import FUNCTION, PARALLEL_COST
from polyax_kernels.lower.libraries.factorizations import LETTERS

SIGNATURES = {
    "potrf": "iiipi",  # order, uplo, n, a, lda
    "getrf": "iiipip",  # order, m, n, a, lda, pivots
    "laswp": "iipiiipi",  # order, n, a, lda, first, last, pivots, step
    "geqrf": "iiipip",  # order, m, n, a, lda, tau
    "orgqr": "iiiipip",  # order, m, n, k, a, lda, tau
    "syevd": "iiiipip",  # order, job, uplo, n, a, lda, w
    "gesdd": "iiiipippipi",  # order, job, m, n, a, lda, s, u, ldu, vt, ldvt
    "trsm": "iiiiiiirpipi",  # order, side, uplo, trans, diag, m, n, alpha, a, lda, b, ldb
}
"""The types of a routine's arguments: ``i`` integer or character, ``p`` pointer, ``r`` real with an integral value."""

WORK = 4
"""Operations for each element and column of a matrix: between a third (``potrf``) and some tens (``gesdd``)."""
_PARALLEL = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 4)


def call(name: str, *args: Any) -> np.ndarray:
    """Calls a routine for each item of the stacks among ``args``; returns for which items it failed.

    The first stack has the dtype of the computation. Other arguments are the same for all items.
    """
    first = next(a for a in args if isinstance(a, np.ndarray))
    results = np.empty(len(first), np.int32)
    words = [word for a in (*args, results) for word in _words(a)]
    table = struct.pack(f"{len(words)}q", *words)
    _run(_library(first.dtype.char).address(name), table, len(first), WORK * first.size * first.shape[-1])
    return results != 0


def _words(x: Any) -> tuple[int, int]:
    if isinstance(x, np.ndarray):
        return x.ctypes.data, x.itemsize * math.prod(x.shape[1:])
    return (ord(x) if isinstance(x, str) else x), 0


def _run(address: int, table: bytes, count: int, cost: int) -> None:
    """The calling thread releases the interpreter's lock."""
    pieces = 1 if cost < PARALLEL_COST else min(count, pool.thread_count())
    if pieces < 2:
        FUNCTION(address)(None, table, 0, count)
        return
    pool.ensure_started()
    parallel = _PARALLEL(pool.symbols()["polyax_parallel"])
    parallel(address, None, table, 0, count, -(-count // pieces), pieces)


@functools.cache
def _library(char: str) -> compiler.LoadedCode:
    """The loops for the dtype with this character, by the names of their routines."""
    _let_nan_through()
    letter = LETTERS[np.dtype(char).name]
    addresses = {symbol: openblas.address(symbol) for symbol in (_symbol(name, letter) for name in SIGNATURES)}
    return machine_code.library(_source(letter), SIGNATURES, addresses, level=0)


def _let_nan_through() -> None:
    """Else a NaN anywhere makes LAPACKE refuse the matrix, where LAPACK computes what doesn't depend on it."""
    ctypes.CFUNCTYPE(None, ctypes.c_int32)(openblas.address("LAPACKE_set_nancheck"))(0)


def _symbol(name: str, letter: str) -> str:
    return f"{'cblas' if name == 'trsm' else 'LAPACKE'}_{letter}{name}"


def _source(letter: str) -> str:
    module = Module(list(SIGNATURES))
    real = {"s": "float", "d": "double"}[letter]
    for name, signature in SIGNATURES.items():
        params = [("ptr", "buffers"), ("ptr", "table"), ("i64", "begin"), ("i64", "end")]
        b = module.function("void", name, params)
        _, table, begin, end = b.args
        with b.loop(begin, end) as item:
            *args, result = _arguments(b, table, item, signature + "p", real)
            b.store(b.call("i32", _symbol(name, letter), *args), result)
        b.ret()
    return module.text()


def _arguments(b: Builder, table: IrValue, item: IrValue, signature: str, real: str) -> Sequence[IrValue]:
    kinds = {"i": ("trunc", "i32"), "p": ("inttoptr", "ptr"), "r": ("sitofp", real)}
    args: list[IrValue] = []
    for n, kind in enumerate(signature):
        first, step = (b.load(b.at(table, 2 * n + k, "i64"), "i64") for k in (0, 1))
        operation, type = kinds[kind]
        args.append(b.convert(operation, first + item * step, type))
    return args
