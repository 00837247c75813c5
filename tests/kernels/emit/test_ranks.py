"""Extrema of floats as extrema of integers: the same results, NaN and the signs of zeros included."""

from __future__ import annotations

import numpy as np
import pytest
from kernels.building import axes, one_store, result_of

from polyax.ir.dtypes import bfloat16
from polyax_kernels.emit.numpy import run
from polyax_kernels.emit.ranks import rank
from polyax_kernels.ir.expr import consing, const, fold, folds_of, index, load
from polyax_kernels.ir.kernel import Kernel, kernel_roots
from polyax_kernels.passes.for_emission import flatten, widen

ROWS = [
    [1, -2, 3, 0.5],
    [-np.inf, -1, -3, -np.inf],
    [-0.0, 0.0, -0.0, -0.0],
    [0.0, -0.0, 0.0, 0.0],
    [-0.0, -0.0, -0.0, -0.0],
    [np.inf, np.nan, 1, -np.inf],
    [np.inf, -np.nan, 1, -np.inf],
    [-np.inf, -np.inf, -np.inf, -np.inf],
    [1e-40, -1e-40, 0, 3e38],
]


def of_rows(combine: str, start: float, x: np.ndarray) -> Kernel:
    grid, (k,) = axes(len(x)), axes(x.shape[1])
    element = load(0, x.dtype, (index(grid[0]), index(k)))
    return one_store(grid, fold(combine, (k,), (const(start, x.dtype),), (element,)), [x])


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", bfloat16], ids=str)
@pytest.mark.parametrize("combine", ["max", "min"])
def test_results_are_those_of_floats(combine: str, dtype: str) -> None:
    with np.errstate(over="ignore"):
        x = np.array(ROWS).astype(dtype)
    with consing():
        kernel = widen(flatten(of_rows(combine, -np.inf if combine == "max" else np.inf, x)))
        ranked = rank(kernel)
        (best,) = folds_of(*kernel_roots(ranked))
        assert best.dtype == f"uint{8 * x.dtype.itemsize}"
        got, expected = result_of(kernel), result_of(kernel)
        run(kernel, [x.ravel(), expected])
        run(ranked, [x.ravel(), got])
    np.testing.assert_array_equal(got.astype(np.float64), expected.astype(np.float64))
    np.testing.assert_array_equal(np.signbit(got)[got == 0], np.signbit(expected)[got == 0])


@pytest.mark.parametrize("combine, dtype", [("add", "float32"), ("max", "int32"), ("max", "bool")])
def test_other_folds_are_left_alone(combine: str, dtype: str) -> None:
    with consing():
        kernel = of_rows(combine, 0, np.zeros((3, 4), dtype))
        assert kernel_roots(rank(kernel)) == kernel_roots(kernel)
