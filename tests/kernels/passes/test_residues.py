"""Residues: where kernels divide places by a small number, as many points are computed at a time."""

from __future__ import annotations

import numpy as np
import pytest
from kernels.building import F32, CompiledKernels, axes, indices, one_store, result_of

from polyax_kernels.emit.cuts import cut
from polyax_kernels.emit.numpy import run
from polyax_kernels.emit.schedule import choose
from polyax_kernels.ir.expr import Axis, cast, consing, const, fold, index, load, op, postorder, where
from polyax_kernels.ir.kernel import Kernel, Operand, Stage, Store, kernel_roots
from polyax_kernels.passes.canonical import canonical
from polyax_kernels.passes.for_emission import flatten
from polyax_kernels.passes.residues import MOST, at_once, by_residues, suits

pytestmark = pytest.mark.usefixtures("small_ones_too")

RNG = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(F32)


def divisions(kernel: Kernel) -> int:
    return sum(x.kind == "op" and x.attr in ("mod", "floordiv") for x in postorder(*kernel_roots(kernel)))


def check(kernel: Kernel, arrays: list[np.ndarray], want: np.ndarray) -> None:
    """The kernel gives ``want``, compiled and interpreted, and its rows divide no more."""
    flat = flatten(kernel)
    assert divisions(flat) and suits(flat) and not divisions(by_residues(flat))
    schedule = choose(kernel)
    for runner in ("c", "numpy"):
        buffers = [*arrays, result_of(kernel)]
        if runner == "c":
            CompiledKernels([kernel], [schedule]).run(0, kernel, buffers)
        else:
            run(kernel, buffers, (), schedule)
        np.testing.assert_array_equal(buffers[-1], want, err_msg=runner)


@pytest.mark.parametrize("rows", [1, 7])
@pytest.mark.parametrize("count", [2, 3, MOST])
@pytest.mark.parametrize("short", [0, 1])
def test_interleaved(rows: int, count: int, short: int) -> None:
    """Rows that no whole number of groups fills have a rest."""
    parts, size = [normal(rows, 25) for _ in range(count)], 25 * count - short
    with consing():
        grid = axes(rows, size)
        i, j = indices(grid)
        which = op("mod", j, const(count))
        value = load(0, F32, (i, j // count))
        for n in range(1, count):
            value = where(op("eq", which, const(n)), load(n, F32, (i, j // count)), value)
        check(one_store(grid, value, parts), parts, np.stack(parts, -1).reshape(rows, -1)[:, :size])


@pytest.mark.parametrize("before, behind", [(0, 0), (1, 0), (7, 5), (8, 6)])
def test_spread_with_zeros_between_and_around(before: int, behind: int) -> None:
    """As the gradient of every second element is: read under conditions, of which none is left."""
    x, size = normal(5, 20), before + 40 + behind
    with consing():
        grid = axes(5, size)
        i, j = indices(grid)
        at = j + -before
        inside = op("and", op("ge", at, const(0)), op("lt", at, const(40)))
        inside = op("and", inside, op("eq", op("mod", at, const(2)), const(0)))
        kernel = one_store(grid, load(0, F32, (i, at // 2), inside, const(0.0, F32)), [x])
        want = np.zeros((5, size), F32)
        want[:, before : before + 40 : 2] = x
        check(kernel, [x], want)
        made, _ = cut(by_residues(flatten(kernel)))
    loads = [x for x in postorder(*kernel_roots(made)) if x.kind == "load"]
    assert loads and not any(x.attr.masked for x in loads)


def test_stages_of_rows() -> None:
    """A stage leaves to the next one what that spreads."""
    x = normal(6, 16)
    with consing():
        row, half, whole = Axis(6), Axis(16), Axis(32)
        i, j, k = index(row), index(half), index(whole)
        first = Stage((half,), (Store(2, (j,), op("neg", load(0, F32, (i, j)))),))
        second = Stage((whole,), (Store(1, (i, k), load(2, F32, (k // 2,))),))
        operands = (Operand((6, 16), F32, "in"), Operand((6, 32), F32, "out"), Operand((16,), F32, "local"))
        kernel = Kernel((row,), (first, second), operands)
        assert len(by_residues(flatten(kernel)).stages[1].stores) == 2
        library, out = CompiledKernels([kernel], [choose(kernel)]), np.zeros((6, 32), F32)
        library.run(0, kernel, [x, out])
    np.testing.assert_array_equal(out, np.repeat(-x, 2, 1))


def test_what_is_left_as_it_is() -> None:
    """Large numbers, several of them, those below zero, folds, and the axis that threads share."""
    x = normal(4, 30)
    with consing():
        grid = axes(4, 60)
        i, j = indices(grid)
        large = one_store(grid, load(0, F32, (i, j // (MOST + 1))), [x])
        below = one_store(grid, cast(op("mod", j, const(-2)), F32), [])
        two = one_store(grid, load(0, F32, (i, j // 2)) + load(0, F32, (i, j // 3)), [x])
        k = Axis(3)
        body = load(0, F32, (i, j // 2)) + load(0, F32, (i, index(k)))
        total = one_store(grid, fold("add", (k,), (const(0.0, F32),), (body,)), [x])
        only = axes(60)
        shared = one_store(only, load(0, F32, (index(only[0]) // 2,)), [normal(30)])
        for kernel in (large, below, two, total, shared):
            assert by_residues(flatten(kernel)) == flatten(kernel)


@pytest.mark.parametrize("count", [2, 3, MOST])
def test_one_axis_of_whole_groups(count: int) -> None:
    """As of what is repeated and flat: a point computes all elements of a group."""
    x, y = normal(20), normal(20 * count)
    with consing():
        (axis,) = axes(20 * count)
        value = load(0, F32, (index(axis) // count,)) + load(1, F32, (index(axis),))
        kernel = one_store((axis,), value, [x, y])
        made = at_once(kernel)
        assert canonical(kernel, False, alone=True)[0].grid[0].extent == 20
        assert made.grid[0].extent == 20 and len(made.stages[0].stores) == count and not divisions(made)
        found = result_of(kernel)
        run(made, [x, y, found])
        odd = one_store(axes(20 * count + 1), value, [x, y])
        assert at_once(odd) is odd
    np.testing.assert_array_equal(found, np.repeat(x, count) + y)
