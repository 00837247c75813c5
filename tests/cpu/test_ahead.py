"""Kernels that pass over rows twice fetch the next row meanwhile, if it isn't in the cache anyway."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from cpu.guarded import at_the_end_of_a_page

from polyax_cpu import kernels
from polyax_cpu.emit.emitter import add_kernel
from polyax_cpu.llvm import Module
from polyax_kernels.emit.schedule import choose
from polyax_kernels.ir.expr import Axis, consing, const, fold, index, load, op
from polyax_kernels.ir.kernel import Kernel, Operand, Stage, Store

F32 = np.dtype("float32")


def spread(rows: int, width: int, passes: int = 2) -> Kernel:
    """How far each row's numbers are below its maximum in all; one pass is the maximum, a third goes on from there."""
    row, place = Axis(rows), Axis(width)
    operands = Operand((rows * width,), F32, "in"), Operand((rows,), F32, "out")
    with consing():
        x = load(0, F32, (index(row) * width + index(place),))
        value = fold("max", (place,), (const(-np.inf, F32),), (x,))
        for _ in range(passes - 1):
            value = fold("add", (place,), (const(0, F32),), (op("sub", value, x),))
        return Kernel((row,), (Stage((), (Store(1, (index(row),), value),)),), operands)


def fetches(kernel: Kernel) -> int:
    """The places in the code that ask for memory."""
    module = Module(["rows"])
    add_kernel(module, kernel, choose(kernel), "rows")
    return module.text().count("call void @llvm.prefetch")


SHAPES = {
    "rows of a large array": (1024, 2048, 2, True),
    "small array": (16, 2048, 2, False),
    "short rows": (1 << 15, 64, 2, False),
    "rows longer than the cache": (16, 1 << 17, 2, False),
    "one pass": (1024, 2048, 1, False),
}


@pytest.mark.parametrize(("rows", "width", "passes", "expected"), SHAPES.values(), ids=SHAPES)
def test_only_what_waits_is_fetched(rows: int, width: int, passes: int, expected: bool) -> None:
    assert (fetches(spread(rows, width, passes)) > 0) == expected


def test_rows_are_asked_for_once() -> None:
    assert fetches(spread(1024, 2048, passes=3)) == fetches(spread(1024, 2048)) > 0


def test_nothing_is_read_behind_the_last_row() -> None:
    kernel = spread(1024, 1030)
    x = at_the_end_of_a_page(np.random.default_rng(0).standard_normal(1024 * 1030).astype(F32))
    got = np.zeros(1024, F32)
    pointers = (ctypes.c_void_p * 2)(x.ctypes.data, got.ctypes.data)
    kernels.NativeKernel(kernel)(ctypes.addressof(pointers), None, 0, 1024)
    rows = x.reshape(1024, 1030).astype(np.float64)
    np.testing.assert_allclose(got, (rows.max(1, keepdims=True) - rows).sum(1), 1e-5)
