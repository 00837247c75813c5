"""Cuts: where conditions on an index change, kernels go on in another stage, in which nothing is asked."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from kernels.building import F32, CompiledKernels, axes, indices, one_store, result_of

from polyax_kernels.emit.cuts import BLOCK, STRETCHES, crossed, crossed_in, cut
from polyax_kernels.emit.numpy import run
from polyax_kernels.emit.schedule import choose
from polyax_kernels.ir.expr import Axis, Expr, cast, consing, const, fold, index, load, op, where
from polyax_kernels.ir.kernel import Kernel, Operand, Stage, Store, kernel_roots
from polyax_kernels.passes.for_emission import flatten

pytestmark = pytest.mark.usefixtures("small_ones_too")

RNG = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(F32)


def masked(slot: int, at: tuple[Expr, ...], mask: Expr, other: Expr | float = 0.0) -> Expr:
    return load(slot, F32, at, mask, const(other, F32) if isinstance(other, float) else other)


def check(kernel: Kernel, arrays: list[np.ndarray], want: np.ndarray) -> None:
    """The kernel is cut, and gives ``want`` compiled, and interpreted where the length of stages is no array there."""
    schedule = choose(kernel)
    assert schedule.cut
    library = CompiledKernels([kernel], [schedule])
    first = any(x.axis is kernel.grid[0] for x in crossed(flatten(kernel)))
    for runner in ("c",) if first else ("c", "numpy"):
        out = result_of(kernel)
        buffers = [*arrays, out]
        if runner == "c":
            library.run(0, kernel, buffers)
        else:
            run(kernel, buffers, (), schedule)
        np.testing.assert_array_equal(out, want, err_msg=runner)


def conditions(kernel: Kernel) -> int:
    """Comparisons and masks that are left after the kernel was cut."""
    made, _ = cut(flatten(kernel))
    nodes = {x for root in kernel_roots(made) for x in _all(root)}
    return sum(
        (x.kind == "op" and x.attr in ("lt", "ge", "and")) or (x.kind == "load" and x.attr.masked) for x in nodes
    )


def _all(x: Expr) -> list[Expr]:
    return [x, *(y for a in x.args for y in _all(a))]


@pytest.mark.parametrize("rows, left, right", [(1, 3, 20), (5, 17, 30), (2000, 30, 20)])
def test_joined_along_the_last_axis(rows: int, left: int, right: int) -> None:
    x, y = normal(rows, left), normal(rows, right)
    with consing():
        grid = axes(rows, left + right)
        i, j = indices(grid)
        rest = masked(1, (i, j + -left), j >= left)
        kernel = one_store(grid, masked(0, (i, j), j < left, rest), [x, y])
        check(kernel, [x, y], np.concatenate([x, y], 1))
        assert conditions(kernel) == 0


@pytest.mark.parametrize("size", [1, 100, BLOCK, 3 * BLOCK + 17])
def test_joined_along_the_only_axis_in_blocks(size: int) -> None:
    x, y = normal(size), normal(size + 5)
    with consing():
        grid = axes(2 * size + 5)
        (i,) = indices(grid)
        kernel = one_store(grid, masked(0, (i,), i < size, masked(1, (i + -size,), i >= size)), [x, y])
        check(kernel, [x, y], np.concatenate([x, y]))
        assert conditions(kernel) == 0


@pytest.mark.parametrize("shape", [(400, 3), (7, 50), (3, 4000)])
def test_padded_on_all_sides(shape: tuple[int, int]) -> None:
    x, (m, n) = normal(*shape), shape
    with consing():
        grid = axes(m + 2, n + 3)
        i, j = (k + -1 for k in indices(grid))
        inside = (i >= 0) & (i < m) & (j >= 0) & (j < n)
        kernel = one_store(grid, masked(0, (i, j), inside, 2.5), [x])
        check(kernel, [x], np.pad(x, ((1, 1), (1, 2)), constant_values=2.5))


def test_the_last_of_three_axes_and_the_middle_one() -> None:
    x = normal(4, 6, 70)
    with consing():
        grid = axes(4, 12, 70)
        i, j, k = indices(grid)
        kernel = one_store(grid, masked(0, (i, j, k), j < 6, masked(0, (i, j + -6, k), j >= 6)), [x])
        check(kernel, [x], np.concatenate([x, x], 1))
        assert [axis.extent for axis in cut(flatten(kernel))[0].grid] == [4]


def test_conditions_on_what_runs_backwards_and_on_equality() -> None:
    x = normal(9, 40)
    with consing():
        grid = axes(9, 40)
        i, j = indices(grid)
        late = op("ge", const(25) - j, const(0))
        value = where(late, load(0, F32, (i, j)), load(0, F32, (i, j)) * 2.0)
        kernel = one_store(grid, where(op("eq", j, const(30)), const(0, F32), value), [x])
        want = np.where(np.arange(40) <= 25, x, 2 * x)
        want[:, 30] = 0
        check(kernel, [x], want)
        assert conditions(kernel) == 0


def stacked(x: np.ndarray, axis: Axis, *stores: Callable[[Expr], Expr]) -> Kernel:
    """A stage along ``axis`` for each of ``stores``, in rows: all but the last write to scratch of the row."""
    (row,) = axes(len(x))
    length, stages, operands = int(axis.extent), list[Stage](), [Operand(x.shape, x.dtype, "in")]
    for value in stores:
        last = len(stages) == len(stores) - 1
        operands.append(Operand((len(x), length) if last else (length,), x.dtype, "out" if last else "local"))
        at = (index(row), index(axis)) if last else (index(axis),)
        stages.append(Stage((axis,), (Store(len(operands) - 1, at, value(index(row))),)))
    return Kernel((row,), tuple(stages), tuple(operands))


def test_stages_of_rows() -> None:
    x = normal(30, 40)
    with consing():
        axis = Axis(80, "j")
        j = index(axis)
        halves = lambda i: masked(0, (i, j), j < 40, masked(0, (i, j + -40), j >= 40))
        doubled = lambda i: where(j < 10, load(1, F32, (j,)), load(1, F32, (j,)) * 2.0)
        kernel = stacked(x, axis, halves, doubled)
        check(kernel, [x], np.concatenate([x, x], 1) * np.where(np.arange(80) < 10, 1, 2).astype(F32))
        assert [len(crossed_in(stage)) for stage in flatten(kernel).stages] == [1, 1] and conditions(kernel) == 0


def test_the_first_of_the_axes_of_a_stage() -> None:
    x = normal(40, 50)
    with consing():
        i, j = grid = axes(40, 50)
        at = indices(grid)
        value = masked(0, at, at[0] < 7, masked(0, (at[0] + -7, at[1]), at[0] >= 7))
        operands = (Operand(x.shape, F32, "in"), Operand(x.shape, F32, "out"))
        kernel = Kernel((), (Stage((i, j), (Store(1, at, value),)),), operands)
        check(kernel, [x], np.concatenate([x[:7], x[:33]]))
        made, _ = cut(flatten(kernel))
        assert [[axis.extent for axis in stage.axes] for stage in made.stages] == [[7, 50], [33, 50]]
        assert conditions(kernel) == 0


def test_a_later_axis_of_a_stage() -> None:
    """And both; but none where the stage goes on from what it stores."""
    x = normal(40, 50)
    operands = (Operand(x.shape, F32, "in"), Operand(x.shape, F32, "out"))
    with consing():
        i, j = grid = axes(40, 50)
        at = indices(grid)
        columns = masked(0, at, at[1] < 9, masked(0, (at[0], at[1] + -9), at[1] >= 9))
        for value, want, extents in (
            (columns, np.concatenate([x[:, :9], x[:, :41]], 1), [[40, 9], [40, 41]]),
            (where(at[0] < 7, columns, 1.0), None, [[7, 9], [7, 41], [33, 9], [33, 41]]),
        ):
            kernel = Kernel((), (Stage((i, j), (Store(1, at, value),)),), operands)
            if want is not None:
                check(kernel, [x], want)
            made, _ = cut(flatten(kernel))
            assert [[axis.extent for axis in stage.axes] for stage in made.stages] == extents
            assert conditions(kernel) == 0
        again = (*operands[:1], Operand(x.shape, F32, "inout"))
        onward = Stage((i, j), (Store(1, at, columns + load(1, F32, (at[1], at[0]))),))
        assert not crossed_in(flatten(Kernel((), (onward,), again)).stages[0])


def test_kernels_whose_expressions_are_known_no_more() -> None:
    with consing():
        grid = axes(40, 50)
        i, j = indices(grid)
        kernel = one_store(grid, masked(0, (i, j), i < 7, masked(0, (i + -7, j), i >= 7)), [normal(40, 50)])
    with consing():
        assert conditions(kernel) == 0


@pytest.mark.parametrize("why", ["nothing asked", "two indices", "data", "many", "folded"])
def test_left_alone(why: str) -> None:
    x = normal(40, 40)
    with consing():
        grid = axes(40, 40)
        i, j = indices(grid)
        element = load(0, F32, (i, j))
        if why == "two indices":
            element = masked(0, (i, j), j < i)
        if why == "data":
            element = where(element > 0, element, element * 2.0)
        if why == "many":
            for n in range(1, STRETCHES + 1):
                element = where(j < 3 * n, element, element + float(n))
        if why == "folded":
            inner = Axis(40, "k")
            body = masked(0, (i, index(inner)), index(inner) < 5) * cast(j, F32)
            element = fold("add", (inner,), (const(0, F32),), (body,))
        kernel = one_store(grid, element, [x])
        assert not crossed(flatten(kernel)) and not choose(kernel).cut
