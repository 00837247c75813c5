"""Lanes: strided folds of neighbouring points side by side, also where one needs another's result."""

from __future__ import annotations

import numpy as np
import pytest
from kernels.building import F32, CompiledKernels, axes, one_store, result_of

from polyax_kernels.emit.lanes import block, suits
from polyax_kernels.emit.numpy import NumpyEmitter, run
from polyax_kernels.emit.schedule import choose
from polyax_kernels.emit.walker import emit_kernel
from polyax_kernels.ir.expr import COMPARISONS, Axis, Expr, consing, const, fold, index, load, op, param
from polyax_kernels.ir.kernel import Kernel, Operand, Schedule, Stage, Store
from polyax_kernels.ir.limits import Limits
from polyax_kernels.passes.for_emission import flatten

RNG = np.random.default_rng(0)


def total(inner: Axis, body: Expr) -> Expr:
    return fold("add", (inner,), (const(0, F32),), (body,))


def variance(x: np.ndarray) -> Kernel:
    """Over the first axis, in two sums of which the second needs the first."""
    grid, (first, second) = axes(x.shape[1]), axes(x.shape[0], x.shape[0])
    at = lambda k: load(0, F32, (index(k), index(grid[0])))
    mean = total(first, at(first)) * (1 / len(x))
    spread = at(second) - mean
    return one_store(grid, total(second, spread * spread), [x])


def test_folds_that_need_each_other() -> None:
    x = RNG.standard_normal((20, 150)).astype(F32)
    with consing():
        kernel = variance(x)
        schedule = choose(kernel)
        assert schedule.lanes == x.shape[1]
        library = CompiledKernels([kernel], [schedule])
        for runner in ("c", "numpy"):
            out = result_of(kernel)
            library.run(0, kernel, [x, out]) if runner == "c" else run(kernel, [x, out], (), schedule)
            np.testing.assert_allclose(out, 20 * x.astype(np.float64).var(0), rtol=1e-5)


def test_what_a_point_keeps_is_kept_for_each_lane() -> None:
    """A kernel may have been stacked on the one that computes what each of its points needs."""
    x = RNG.standard_normal((20, 150)).astype(F32)
    with consing():
        grid, (k,) = axes(x.shape[1]), axes(x.shape[0])
        at = lambda row: load(0, F32, (row, index(grid[0])))
        zero = const(0, np.dtype("int64"))
        shifted = total(k, at(index(k)) - load(2, F32, (zero,)))
        stages = (
            Stage((), (Store(2, (zero,), at(const(3, np.dtype("int64")))),)),
            Stage((), (Store(1, (index(grid[0]),), shifted),)),
        )
        operands = Operand(x.shape, F32, "in"), Operand((x.shape[1],), F32, "out"), Operand((1,), F32, "local")
        kernel = Kernel(grid, stages, operands)
        schedule = choose(kernel)
        assert schedule.lanes == x.shape[1]
        library = CompiledKernels([kernel], [schedule])
        for runner in ("c", "numpy"):
            out = np.zeros(x.shape[1], F32)
            library.run(0, kernel, [x, out]) if runner == "c" else run(kernel, [x, out], (), schedule)
            np.testing.assert_allclose(out, (x - x[3]).sum(0), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("depth, stages", [(7, 3), (64, 3), (67, 4)])
def test_several_steps_are_taken_together(depth: int, stages: int) -> None:
    """The accumulators are read and written once for eight points of the axis, and once for each that is left."""
    x = RNG.standard_normal((depth, 3000)).astype(F32)
    with consing():
        grid, (k,) = axes(x.shape[1]), axes(depth)
        kernel = flatten(one_store(grid, total(k, load(0, F32, (index(k), index(grid[0])))), [x]))
        schedule = choose(kernel)
        blocked, _ = block(kernel, schedule.lanes)
        assert len(blocked.stages) == stages
        assert [stage.axes[0].extent for stage in blocked.stages[1:-1]] == [depth // 8 or depth, depth % 8][
            : stages - 2
        ]
        library = CompiledKernels([kernel], [schedule])
        for runner in ("c", "numpy"):
            out = result_of(kernel)
            library.run(0, kernel, [x.ravel(), out]) if runner == "c" else run(kernel, [x.ravel(), out], (), schedule)
            np.testing.assert_allclose(out, x.astype(np.float64).sum(0), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("lanes, copies", [(8, 2), (512, 1)])
def test_blocks_of_many_lanes_are_written_once(lanes: int, copies: int) -> None:
    """However many the last one has: compilers keep no accumulators of theirs in registers."""
    x = RNG.standard_normal((7, 1100)).astype(F32)
    with consing():
        grid, (k,) = axes(x.shape[1]), axes(len(x))
        kernel = one_store(grid, total(k, load(0, F32, (index(k), index(grid[0])))), [x])
        library = CompiledKernels([kernel], [Schedule(lanes=lanes)])
        assert library.text.count("b1[") == copies
        out = result_of(kernel)
        library.run(0, kernel, [x, out])
        np.testing.assert_allclose(out, x.astype(np.float64).sum(0), rtol=1e-5, atol=1e-5)


def test_elementary_functions_are_written_once() -> None:
    """They take longer than what accumulators do."""
    x = RNG.standard_normal((64, 3000)).astype(F32)
    with consing():
        grid, (k,) = axes(x.shape[1]), axes(len(x))
        kernel = flatten(one_store(grid, total(k, op("exp", load(0, F32, (index(k), index(grid[0]))))), [x]))
        blocked, _ = block(kernel, choose(kernel).lanes)
        assert [stage.axes[0].extent for stage in blocked.stages[1:-1]] == [64]


def sums_of_columns() -> Kernel:
    """Of a matrix whose columns and rows are counted at launch."""
    columns, rows = param(0), param(1)
    grid, k = (Axis(columns, "a"),), Axis(rows, "k")
    value = total(k, load(0, F32, (index(k), index(grid[0]))))
    operands = Operand((rows, columns), F32, "in"), Operand((columns,), F32, "out")
    return Kernel(grid, (Stage((), (Store(1, (index(grid[0]),), value),)),), operands)


@pytest.mark.parametrize("depth", [0, 3, 8, 21])
def test_steps_along_an_axis_of_any_extent(depth: int) -> None:
    x = RNG.standard_normal((depth, 5)).astype(F32)
    with consing():
        kernel = sums_of_columns()
        schedule = choose(kernel)
        assert schedule.lanes > 1
        library = CompiledKernels([kernel], [schedule])
        for runner in ("c", "numpy"):
            out, scalars = np.full(5, 99, F32), (5, depth)
            if runner == "c":
                library.run(0, kernel, [x, out], scalars)
            else:
                run(kernel, [x, out], scalars, schedule)
            np.testing.assert_allclose(out, x.astype(np.float64).sum(0), rtol=1e-5, atol=1e-5)


def test_a_fold_inside_anothers_loop_is_left_alone() -> None:
    x = RNG.standard_normal((4, 40)).astype(F32)
    with consing():
        grid, (outer, inner) = axes(40), axes(4, 4)
        within = total(
            inner, load(0, F32, (index(inner), index(grid[0]))) * load(0, F32, (index(outer), index(grid[0])))
        )
        assert not suits(flatten(one_store(grid, total(outer, within * within), [x])))


@pytest.mark.parametrize("shape", [(20, 150), (5, 300), (3, 7)])
def test_running_sums_along_the_first_axis(shape: tuple[int, int]) -> None:
    x = RNG.standard_normal(shape).astype(F32)
    with consing():
        grid, k = axes(shape[1]), Axis(shape[0], "k")
        at = lambda step: (step, index(grid[0]))
        before = load(1, F32, at(index(k) - 1), index(k) > 0, const(0, F32))
        store = Store(1, at(index(k)), before + load(0, F32, at(index(k))))
        operands = Operand(shape, F32, "in"), Operand(shape, F32, "out")
        kernel = Kernel(grid, (Stage((k,), (store,)),), operands)
        schedule = choose(kernel)
        assert schedule.lanes == min(shape[1], Limits().lanes)
        library = CompiledKernels([kernel], [schedule])
        for runner in ("c", "numpy"):
            out = result_of(kernel)
            library.run(0, kernel, [x, out]) if runner == "c" else run(kernel, [x, out], (), schedule)
            np.testing.assert_allclose(out, np.cumsum(x, 0), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("shape", "long", "lanes"),
    [((513, 40), False, 4), ((513, 40), True, 16), ((3, 9000), False, 3), ((400, 40), False, 1)],
    ids=["many rows", "long steps", "few rows", "in the nearest cache"],
)
@pytest.mark.parametrize("reverse", [False, True])
def test_running_values_of_rows(shape: tuple[int, int], long: bool, lanes: int, reverse: bool) -> None:
    """Each step waits for the one before: rows go side by side, as vectors where steps are long."""
    x = RNG.standard_normal(shape).astype(F32)
    with consing():
        grid, k = axes(shape[0]), Axis(shape[1], "k")
        step, back = (shape[1] - 1 - index(k), 1) if reverse else (index(k), -1)
        at = lambda step: (index(grid[0]), step)
        before = load(1, F32, at(step + back), index(k) > 0, const(0, F32))
        value = (op("tanh", before) if long else before) + load(0, F32, at(step))
        operands = Operand(shape, F32, "in"), Operand(shape, F32, "out")
        kernel = Kernel(grid, (Stage((k,), (Store(1, at(step), value),)),), operands)
        schedule = choose(kernel)
        assert schedule.lanes == lanes
        wanted, seen = np.zeros(shape), x[:, ::-1] if reverse else x
        carry = np.zeros(shape[0])
        for n in range(shape[1]):
            carry = wanted[:, n] = (np.tanh(carry) if long else carry) + seen[:, n]
        library = CompiledKernels([kernel], [schedule])
        for runner in ("c", "numpy"):
            out = result_of(kernel)
            library.run(0, kernel, [x, out]) if runner == "c" else run(kernel, [x, out], (), schedule)
            np.testing.assert_allclose(out, wanted[:, ::-1] if reverse else wanted, rtol=1e-4, atol=1e-3)


def product(x: np.ndarray, y: np.ndarray) -> Kernel:
    grid, (k,) = axes(x.shape[0], y.shape[1]), axes(x.shape[1])
    terms = load(0, F32, (index(grid[0]), index(k))) * load(1, F32, (index(k), index(grid[1])))
    return one_store(grid, total(k, terms), [x, y])


@pytest.mark.parametrize("shape", [(5, 7, 11), (8, 3, 16), (9, 4, 17), (1, 1, 1)])
def test_rows_of_lanes(shape: tuple[int, int, int]) -> None:
    rows, depth, columns = shape
    x, y = RNG.standard_normal((rows, depth)).astype(F32), RNG.standard_normal((depth, columns)).astype(F32)
    schedule = Schedule(lanes=8, rows=4)
    with consing():
        kernel = flatten(product(x, y))
        library = CompiledKernels([kernel], [schedule])
        for runner in ("c", "numpy"):
            out = np.full(rows * columns, 99, F32)
            flat = [x.ravel(), y.ravel(), out]
            library.run(0, kernel, flat) if runner == "c" else run(kernel, flat, (), schedule)
            np.testing.assert_allclose(out.reshape(rows, columns), x @ y, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("side, rows", [(64, 1), (512, 16)])
def test_rows_are_taken_together_where_each_would_read_much_again(side: int, rows: int) -> None:
    x = np.zeros((side, side), F32)
    with consing():
        assert choose(product(x, x)) == Schedule(lanes=min(side, Limits().lanes // rows), rows=rows)
        assert choose(variance(np.zeros((1000, 1000), F32))).rows == 1


def test_stages_along_memory_are_left_alone() -> None:
    with consing():
        grid, k = axes(20), Axis(150, "k")
        at = (index(grid[0]), index(k))
        operands = Operand((20, 150), F32, "in"), Operand((20, 150), F32, "out")
        kernel = Kernel(grid, (Stage((k,), (Store(1, at, load(0, F32, at)),)),), operands)
        assert choose(kernel).lanes == 1


class Spare(NumpyEmitter):
    """Knows what every emitter must, and no more."""

    def supports(self, name: str, dtype: np.dtype) -> bool:
        return name in ("add", "sub", "mul", "div", "max", "min", "and", "or", "xor", "select") or name in COMPARISONS

    def op(self, name: str, dtype: np.dtype, *args: np.ndarray) -> np.ndarray:
        assert self.supports(name, dtype), f"{name} isn't known here"
        return super().op(name, dtype, *args)


def test_blocks_need_no_operation_that_an_emitter_may_lack() -> None:
    """Also in the extents of their loops."""
    x = RNG.standard_normal((21, 5)).astype(F32)
    with consing():
        kernel = sums_of_columns()
        out = np.full(5, 99, F32)
        emitter = Spare(kernel, [x.ravel(), out], (5, 21))
        emit_kernel(kernel, choose(kernel), emitter, np.asarray(0), np.asarray(5))
    np.testing.assert_allclose(out, x.astype(np.float64).sum(0), rtol=1e-5, atol=1e-5)
