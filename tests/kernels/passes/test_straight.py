"""Folds of a few elements have no loops, and the values that loops give."""

from __future__ import annotations

import numpy as np
import pytest
from kernels.building import F32, axes, indices, one_store, result_of

from polyax_kernels.emit.numpy import run
from polyax_kernels.ir.expr import COMPARISONS, Axis, Expr, consing, const, fold, folds_of, index, load, op, postorder
from polyax_kernels.ir.kernel import Kernel, kernel_roots
from polyax_kernels.passes.for_emission import flatten
from polyax_kernels.passes.straight import NODES, ONE_BY_ONE, STACKED, straight, without_short_folds

RNG = np.random.default_rng(0)


def total(x: np.ndarray, combine: str = "add") -> Kernel:
    """``out[i]`` is made of all ``x[i]``."""
    grid = axes(x.shape[0])
    inner = axes(*x.shape[1:])
    value = load(0, F32, (*indices(grid), *indices(inner)))
    return one_store(grid, fold(combine, inner, (const(1, F32),), (value,)), [x])


def folds(kernel: Kernel) -> list[Expr]:
    return folds_of(*kernel_roots(kernel))


@pytest.mark.parametrize("shape", [(5, 1), (5, 3), (5, ONE_BY_ONE - 1), (4, 2, 3)])
@pytest.mark.parametrize("combine", ["add", "mul", "max"])
def test_short_ones_are_written_out(shape: tuple[int, ...], combine: str) -> None:
    x = RNG.standard_normal(shape).astype(F32)
    with consing():
        kernel = flatten(total(x, combine))
        plain = without_short_folds(kernel)
        assert folds(kernel) and not folds(plain)
        outs = [result_of(kernel) for _ in range(2)]
        for k, out in zip((kernel, plain), outs, strict=True):
            run(k, [x.ravel(), out])
        np.testing.assert_array_equal(*outs)


def test_long_ones_and_too_many_have_loops() -> None:
    with consing():
        kernel = flatten(total(np.zeros((5, ONE_BY_ONE), F32)))
        assert without_short_folds(kernel) is kernel
        (i,) = indices(grid := axes(5))
        value = load(0, F32, (i, index(r := Axis(7, "r"))))
        for _ in range(NODES // 7):
            value = value * value + 1.0
        large = flatten(one_store(grid, fold("add", (r,), (const(0, F32),), (value,)), [np.zeros((5, 7), F32)]))
        assert without_short_folds(large) is large


@pytest.mark.parametrize("size", [8, 11, 16])
def test_from_eight_on_sums_are_made_by_halves(size: int) -> None:
    with consing():
        r = Axis(size, "r")
        plain = straight(fold("add", (r,), (const(0, F32),), (load(0, F32, (index(r),)),)))
    depth: dict[Expr, int] = {}

    def deep(x: Expr) -> int:
        if x not in depth:
            depth[x] = int(x.kind == "op") + max(map(deep, x.args), default=0)
        return depth[x]

    assert deep(plain) == 1 + int(np.ceil(np.log2(size)))


def stacked(arrays: list[np.ndarray], combine: str = "add", work: int = 0) -> Kernel:
    """``out[i]`` is made of element ``i`` of each of them, chosen by number."""
    (i,) = indices(grid := axes(arrays[0].size))
    r = Axis(len(arrays), "r")
    value: Expr = const(0, F32)
    for n in reversed(range(len(arrays))):
        value = load(n, F32, (i,), op("and", op("ge", index(r), const(n)), op("lt", index(r), const(n + 1))), value)
    for _ in range(work):
        value = value * value + 1.0
    return one_store(grid, fold(combine, (r,), (const(1, F32),), (value,)), arrays)


@pytest.mark.parametrize("count", [8, 11, STACKED])
@pytest.mark.parametrize("combine", ["add", "max"])
def test_folds_of_what_is_stacked_choose_nothing(count: int, combine: str) -> None:
    arrays = [RNG.standard_normal(50).astype(F32) for _ in range(count)]
    with consing():
        kernel = stacked(arrays, combine)
        plain = without_short_folds(kernel)
        assert not folds(plain) and not [x for x in postorder(*kernel_roots(plain)) if x.attr in COMPARISONS]
        outs = [result_of(kernel) for _ in range(2)]
        for k, out in zip((kernel, plain), outs, strict=True):
            run(k, [*arrays, out])
        np.testing.assert_allclose(*outs, rtol=1e-6)


def test_folds_of_more_or_of_much_work_have_loops() -> None:
    with consing():
        for kernel in (stacked([np.ones(50, F32)] * (STACKED + 1)), stacked([np.ones(50, F32)] * 9, work=NODES)):
            assert without_short_folds(kernel) is kernel
