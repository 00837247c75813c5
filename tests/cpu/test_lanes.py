"""Loops by lanes: each length, whole vectors and what is left, on processors with masks and without."""

from __future__ import annotations

import ctypes
import dataclasses
import mmap
import re

import numpy as np
import pytest
from cpu.test_emitter import F32, F64, native, outcomes

from polyax_cpu import compiler, kernels, machine_code, processors
from polyax_cpu.emit import lanes
from polyax_cpu.emit.lanes import LaneIndex, affine
from polyax_cpu.llvm import Builder, Module
from polyax_kernels.emit.numpy import run
from polyax_kernels.ir.expr import Axis, Expr, cast, consing, const, fold, index, load, op, param, where
from polyax_kernels.ir.kernel import Kernel, Operand, Stage, Store

LENGTHS = [*range(1, 20), 31, 32, 33, 40, 63, 64, 65, 96, 100, 127, 128, 129, 200, 1000]


@pytest.fixture(params=["masks", "no masks"])
def host(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Kernels are made as for processors of this kind, and made anew."""
    monkeypatch.setattr(machine_code, "kept", lambda key: None)
    monkeypatch.setattr(machine_code, "keep", lambda key, code: None)
    if request.param == "no masks":
        plain = dataclasses.replace(
            processors.host(), features=processors.host().features.replace("+avx512bw", "-avx512bw")
        )
        monkeypatch.setattr(lanes, "host", lambda: plain)
    elif not processors.host().has_masks:
        pytest.skip("this processor has no masks")
    return request.param


def rows(length: int, value: Expr, dtypes: list[np.dtype], axes: tuple[Axis, ...]) -> Kernel:
    """``value`` of ``axes``, stored in order."""
    shape = tuple(axis.extent for axis in axes)
    operands = [Operand(shape, d, "in") for d in dtypes] + [Operand(shape, value.dtype, "out")]
    return Kernel(axes, (Stage((), (Store(len(dtypes), tuple(map(index, axes)), value),)),), tuple(operands))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "bool", "float16"])
def test_every_length(host: str, dtype: str) -> None:
    """One axis, whose ends are known when the code runs, and rows, whose length is known before."""
    kind, rng = np.dtype(dtype), np.random.default_rng(0)
    for length in LENGTHS:
        for shape in ((length,), (3, length)):
            with consing():
                axes = tuple(Axis(n) for n in shape)
                x, y = (load(n, kind, tuple(map(index, axes))) for n in range(2))
                value = op("xor", x, y) if kind.kind == "b" else op("add", x * x, y)
                kernel = rows(length, value, [kind, kind], axes)
                data = [(rng.normal(size=shape) * 3).astype(kind) for _ in range(2)]
                got, expected = outcomes(kernel, data)
            np.testing.assert_array_equal(got, expected, err_msg=str(shape))


@pytest.mark.parametrize("combine, dtype", [("add", "int32"), ("max", "float32"), ("min", "int8"), ("mul", "float64"),
                                            ("and", "bool"), ("xor", "int64"), ("add", "float16")])  # fmt: skip
def test_folds_of_every_length(host: str, combine: str, dtype: str) -> None:
    kind, rng = np.dtype(dtype), np.random.default_rng(1)
    start = {"and": True, "add": 3, "mul": 2, "max": 0.5, "min": 5, "xor": 9}[combine]
    for length in LENGTHS:
        with consing():
            grid, inner = Axis(3), Axis(length)
            x = load(0, kind, (index(grid), index(inner)))
            value = fold(combine, (inner,), (const(start, kind),), (x,))
            operands = (Operand((3, length), kind, "in"), Operand((3,), kind, "out"))
            kernel = Kernel((grid,), (Stage((), (Store(1, (index(grid),), value),)),), operands)
            data = rng.integers(0, 2, (3, length)) if combine == "mul" else rng.integers(-4, 4, (3, length))
            got, expected = outcomes(kernel, [data.astype(kind)])
        np.testing.assert_array_equal(got, expected, err_msg=str(length))


def test_a_sum_has_the_same_order_in_any_kernel() -> None:
    """Beside an exponential, a wider type, or alone: the same bits."""
    data = np.random.default_rng(2).normal(size=(4, 333)).astype(F32)
    with consing():
        grid, inner = Axis(4), Axis(333)
        x = load(0, F32, (index(grid), index(inner)))
        total = fold("add", (inner,), (const(0.0, F32),), (x,))
        others = [total, total + op("exp", total) * 0.0, cast(cast(total, F64) * 1.0, F32)]
        results = []
        for value in others:
            operands = (Operand((4, 333), F32, "in"), Operand((4,), F32, "out"))
            out = np.zeros(4, F32)
            native(Kernel((grid,), (Stage((), (Store(1, (index(grid),), value),)),), operands), [data, out])
            results.append(out)
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


def test_conditions_on_the_index(host: str) -> None:
    """Masks of loads and stores go together with that of the lanes; uniform reads stay single ones."""
    for length in LENGTHS:
        with consing():
            axis = Axis(length)
            i, n = index(axis), const(length // 2)
            inside = op("and", op("ge", i, const(3)), op("lt", i, n + 3))
            x = load(0, F32, (op("sub", i, const(3)),), inside, const(-1.0, F32))
            y = where(i < n, load(1, F32, (const(0),), op("lt", i, const(2)), const(7.0, F32)), cast(i, F32))
            operands = (
                Operand((max(length // 2, 1),), F32, "in"),
                Operand((1,), F32, "in"),
                Operand((length,), F32, "inout"),
            )
            kernel = Kernel((axis,), (Stage((), (Store(2, (i,), x + y, op("ne", i, const(4))),)),), operands)
            data = [np.arange(max(length // 2, 1), dtype=F32), np.full(1, 0.5, F32)]
            expected, got = np.full(length, 99, F32), np.full(length, 99, F32)
            run(kernel, [*data, expected])
            native(kernel, [*data, got])
        np.testing.assert_array_equal(got, expected, err_msg=str(length))


def at_the_end_of_a_page(values: np.ndarray) -> tuple[mmap.mmap, np.ndarray]:
    """A copy that ends where memory of the process ends."""
    size = mmap.PAGESIZE
    pages = mmap.mmap(-1, 2 * size)
    address = ctypes.addressof(ctypes.c_char.from_buffer(pages))
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    assert protect(ctypes.c_void_p(address + size), ctypes.c_size_t(size), 0) == 0
    copy = np.frombuffer(pages, values.dtype, values.size, size - values.nbytes)
    copy[...] = values
    return pages, copy


@pytest.mark.parametrize("dtype", ["float32", "int8", "float64"])
def test_nothing_is_read_or_written_behind_the_end(host: str, dtype: str) -> None:
    kind = np.dtype(dtype)
    for length in (1, 3, 10, 16, 21, 67):
        _, x = at_the_end_of_a_page(np.arange(length).astype(kind))
        _, out = at_the_end_of_a_page(np.zeros(length, kind))
        with consing():
            axis = Axis(length)
            native(rows(length, op("neg", load(0, kind, (index(axis),))), [kind], (axis,)), [x, out])
        np.testing.assert_array_equal(out, -x)


def test_lengths_that_are_launch_arguments(host: str) -> None:
    for length in (1, 7, 16, 50, 130):
        with consing():
            n = param(0)
            grid, inner = Axis(5), Axis(n)
            x = load(0, F32, (index(grid), index(inner)))
            total = fold("add", (inner,), (const(0.0, F32),), (x,))
            operands = (Operand((5, n), F32, "in"), Operand((5,), F32, "out"))
            kernel = Kernel((grid,), (Stage((), (Store(1, (index(grid),), total),)),), operands)
            data, out = np.arange(5.0 * length, dtype=F32).reshape(5, length), np.zeros(5, F32)
            scalars = (ctypes.c_int64 * 1)(length)
            pointers = (ctypes.c_void_p * 2)(data.ctypes.data, out.ctypes.data)
            kernels.NativeKernel(kernel)(ctypes.addressof(pointers), ctypes.addressof(scalars), 0, 5)
        np.testing.assert_array_equal(out, data.sum(1))


def builder() -> Builder:
    return Module().function("void", "f", [("i64", "n")])


def test_places_equally_far_apart_stay_known() -> None:
    b = builder()
    i, n = LaneIndex(b, b.args[0], 8), b.const(3, "i64")
    moved = affine("add", affine("mul", i, n), b.args[0])
    assert isinstance(moved, LaneIndex) and moved.step == 3
    assert affine("sub", n, i).step == -1 and affine("neg", i).step == -1 and affine("add", i, i).step == 2
    assert not isinstance(affine("sub", moved, affine("mul", i, n)), LaneIndex)  # the same in each lane
    assert affine("mul", i, b.args[0]) is None and affine("max", i, n) is None
    assert affine("add", i, LaneIndex(b, n, 8)) is None


@pytest.mark.parametrize("combine", ["max", "min"])
def test_extrema_of_half_precision_are_those_of_float32(combine: str) -> None:
    """LLVM would take them of float16, for which it calls a function for each element."""
    half = np.dtype("float16")
    with consing():
        grid, inner = Axis(5), Axis(100)
        value = fold(combine, (inner,), (const(0.0, half),), (load(0, half, (index(grid), index(inner))),))
        operands = (Operand((5, 100), half, "in"), Operand((5,), half, "out"))
        kernel = Kernel((grid,), (Stage((), (Store(1, (index(grid),), value),)),), operands)
        module = kernels.module_of(kernel)
        got, expected = outcomes(kernel, [np.random.default_rng(4).normal(size=(5, 100)).astype(half)])
    np.testing.assert_array_equal(got, expected)
    text = str(compiler.optimize(module.text(), module.level))
    assert re.search(rf"llvm\.{combine}imum\.v\d+f32", text) and not re.search(rf"{combine}imum\.(v\d+)?f16", text)


def test_kernels_of_lanes_leave_nothing_to_the_vectoriser() -> None:
    with consing():
        axis = Axis(1000)
        near = rows(1000, op("exp", load(0, F32, (index(axis),))), [F32], (axis,))
        far = Kernel((axis,), (Stage((), (Store(1, (index(axis),), load(0, F32, (index(axis) * 7,))),)),),
                     (Operand((7000,), F32, "in"), Operand((1000,), F32, "out")))  # fmt: skip
        assert kernels.module_of(near).level == 1 and kernels.module_of(far).level == 2
        got, expected = outcomes(far, [np.arange(7000, dtype=F32)])
    np.testing.assert_array_equal(got, expected)


@pytest.mark.skipif(not processors.host().has_masks, reason="without masks, scratch is several vectors")
@pytest.mark.parametrize("size", [5, 10, 16])
def test_scratch_of_one_vector_stays_in_a_register(size: int) -> None:
    """No store to memory, and none under a mask, stands between a stage and those that read what it made."""
    with consing():
        grid, first, second = Axis(30), Axis(size), Axis(size)
        x = load(0, F32, (index(grid), index(first)))
        twice = Store(1, (index(grid), index(second)), load(2, F32, (index(second),)) * 2.0)
        stages = Stage((first,), (Store(2, (index(first),), op("exp", x)),)), Stage((second,), (twice,))
        operands = (Operand((30, size), F32, "in"), Operand((30, size), F32, "out"), Operand((size,), F32, "local"))
        kernel = Kernel((grid,), stages, operands)
        module = kernels.module_of(kernel)
        data = np.random.default_rng(3).normal(size=(30, size)).astype(F32)
        out = np.zeros((30, size), F32)
        native(kernel, [data, out])
    assert "alloca" in module.text() and "alloca" not in str(compiler.optimize(module.text(), module.level))
    np.testing.assert_allclose(out, 2 * np.exp(data), rtol=1e-6)


@pytest.mark.parametrize("along", ["rows", "lanes"])
def test_vectors_that_read_nothing_have_the_address_of_their_array(along: str) -> None:
    """Others may lie where no memory is, which takes hundreds of cycles to find out."""
    with consing():
        row, lane = Axis(300), Axis(256)
        i, j = index(row), index(lane)
        inside = op("ge", i, const(200)) if along == "rows" else op("ge", j, i)
        x = load(0, F32, (op("sub", i, const(200)), op("sub", j, const(200))), inside, const(0.0, F32))
        operands = (Operand((100, 256), F32, "in"), Operand((300, 256), F32, "out"))
        kernel = Kernel((row,), (Stage((lane,), (Store(1, (i, j), x),)),), operands)
        text = kernels.source(kernel)
    places = set(re.findall(r"@llvm\.masked\.load\S*\(ptr align 4 (%\w+),", text))
    assert places and places <= set(re.findall(r"(%\w+) = select i1 %\w+, ptr %\w+, ptr", text))
