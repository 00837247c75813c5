"""Compiles a loop over one elementary function, for tests of the functions alone."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from polyax_cpu import machine_code, pool, processors
from polyax_cpu.emit.lanes import LaneIndex, LaneLoops
from polyax_cpu.functions import table
from polyax_cpu.llvm import BITS, Builder, IrValue, Module

DTYPES = {"float": np.float32, "double": np.float64}


def source(name: str, arity: int, type: str = "float", shared: bool = False, lanes: bool = False) -> str:
    """A loop whose vectors LLVM makes, or one that is written by ``lanes``."""
    module = Module(["k"])
    params = [("ptr noalias", f"b{i}") for i in range(arity + 1)] + [("i64", "n")]
    b = module.function("void", "k", params, f'"prefer-vector-width"="{processors.host().vector_bits}"')
    *pointers, out, n = b.args
    if lanes:
        _by_lanes(b, name, pointers, out, n, type, shared)
    else:
        with b.loop(b.const(0, "i64"), n) as i:
            values = [b.load(b.at(p, i, type), type) for p in pointers]
            b.store(table.call(name, *values, shared=shared), b.at(out, i, type))
    b.ret()
    return module.text()


def _by_lanes(
    b: Builder, name: str, pointers: Sequence[IrValue], out: IrValue, n: IrValue, type: str, shared: bool
) -> None:
    width = processors.host().vector_bits // BITS[type]
    loops = LaneLoops(b, width, width)

    def body(i: IrValue) -> None:
        other = b.const(0, type)
        at = i.index if isinstance(i, LaneIndex) else i
        values = [b.load_lanes(b.at(p, at, type), type, i.lanes, loops.mask, other) for p in pointers]
        b.store_lanes(table.call(name, *values, shared=shared), b.at(out, at, type), loops.mask)

    loops.loop(b.const(0, "i64"), n, body, side=2, straight=False)


@cache
def compiled(
    name: str, arity: int = 1, type: str = "float", shared: bool = False, lanes: bool = False
) -> Callable[..., np.ndarray]:
    """``f(*arrays) -> array``, the function applied to each element by native code."""
    text = source(name, arity, type, shared, lanes)
    library = machine_code.library(text, ["k"], pool.symbols_for(text.encode()))
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (arity + 1), ctypes.c_int64)(library.address("k"))
    function.library = library  # type: ignore[attr-defined]  # lives as long as the function

    def apply(*arrays: np.ndarray) -> np.ndarray:
        arrays = tuple(np.ascontiguousarray(a, DTYPES[type]) for a in arrays)
        out = np.empty_like(arrays[0])
        function(*(a.ctypes.data for a in arrays), out.ctypes.data, out.size)
        return out

    return apply
