"""Tiles: what is read across the last axis is turned in squares, in all forms that transposes have."""

from __future__ import annotations

import numpy as np
import pytest
from kernels.building import F32, CompiledKernels, axes, indices, one_store, result_of

from polyax_kernels.emit.numpy import run
from polyax_kernels.emit.schedule import choose
from polyax_kernels.emit.tiles import crossing
from polyax_kernels.ir.expr import Axis, Expr, cast, consing, const, fold, index, load, op
from polyax_kernels.ir.kernel import Kernel, Schedule
from polyax_kernels.ir.limits import Limits
from polyax_kernels.passes.for_emission import flatten

pytestmark = pytest.mark.usefixtures("small_ones_too")

RNG = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(F32)


def turned(x: np.ndarray, order: tuple[int, ...]) -> tuple[Expr, tuple[Axis, ...]]:
    """An element of the transpose of ``x``, and the grid of that."""
    grid = axes(*x.transpose(order).shape)
    return load(0, x.dtype, tuple([index(grid[order.index(d)]) for d in range(x.ndim)])), grid


def check(kernel: Kernel, arrays: list[np.ndarray], want: np.ndarray) -> None:
    """The kernel is tiled, and gives ``want`` interpreted and compiled."""
    schedule = choose(kernel)
    assert schedule.tile > 1
    library = CompiledKernels([kernel], [schedule])
    for runner in ("c", "numpy"):
        out = result_of(kernel)
        buffers = [*arrays, out]
        if runner == "c":
            library.run(0, kernel, buffers)
        else:
            run(kernel, buffers, (), schedule)
        np.testing.assert_allclose(out, want, rtol=1e-5, atol=1e-6, err_msg=runner)


@pytest.mark.parametrize("shape", [(32, 64), (33, 65), (70, 16), (20, 100)])
def test_matrices(shape: tuple[int, int]) -> None:
    x = normal(*shape)
    with consing():
        element, grid = turned(x, (1, 0))
        check(one_store(grid, element, [x]), [x], x.T)


@pytest.mark.parametrize("order", [(0, 2, 1), (2, 1, 0), (2, 0, 1), (1, 2, 0)])
def test_arrays_of_three_dimensions(order: tuple[int, int, int]) -> None:
    x = normal(18, 20, 35)
    with consing():
        element, grid = turned(x, order)
        check(one_store(grid, element, [x]), [x], x.transpose(order))


def test_what_is_read_in_both_ways() -> None:
    x = normal(40, 40)
    with consing():
        element, grid = turned(x, (1, 0))
        kernel = one_store(grid, element * load(0, F32, indices(grid)) + cast(index(grid[0]), F32), [x])
        check(kernel, [x], x.T * x + np.arange(40, dtype=F32)[:, None])


def test_two_operands_share_the_squares() -> None:
    x, y = normal(40, 33), normal(40, 33).astype(np.float64)
    with consing():
        grid = axes(33, 40)
        at = (index(grid[1]), index(grid[0]))
        kernel = one_store(grid, cast(load(0, F32, at), np.float64) - load(1, y.dtype, at), [x, y])
        check(kernel, [x, y], x.T - y.T)


def test_an_operand_that_begins_elsewhere() -> None:
    x = normal(50, 60)
    with consing():
        grid = axes(40, 33)
        check(one_store(grid, load(0, F32, (index(grid[1]) + 7, index(grid[0]) + 5)), [x]), [x], x[7:40, 5:45].T)


def test_rows_go_to_threads_by_squares() -> None:
    x = normal(64, 64)
    with consing():
        (element, grid), (within, deeper) = turned(x, (1, 0)), turned(x[None], (0, 2, 1))
        first, middle = one_store(grid, element, [x]), one_store(deeper, within, [x[None]])
        assert choose(first) == Schedule(tile=Limits().tile, grain=Limits().tile)
        assert choose(middle) == Schedule(tile=Limits().tile)


@pytest.mark.parametrize("why", ["along memory", "short rows", "short columns", "backwards", "masked", "folded"])
def test_left_alone(why: str) -> None:
    x = normal({"short rows": 4}.get(why, 40), {"short columns": 4}.get(why, 40))
    with consing():
        element, grid = turned(x, (0, 1) if why == "along memory" else (1, 0))
        i, j = indices(grid)
        if why == "backwards":
            element = load(0, F32, (j, const(39) - i))
        if why == "masked":
            element = load(0, F32, (j, i), i < j, const(0, F32))
        if why == "folded":
            inner = Axis(40, "k")
            element = fold(
                "add", (inner,), (const(0, F32),), (load(0, F32, (j, i)) * op("exp", cast(index(inner), F32)),)
            )
        kernel = one_store(grid, element, [x])
        assert crossing(flatten(kernel)) is None and choose(kernel).tile == 1


def test_devices_whose_threads_take_single_elements() -> None:
    x = normal(64, 64)
    with consing():
        element, grid = turned(x, (1, 0))
        assert choose(one_store(grid, element, [x]), Limits(tile=1)) == Schedule()


def test_small_arrays_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    few, many = normal(64, 64), normal(256, 256)
    with consing():
        for x, tiled in ((few, False), (many, True)):
            element, grid = turned(x, (1, 0))
            assert (choose(one_store(grid, element, [x])).tile > 1) is tiled
