"""Squares turned around in registers: alone, and as what kernels that read across memory are made of."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from cpu.guarded import at_the_end_of_a_page
from cpu.test_emitter import outcomes
from kernels.building import axes, one_store

from polyax_cpu import kernels, machine_code
from polyax_cpu.llvm import Module
from polyax_cpu.processors import host
from polyax_cpu.transposes import transpose
from polyax_kernels.emit.schedule import choose
from polyax_kernels.ir.expr import consing, index, load, op

TYPES = {"float": np.float32, "double": np.float64, "i8": np.int8, "i16": np.int16, "half": np.float16}


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("side", [1, 2, 8, 16, 32])
def test_squares(type: str, side: int) -> None:
    """Of a larger array, whose rows are further apart."""
    x = np.random.default_rng(0).integers(-99, 99, (side, side + 5)).astype(TYPES[type])
    np.testing.assert_array_equal(turned_around(x, type, side), x[:, :side].T)


def turned_around(x: np.ndarray, type: str, side: int, sizes: tuple[int, int] | None = None) -> np.ndarray:
    module = Module(["turn"])
    b = module.function("void", "turn", [("ptr", "source"), ("ptr", "target")])
    known = None if sizes is None else (b.const(sizes[0], "i64"), b.const(sizes[1], "i64"))
    transpose(b, b.args[0], x.shape[1], b.args[1], side, type, known)
    b.ret()
    library = machine_code.library(module.text(), ["turn"], {}, 1)
    out = np.zeros((side, side), x.dtype)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(library.address("turn"))(x.ctypes.data, out.ctypes.data)
    return out


@pytest.mark.skipif(not host().has_masks, reason="the processor has no masks")
@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("sizes", [(1, 1), (3, 32), (16, 17), (30, 14), (31, 31)])
def test_parts_of_squares(type: str, sizes: tuple[int, int]) -> None:
    """What lies behind the array isn't read: there is no memory."""
    rows, columns = sizes
    x = at_the_end_of_a_page(np.random.default_rng(0).integers(-99, 99, (columns, rows)).astype(TYPES[type]))
    np.testing.assert_array_equal(turned_around(x, type, 32, sizes)[:rows, :columns], x.T)


@pytest.mark.parametrize("shape", [(200, 300), (129, 129), (1000, 20), (33, 640)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "bool", "float16"])
def test_kernels_that_read_across_memory(shape: tuple[int, int], dtype: str) -> None:
    """Whole squares and what is left of them; LLVM has no vectors to find."""
    kind = np.dtype(dtype)
    x, y = (np.random.default_rng(n).integers(0, 2, s).astype(kind) for n, s in enumerate((shape, shape[::-1])))
    with consing():
        grid = axes(*shape[::-1])
        i, j = map(index, grid)
        across, along = load(0, kind, (j, i)), load(1, kind, (i, j))
        value = op("xor" if kind.kind == "b" else "add", across, along)
        kernel = one_store(grid, value, [x, y])
        module = kernels.module_of(kernel)
        got, expected = outcomes(kernel, [x, y])
    np.testing.assert_array_equal(got, expected)
    assert "shufflevector" in module.text() and module.level == 1


def test_no_element_goes_alone_through_whole_squares() -> None:
    with consing():
        grid = axes(320, 320)
        value = load(0, np.dtype(np.float32), (index(grid[1]), index(grid[0])))
        module = kernels.module_of(one_store(grid, value, [np.zeros((320, 320), np.float32)]))
    text = module.text()
    squares = text[: text.index("shufflevector")]
    assert "load float" not in squares
    assert ("load float" in text) != host().has_masks, "what is left takes masks, if there are any"
    assert "alloca [1024" in text or "alloca float, i64 1024" in text


@pytest.mark.parametrize(("kind", "first"), [(np.int8, "i32 0, i32 16, i32 1"), (np.int16, "i32 0, i32 8, i32 1")])
def test_narrow_elements_are_interleaved(kind: type, first: str) -> None:
    """One instruction does that, where it takes several to choose by turns."""
    with consing():
        grid = axes(320, 320)
        value = load(0, np.dtype(kind), (index(grid[1]), index(grid[0])))
        module = kernels.module_of(one_store(grid, value, [np.zeros((320, 320), kind)]))
    assert f"<{first}," in module.text()


@pytest.mark.parametrize("shape", [(16, 4096), (4096, 8), (2048, 21)])
def test_squares_along_short_axes_are_whole(shape: tuple[int, int]) -> None:
    """What is left of a larger one is moved element by element, where the processor has no masks."""
    with consing():
        grid = axes(*shape)
        value = load(0, np.dtype(np.float32), (index(grid[1]), index(grid[0])))
        kernel = one_store(grid, value, [np.zeros(shape[::-1], np.float32)])
        schedule = choose(kernel)
        text = kernels.module_of(kernel).text()
    assert schedule.tile == min(16, 1 << (min(shape).bit_length() - 1))
    assert "shufflevector" in text
