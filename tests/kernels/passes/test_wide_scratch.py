"""Scratch of narrow floats holds the same numbers in 32 bits."""

from __future__ import annotations

import numpy as np
import pytest
from kernels.building import F32, axes

import polyax
import polyax.numpy as jnp
from polyax.ir.dtypes import bfloat16
from polyax_kernels.emit.numpy import run
from polyax_kernels.emit.row_blocks import block
from polyax_kernels.ir.expr import Axis, cast, consing, const, fold, index, load, op, postorder
from polyax_kernels.ir.kernel import Kernel, Operand, Stage, Store, kernel_roots
from polyax_kernels.passes.for_emission import flatten, widen
from polyax_kernels.passes.wide_scratch import in_wide_scratch

ROWS, SIZE = 37, 24


def shares(dtype: np.dtype, combine: str | None = None) -> Kernel:
    """``t = exp(x); out = t / sum(t)``, where a row's ``t`` is kept."""
    (rows,) = axes(ROWS)
    i, k, r, j = index(rows), Axis(SIZE, "k"), Axis(SIZE, "r"), Axis(SIZE, "j")
    kept = Store(1, (index(k),), op("exp", load(0, dtype, (i, index(k)))), combine=combine)
    total = fold("add", (r,), (const(0, F32),), (cast(load(1, dtype, (index(r),)), F32),))
    given = Store(2, (i, index(j)), op("div", load(1, dtype, (index(j),)), cast(total, dtype)))
    shapes = ((ROWS, SIZE), "in"), ((SIZE,), "local"), ((ROWS, SIZE), "out")
    return Kernel(
        (rows,), (Stage((k,), (kept,)), Stage((j,), (given,))), tuple(Operand(s, dtype, r) for s, r in shapes)
    )


def conversions(kernel: Kernel) -> int:
    return sum(x.kind == "cast" for x in postorder(*kernel_roots(kernel)))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_the_same_numbers_with_fewer_conversions(dtype: str) -> None:
    narrow = bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    x = np.random.default_rng(0).normal(size=(ROWS, SIZE)).astype(narrow)
    x[0, :4] = np.nan, np.inf, -np.inf, -0.0
    with consing():
        kernel = widen(flatten(shares(narrow)))
        wide = in_wide_scratch(kernel)
        assert [o.dtype for o in wide.operands] == [narrow, F32, narrow]
        assert conversions(wide) < conversions(kernel)
        assert block(kernel)[0].operands[1].dtype == F32
        results = [np.zeros((ROWS, SIZE), narrow).ravel() for _ in range(2)]
        for k, result in zip((kernel, wide), results, strict=True):
            run(k, [x.ravel(), result])
    np.testing.assert_array_equal(*[result.view(np.uint16) for result in results])


def test_scratch_that_is_added_to_stays_narrow() -> None:
    """Each sum is rounded."""
    with consing():
        kernel = widen(flatten(shares(bfloat16, combine="add")))
        assert in_wide_scratch(kernel) is kernel


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_rows_have_the_same_bits_in_blocks(name: str, dtype: str) -> None:
    x = jnp.asarray(np.random.default_rng(0).normal(size=(200, SIZE)), dtype)
    f = polyax.jit(getattr(polyax.nn, name))
    np.testing.assert_array_equal(np.asarray(f(x))[:7], np.asarray(f(x[:7])))
