"""Rows of a few vectors: several are reduced together, with the bits that they have alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from kernels.building import F32, F64, assert_gives, axes

import polyax
import polyax.numpy as jnp
from polyax_kernels.emit.row_blocks import block
from polyax_kernels.emit.row_folds import LARGE, LEAST, MOST, STEP, suits
from polyax_kernels.emit.schedule import choose
from polyax_kernels.emit.totals import totals_of
from polyax_kernels.ir.expr import Axis, consing, const, fold, folds_of, index, load, op, postorder
from polyax_kernels.ir.kernel import Kernel, Operand, Stage, Store, kernel_roots
from polyax_kernels.passes.for_emission import flatten

RNG = np.random.default_rng(0)
SIZES = [LEAST, 15, 16, 17, 24, 33, 48, 64, MOST]
ROWS = 37
"""Two whole blocks, and part of one."""


def log_sums(count: int, size: int, dtype: np.dtype = F32, combine: str = "add", work: str = "log") -> Kernel:
    """``out[i] = work(total of exp(x[i]))``."""
    (rows,) = axes(count)
    i, r = index(rows), Axis(size, "r")
    body = op("exp", load(0, dtype, (i, index(r))))
    total = fold(combine, (r,), (const(0.5, dtype),), (body,))
    operands = Operand((count, size), dtype, "in"), Operand((count,), dtype, "out")
    return Kernel((rows,), (Stage((), (Store(1, (i,), op(work, total)),)),), operands)


def log_softmax(count: int, size: int, dtype: np.dtype = F32) -> Kernel:
    """Its grid has an axis for the elements; the exponentials are asked for twice."""
    rows, elements = axes(count, size)
    i, r, s = index(rows), Axis(size, "r"), Axis(size, "s")
    most = fold("max", (r,), (const(-np.inf, dtype),), (load(0, dtype, (i, index(r))),))
    at = lambda axis: op("exp", load(0, dtype, (i, index(axis))) - most)
    total = fold("add", (s,), (const(0, dtype),), (at(s),))
    store = Store(1, (i, index(elements)), at(elements) * op("log", total))
    operands = Operand((count, size), dtype, "in"), Operand((count, size), dtype, "out")
    return Kernel((rows, elements), (Stage((), (store,)),), operands)


def check(kernel: Kernel, x: np.ndarray, want: np.ndarray) -> None:
    assert choose(kernel).row_blocks
    assert_gives(kernel, x, want, rtol=2e-5)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", [F32, F64])
def test_sums_of_rows(size: int, dtype: np.dtype) -> None:
    x = RNG.uniform(-1, 1, (ROWS, size)).astype(dtype)
    with consing():
        check(log_sums(ROWS, size, dtype), x, np.log(0.5 + np.exp(x).sum(1)))


@pytest.mark.parametrize("size", SIZES)
def test_rows_of_several_folds(size: int) -> None:
    x = RNG.uniform(-1, 1, (ROWS, size)).astype(F32)
    powers = np.exp(x - x.max(1, keepdims=True))
    with consing():
        check(log_softmax(ROWS, size), x, powers * np.log(powers.sum(1, keepdims=True)))


def blocked(kernel: Kernel) -> Kernel:
    return block(flatten(kernel))[0]


def counted(kernel: Kernel, name: str) -> int:
    """How many stages compute an operation."""
    roots = [kernel_roots(Kernel((), (stage,), kernel.operands)) for stage in kernel.stages]
    return sum(any(x.kind == "op" and x.attr == name for x in postorder(*r)) for r in roots)


def test_no_row_is_put_together_alone() -> None:
    with consing():
        stages = blocked(log_softmax(ROWS, 32)).stages
        folding = [stage for stage in stages if folds_of(*kernel_roots(Kernel((), (stage,), ())))]
        assert len(folding) == 2 and all(totals_of(stage) for stage in folding)


def test_long_values_of_elements_are_computed_once_and_those_of_rows_by_vectors() -> None:
    with consing():
        kernel = blocked(log_softmax(ROWS, 32))
        assert counted(kernel, "exp") == counted(kernel, "log") == 1
        (logs,) = [s for s in kernel.stages if counted(Kernel((), (s,), kernel.operands), "log")]
        assert [axis.extent for axis in logs.axes] == [16]


def test_only_where_it_pays() -> None:
    with consing():
        suited = lambda kernel: suits(flatten(kernel))
        assert suited(log_sums(ROWS, 32)) and suited(log_sums(ROWS, 32, combine="max", work="abs"))
        assert not suited(log_sums(ROWS, 32, work="abs"))  # lanes are summed as fast by themselves
        assert not suited(log_sums(ROWS, LEAST - 1)) and not suited(log_sums(ROWS, MOST + 1))
        assert not suited(log_sums(15, 32)) and suited(log_sums(15, 32, F64))  # rows for a block
        size = STEP // 4 + 1
        assert suited(log_sums(ROWS, size)) and not suited(log_sums(LARGE // size, size))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["sum", "prod", "max"])
def test_reductions_have_the_same_bits_in_blocks_of_rows(name: str, dtype: str) -> None:
    total: Callable[[Any], Any] = lambda x: getattr(x, name)(-1)
    both = lambda x: (total(x), jnp.log(jnp.abs(total(x)) + 1))[0:2]
    with polyax.enable_x64(True):
        for size in (*SIZES, 31, 47, 95):
            x = RNG.normal(size=(200, size)).astype(dtype)
            alone = polyax.jit(total)(x[:7])
            np.testing.assert_array_equal(polyax.jit(both)(x)[0][:7], alone, err_msg=f"{size} elements")


def test_what_is_the_same_for_all_rows_is_computed_before_them() -> None:
    x, w = RNG.normal(size=(50, 24)).astype(F32), RNG.normal(size=24).astype(F32)
    loss = lambda x: (polyax.nn.log_softmax(x) * w).sum()
    powers = np.exp(x - x.max(1, keepdims=True))
    want = w - w.sum() * powers / powers.sum(1, keepdims=True)
    np.testing.assert_allclose(polyax.jit(polyax.grad(loss))(x), want, rtol=1e-4, atol=1e-5)
