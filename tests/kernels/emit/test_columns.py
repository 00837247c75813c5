"""Folds down a few columns, several rows side by side."""

from __future__ import annotations

import numpy as np
import pytest
from kernels.building import F32, CompiledKernels, axes, one_store, result_of

from polyax_kernels.emit.columns import side_by_side, suits
from polyax_kernels.emit.numpy import run
from polyax_kernels.emit.schedule import choose
from polyax_kernels.gpu.schedule import choose as choose_on_device
from polyax_kernels.ir.expr import Axis, Expr, cast, consing, const, fold, index, load, op
from polyax_kernels.ir.kernel import Kernel
from polyax_kernels.ir.limits import Limits
from polyax_kernels.passes.for_emission import flatten

RNG = np.random.default_rng(0)
ROWS = 16_391
"""A prime number of them."""


def drawn(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(F32)


def total(inner: Axis, body: Expr, name: str = "add", start: float = 0.0) -> Expr:
    return fold(name, (inner,), (const(start, F32),), (body,))


def spread(x: np.ndarray) -> Kernel:
    """The sum of squares of what is left without the mean, which another sum gives; the columns' numbers are added."""
    grid, (first, second) = axes(x.shape[1]), axes(x.shape[0], x.shape[0])
    at = lambda k: load(0, F32, (index(k), index(grid[0])))
    rest = at(second) - total(first, at(first)) * (1 / len(x)) + cast(index(grid[0]), F32)
    return one_store(grid, total(second, rest * rest), [x])


@pytest.mark.parametrize("rows, columns", [(8209, 2), (5471, 3), (4099, 4), (1031, 16), (541, 31)])
def test_folds_that_need_each_other(rows: int, columns: int) -> None:
    """As few rows as are worth it, and a prime number of them; NumPy takes them one by one."""
    x = drawn(rows, columns)
    with consing():
        kernel = spread(x)
        schedule = choose(kernel)
        assert (schedule.columns, schedule.parallel) == (True, 0)
        library = CompiledKernels([kernel], [schedule])
        want = ((x - x.astype(float).mean(0) + np.arange(columns)) ** 2).sum(0)
        for runner in ("c", "numpy"):
            out = result_of(kernel)
            library.run(0, kernel, [x, out]) if runner == "c" else run(kernel, [x, out], (), schedule)
            np.testing.assert_allclose(out, want, rtol=1e-4)


def test_initial_values_count_once_and_the_grid_around_is_left() -> None:
    x = drawn(3, 1103, 5)
    with consing():
        grid, (k,) = axes(3, 5), axes(x.shape[1])
        body = load(0, F32, (index(grid[0]), index(k), index(grid[1])))
        kernel = one_store(grid, op("max", total(k, body, start=7.0), total(k, body, "max", start=2.0)), [x])
        schedule = choose(kernel)
        assert (schedule.columns, schedule.parallel) == (True, 1)
        library = CompiledKernels([kernel], [schedule])
        want = np.maximum(7 + x.astype(float).sum(1), np.maximum(x.max(1), 2))
        for runner in ("c", "numpy"):
            out = result_of(kernel)
            library.run(0, kernel, [x, out]) if runner == "c" else run(kernel, [x, out], (), schedule)
            np.testing.assert_allclose(out, want, rtol=1e-4)


def of_columns(rows: int, columns: int, body: str = "plain") -> Kernel:
    grid, (k,) = axes(columns), axes(rows)
    x = load(0, F32, (index(k), index(grid[0])))
    bodies = {
        "plain": x,
        "along": x + cast(index(k), F32),
        "masked": load(0, F32, (index(k), index(grid[0])), op("lt", index(k), const(5)), const(0, F32)),
        "every other row": load(0, F32, (index(k) * 2, index(grid[0]))),
        "a number for each row": x * load(1, F32, (index(k),)),
    }
    return one_store(grid, total(k, bodies[body]), [np.zeros((2 * rows, columns), F32), np.zeros(rows, F32)])


def test_what_suits() -> None:
    with consing():
        assert suits(flatten(of_columns(ROWS, 3)))
        assert not suits(flatten(of_columns(ROWS, 1))), "lies side by side"
        assert not suits(flatten(of_columns(ROWS, 32))), "vectors are full"
        assert not suits(flatten(of_columns(100, 3))), "few"
        for body in ("along", "masked", "every other row", "a number for each row"):
            assert not suits(flatten(of_columns(ROWS, 3, body))), body
        assert not choose(of_columns(ROWS, 3), Limits(lanes=1)).columns


def test_accumulators_are_whole_vectors() -> None:
    with consing():
        for columns, lanes in ((2, 16), (3, 48), (4, 16), (16, 32), (20, 80)):
            (first, *_) = side_by_side(flatten(of_columns(ROWS, columns))).stages
            assert [axis.extent for axis in first.axes] == [lanes]


def test_devices_whose_threads_are_alone_do_the_same() -> None:
    """One group for what isn't cut: its grid has no axis left."""
    with consing():
        schedule = choose_on_device(of_columns(ROWS, 3), Limits())
        assert (schedule.mode, schedule.columns, schedule.groups) == ("ranges", True, 1)
