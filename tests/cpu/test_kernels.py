"""Kernels on disk: code and how rows may be cut, read back by another process, or made anew where that is damaged."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from polyax_cpu import kernels, machine_code, pool
from polyax_kernels.ir.expr import Axis, consing, const, fold, index, load
from polyax_kernels.ir.kernel import Kernel, Operand, Stage, Store

F32 = np.dtype("float32")


def doubled(size: int) -> Kernel:
    axis = Axis(size)
    with consing():
        stage = Stage((), (Store(1, (index(axis),), load(0, F32, (index(axis),)) * 2.0),))
    return Kernel((axis,), (stage,), (Operand((size,), F32, "in"), Operand((size,), F32, "out")))


def sums_of_columns(rows: int, columns: int) -> Kernel:
    column, row = Axis(columns), Axis(rows)
    with consing():
        value = fold("add", (row,), (const(0, F32),), (load(0, F32, (index(row) * columns + index(column),)),))
        stage = Stage((), (Store(1, (index(column),), value),))
    return Kernel((column,), (stage,), (Operand((rows * columns,), F32, "in"), Operand((columns,), F32, "out")))


def run(kernel: kernels.NativeKernel, size: int) -> np.ndarray:
    x, got = np.arange(size, dtype=F32), np.zeros(size, F32)
    pointers = (ctypes.c_void_p * 2)(x.ctypes.data, got.ctypes.data)
    kernel(ctypes.addressof(pointers), None, 0, size)
    return got


@pytest.mark.parametrize("kernel", [doubled(1237), sums_of_columns(4099, 1237)], ids=["doubled", "columns"])
def test_what_is_on_disk_needs_no_schedule(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    made = kernels.NativeKernel(kernel)
    made.find()
    monkeypatch.setattr(kernels, "choose", lambda kernel: 1 // 0)
    found = kernels.NativeKernel(kernel)
    assert found.code.waits and found.cuts == made.cuts
    assert found.cuts == kernels.Cuts(True, kernel.operands[0].shape != kernel.operands[1].shape, 1)


@pytest.mark.parametrize("threads", [1, 2])
def test_what_is_on_disk_is_linked_at_once(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first two have one text, and with it one name."""
    wanted = [doubled(1301), doubled(1303), sums_of_columns(3, 1301)]
    for kernel in wanted:
        kernels.NativeKernel(kernel).find()
    calls = list[int]()
    linked = kernels._linked
    monkeypatch.setattr(kernels, "_linked", lambda codes: calls.append(len({c.name for c in codes})) or linked(codes))
    monkeypatch.setattr(pool, "thread_count", lambda: threads)
    found = [kernels.NativeKernel(kernel) for kernel in wanted]
    with kernels.compiling(found):
        assert calls == [2] and not any(kernel.code.waits for kernel in found)
    for kernel, size in zip(found, (1301, 1303), strict=False):
        np.testing.assert_array_equal(run(kernel, size), 2 * np.arange(size, dtype=F32))
    assert found[2].address != found[0].address and calls == [2]


@pytest.mark.parametrize("head", [b"", b"1 0 1", b"1 0 x kernel", b"1 0 -1 kernel", b"1 0 1 1 kernel", b"1 0 1 \xff"])
def test_what_is_nothing_of_ours_is_made_anew(head: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_code, "kept", lambda key: head + b"\ncode")
    made = kernels.NativeKernel(doubled(1238))
    assert not made.made
    np.testing.assert_array_equal(run(made, 1238), 2 * np.arange(1238, dtype=F32))
