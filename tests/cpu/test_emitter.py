"""The LLVM emitter against the NumPy interpreter of kernels, which defines what they mean."""

from __future__ import annotations

import ctypes
import re

import numpy as np
import pytest

from polyax.ir.dtypes import bfloat16
from polyax_cpu import compiler, kernels, machine_code, processors
from polyax_kernels.emit.numpy import run
from polyax_kernels.ir import expr, scalars
from polyax_kernels.ir.expr import Axis, cast, consing, const, fold, index, load, op
from polyax_kernels.ir.kernel import Kernel, Operand, Stage, Store

F32, F64, I32, I64, BOOL = (np.dtype(n) for n in ("float32", "float64", "int32", "int64", "bool"))
SIZE = 211


def native(kernel: Kernel, arrays: list[np.ndarray], begin: int = 0, end: int | None = None) -> None:
    function = kernels.NativeKernel(kernel)
    pointers = (ctypes.c_void_p * len(arrays))(*[a.ctypes.data for a in arrays])
    extent = kernel.grid[0].extent if kernel.grid else 1
    assert isinstance(extent, int)
    function(ctypes.addressof(pointers), None, begin, extent if end is None else end)


def elementwise(name_or_cast: str | np.dtype, dtypes: list[np.dtype]) -> Kernel:
    """A kernel that applies one scalar operation, or a cast to a dtype."""
    axis = Axis(SIZE)
    reads = [load(n, d, (index(axis),)) for n, d in enumerate(dtypes)]
    x = op(name_or_cast, *reads) if isinstance(name_or_cast, str) else cast(reads[0], name_or_cast)
    operands = [Operand((SIZE,), d, "in") for d in dtypes] + [Operand((SIZE,), x.dtype, "out")]
    return Kernel((axis,), (Stage((), (Store(len(dtypes), (index(axis),), x),)),), tuple(operands))


def values(dtype: np.dtype, rng: np.random.Generator) -> np.ndarray:
    """Ordinary numbers and those that make trouble."""
    if dtype.kind == "b":
        return rng.random(SIZE) < 0.5
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        numbers = [0, 1, 2, 7, 31, 64, 100, limits.min, limits.max, limits.max - 1, limits.min + 1]
        return rng.choice(np.array(numbers + [-1, -2, -7] * (dtype.kind == "i"), object), SIZE).astype(dtype)
    troubles = rng.choice(np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1, -1, 0.5, 2.5, -2.5, 3e9, -3e19]), SIZE)
    return np.where(rng.random(SIZE) < 0.3, troubles, rng.normal(size=SIZE) * 3).astype(dtype)


def outcomes(kernel: Kernel, inputs: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    expected, got = (np.zeros(kernel.operands[-1].shape, kernel.operands[-1].dtype) for _ in range(2))  # type: ignore[arg-type]
    run(kernel, [*inputs, expected])
    native(kernel, [*inputs, got])
    return got, expected


CASES = [
    (name, dtype)
    for name, scalar in scalars.TABLE.items()
    for dtype in sorted(scalar.dtypes, key=str)
    if dtype.name in ("bool", "int8", "uint32", "int32", "int64", "float32", "float64")
]


@pytest.mark.parametrize("name", scalars.TABLE)
def test_scalar_operations_are_total(name: str) -> None:
    rng = np.random.default_rng(0)
    for dtype in [d for n, d in CASES if n == name]:
        dtypes = [BOOL] * (name == "select") + [dtype] * (scalars.TABLE[name].arity - (name == "select"))
        with consing():
            got, expected = outcomes(elementwise(name, dtypes), [values(d, rng) for d in dtypes])
        if got.dtype.kind == "f":
            tolerance = 1e-13 if got.dtype == F64 else 1e-6
            lost = tolerance if name in ("digamma", "lgamma") else 0  # close to zeros NumPy's definitions lose digits
            np.testing.assert_allclose(got, expected, rtol=tolerance, atol=lost, err_msg=str(dtype))
        else:
            np.testing.assert_array_equal(got, expected, err_msg=str(dtype))


CASTS = ("bool", "int8", "uint8", "int32", "uint32", "int64", "float32", "float64")


@pytest.mark.parametrize("name", ["div", "floordiv", "rem"])
@pytest.mark.parametrize("dtype", [np.dtype(f"{sign}int{n}") for sign in ("", "u") for n in (8, 16, 32)], ids=str)
def test_quotients_beside_whole_numbers(dtype: np.dtype, name: str) -> None:
    """Divisors of all sizes, and dividends that are a multiple of them or one off: floats that divide may round up."""
    limits, rng = np.iinfo(dtype), np.random.default_rng(0)
    y = np.maximum(limits.max >> rng.integers(0, limits.bits - 1, SIZE), 1) * rng.choice(
        [1, -1 if limits.min else 1], SIZE
    )
    most = limits.max // np.abs(y)
    x = np.where(rng.random(SIZE) < 0.5, most, most // 2) * y + rng.integers(-1, 2, SIZE)
    inputs = [np.clip(x, limits.min, limits.max).astype(dtype), y.astype(dtype)]
    with consing():
        got, expected = outcomes(elementwise(name, [dtype, dtype]), inputs)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("name", ["div", "floordiv", "rem", "mod"])
@pytest.mark.parametrize("dtype", [np.dtype(f"{sign}int{n}") for sign in ("", "u") for n in (8, 16, 32, 64)], ids=str)
def test_quotients_by_constants_need_no_floats(dtype: np.dtype, name: str) -> None:
    """Processors multiply instead of dividing."""
    limits, axis = np.iinfo(dtype), Axis(SIZE)
    numbers = values(dtype, np.random.default_rng(0))
    operands = (Operand((SIZE,), dtype, "in"), Operand((SIZE,), dtype, "out"))
    for divisor in (1, 2, 3, 7, 64, 100, 0, -1, -3, limits.min, limits.max):
        if divisor < limits.min:
            continue
        with consing():
            x = op(name, load(0, dtype, (index(axis),)), const(divisor, dtype))
            kernel = Kernel((axis,), (Stage((), (Store(1, (index(axis),), x),)),), operands)
            got, expected = outcomes(kernel, [numbers])
            text = kernels.source(kernel)
        np.testing.assert_array_equal(got, expected, err_msg=f"by {divisor}")
        assert divisor in (0, -1) or "itofp" not in text


@pytest.mark.parametrize("source", [*CASTS, "float16", "bfloat16"])
def test_casts_are_total(source: str) -> None:
    rng = np.random.default_rng(1)
    types = {"bfloat16": bfloat16} | {name: np.dtype(name) for name in ("float16", *CASTS)}
    for target, to in types.items():
        of = types[source]
        with consing():
            got, expected = outcomes(elementwise(to, [of]), [values(F32 if of == bfloat16 else of, rng).astype(of)])
        np.testing.assert_array_equal(got.astype(F64), expected.astype(F64), err_msg=f"{source} to {target}")


def test_masked_loads_read_nothing_outside() -> None:
    with consing():
        axis = Axis(20)
        i = index(axis)
        inside = op("and", op("ge", i, const(5)), op("lt", i, const(15)))
        x = load(0, F32, (op("sub", i, const(5)),), inside, const(-1.0, F32))
        operands = (Operand((10,), F32, "in"), Operand((20,), F32, "out"))
        kernel = Kernel((axis,), (Stage((), (Store(1, (i,), x),)),), operands)
        got, expected = outcomes(kernel, [np.arange(10, dtype=F32)])
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("combine", ["add", "mul", "max", "min"])
@pytest.mark.parametrize("order", ["rows", "columns"])
def test_folds(combine: str, order: str) -> None:
    rng = np.random.default_rng(2)
    rows, columns = 37, 65
    init = {"add": 0.0, "mul": 1.0, "max": -np.inf, "min": np.inf}[combine]
    with consing():
        grid, inner = Axis(rows if order == "rows" else columns), Axis(columns if order == "rows" else rows)
        at = (index(grid), index(inner)) if order == "rows" else (index(inner), index(grid))
        x = fold(combine, (inner,), (const(init, F32),), (load(0, F32, at),))
        operands = (Operand((rows, columns), F32, "in"), Operand((grid.extent,), F32, "out"))
        kernel = Kernel((grid,), (Stage((), (Store(1, (index(grid),), x),)),), operands)
        got, expected = outcomes(kernel, [rng.uniform(0.9, 1.1, (rows, columns)).astype(F32)])
    np.testing.assert_allclose(got, expected, rtol=2e-6)


def test_argmax_takes_the_first_of_equal_ones_and_nan_before_all() -> None:
    data = np.array([[1, 3, 3, 2], [1, np.nan, 5, np.nan], [-1, -1, -1, -1]], F32)
    with consing():
        grid, inner = Axis(3), Axis(4)
        value = load(0, F32, (index(grid), index(inner)))
        best = fold("argmax", (inner,), (const(-np.inf, F32), const(0, I64)), (value, index(inner)), 1)
        operands = (Operand((3, 4), F32, "in"), Operand((3,), I64, "out"))
        kernel = Kernel((grid,), (Stage((), (Store(1, (index(grid),), best),)),), operands)
        got, _ = outcomes(kernel, [data])
    np.testing.assert_array_equal(got, data.argmax(1))


def test_a_part_of_the_range_leaves_the_rest_alone() -> None:
    with consing():
        axis = Axis(100)
        store = Store(1, (index(axis),), op("neg", load(0, F32, (index(axis),))))
        kernel = Kernel((axis,), (Stage((), (store,)),), (Operand((100,), F32, "in"), Operand((100,), F32, "out")))
        x, out = np.ones(100, F32), np.zeros(100, F32)
        native(kernel, [x, out], 13, 77)
    np.testing.assert_array_equal(out, [0] * 13 + [-1] * 64 + [0] * 23)


def test_scatter_add_accumulates_in_order() -> None:
    where = np.array([3, 0, 3, 3, 1], I64)
    with consing():
        axis = Axis(5)
        store = Store(2, (load(0, I64, (index(axis),)),), load(1, F32, (index(axis),)), combine="add")
        operands = (Operand((5,), I64, "in"), Operand((5,), F32, "in"), Operand((4,), F32, "inout"))
        kernel = Kernel((axis,), (Stage((), (store,)),), operands, ordered=True)
        out = np.zeros(4, F32)
        native(kernel, [where, np.arange(5, dtype=F32), out])
    np.testing.assert_array_equal(out, [1, 4, 0, 5])


def test_what_a_running_sum_goes_on_from_stays_in_a_register() -> None:
    """From memory it would come back as late as it was written."""
    with consing():
        row, k = Axis(3), Axis(100)
        at = index(row) * 100 + index(k)
        sums = load(1, F32, (at + -1,), index(k) > 0, const(0, F32)) + load(0, F32, (at,))
        operands = Operand((300,), F32, "in"), Operand((300,), F32, "out")
        kernel = Kernel((row,), (Stage((k,), (Store(1, (at,), sums),)),), operands)
        module = kernels.module_of(kernel)
    text = str(compiler.optimize(module.text(), module.level))
    sums = dict(re.findall(r"(%\S+) = fadd float (.*)", text))
    assert any(operand in sums for args in sums.values() for operand in args.split(", ")), text


@pytest.mark.parametrize("combine", ["max", "min"])
def test_extrema_one_by_one_ask_for_no_sign(combine: str) -> None:
    """x86 branches by the sign of the first operand, which nobody can guess: they are selected."""
    with consing():
        axis = Axis(5)
        store = Store(1, (const(0),), load(0, F32, (index(axis),)), combine=combine)
        operands = (Operand((5,), F32, "in"), Operand((1,), F32, "inout"))
        kernel = Kernel((axis,), (Stage((), (store,)),), operands, ordered=True)
        text = kernels.source(kernel)
        for values in (
            [-2, -1, 0, 1, 2],
            [-0.0, 0.0, -0.0, 0.0, -0.0],
            [1, 2, np.nan, 3, 4],
            [np.inf, -np.inf, 0, 1, 2],
        ):
            given, out = np.array(values, F32), np.array(values[:1], F32)
            native(kernel, [given, out])
            wanted = getattr(np, combine)(given)
            if combine == "max" and not np.any(given):
                wanted = F32.type(0.0)
            elif not np.any(given):
                wanted = F32.type(-0.0)
            np.testing.assert_array_equal([out[0], np.signbit(out[0])], [wanted, np.signbit(wanted)])
    assert f"llvm.{combine}imum.f32" not in text


@pytest.mark.parametrize("size", [100, 1 << 14])
def test_vectors_of_one_function_are_computed_side_by_side_where_there_are_many(size: int) -> None:
    with consing():
        axis = Axis(size)
        store = Store(1, (index(axis),), op("tanh", load(0, F32, (index(axis),))))
        operands = (Operand((size,), F32, "in"), Operand((size,), F32, "out"))
        text = kernels.source(Kernel((axis,), (Stage((), (store,)),), operands))
    lanes = processors.host().vector_bits // 32
    assert (f"load <{2 * lanes} x float>" in text) == (size > 100)


def test_every_operation_has_code_or_a_decomposition() -> None:
    with consing():
        for name, dtype in CASES:
            dtypes = [BOOL] * (name == "select") + [dtype] * (scalars.TABLE[name].arity - (name == "select"))
            assert "define void @kernel" in kernels.source(elementwise(name, dtypes)), expr


def sines(count: int) -> Kernel:
    """A chain of sums and sines."""
    axis = Axis(SIZE)
    x = load(0, F32, (index(axis),))
    for _ in range(count):
        x = op("add", x, op("sin", x))
    operands = (Operand((SIZE,), F32, "in"), Operand((SIZE,), F32, "out"))
    return Kernel((axis,), (Stage((), (Store(1, (index(axis),), x),)),), operands)


def test_many_elementary_functions_are_calls_of_one() -> None:
    """Few are inlined; beyond, each further one is a call more, not a copy of the body in each vector."""
    with consing():
        few, many, more = (str(compiler.optimize(kernels.source(sines(n)))) for n in (2, 8, 24))
    assert "shared" not in few
    assert len(more) < 2 * len(many)


def test_chains_of_called_functions_compute_what_inlined_ones_do() -> None:
    x = np.linspace(-1e6, 1e6, SIZE).astype(F32)
    with consing():
        once, (got, expected) = sines(1), outcomes(sines(8), [x])
        step = x
        for _ in range(8):
            step, _ = outcomes(once, [step])
    np.testing.assert_array_equal(got, step)
    np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_code_that_llvm_spoils_keeps_its_locals_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever its passes leave: a program that isn't one would end the process."""
    looks: list[bool] = []
    monkeypatch.setattr(machine_code, "kept", lambda key: None)
    monkeypatch.setattr(machine_code, "keep", lambda key, code: None)
    monkeypatch.setattr(compiler, "_is_valid", lambda module: bool(looks.append(False)))
    with consing():
        grid, inner = Axis(37), Axis(9)
        value = op("exp", fold("add", (inner,), (const(0, F32),), (load(0, F32, (index(grid), index(inner))),)))
        operands = (Operand((37, 9), F32, "in"), Operand((37,), F32, "out"))
        kernel = Kernel((grid,), (Stage((), (Store(1, (index(grid),), value),)),), operands)
        got, expected = outcomes(kernel, [np.random.default_rng(0).normal(size=(37, 9)).astype(F32)])
    np.testing.assert_allclose(got, expected, rtol=1e-6)
    assert looks
