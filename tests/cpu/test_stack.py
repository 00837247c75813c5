"""Stacked kernels through LLVM: equal to several kernels, and their loops are vectorised."""

from __future__ import annotations

import re

import numpy as np
import pytest
from kernels.programs import assert_same, compiled, launched, planned, traced
from kernels.rows import PROGRAMS, Stacking, layer_norm, normal

from polyax import nn
from polyax_cpu import compiler, kernels, processors
from polyax_cpu.backend import CpuBackend
from polyax_kernels.ir.expr import consing
from polyax_kernels.plan.plan import KernelStep


class CpuStacking(Stacking, CpuBackend):
    pass


@pytest.fixture(scope="module")
def backend() -> CpuStacking:
    return CpuStacking()


def outcome(backend, fun, x, stacking):
    backend.stacking = stacking
    closed = traced(fun, [x])
    return launched(backend, compiled(backend, closed), closed, [x])


@pytest.mark.parametrize("shape", [(5, 100), (64, 1), (300, 33), (3, 4, 17)], ids=str)
@pytest.mark.parametrize("fun", PROGRAMS, ids=lambda f: f.__name__)
def test_stacked_is_unstacked(backend, fun, shape) -> None:
    x = normal(*shape)
    assert_same(outcome(backend, fun, x, True), outcome(backend, fun, x, False))


@pytest.mark.parametrize(("dtype", "rounding"), [("float16", 0), ("float64", 1e-15)])
def test_dtypes(backend, dtype, rounding) -> None:
    """Scratch holds what memory would; sums in float64 may have another order, as vectors hold few of these."""
    x = normal(9, 40, dtype=dtype)
    got, want = outcome(backend, nn.softmax, x, True), outcome(backend, nn.softmax, x, False)
    np.testing.assert_allclose(got[0], want[0], rtol=rounding, atol=0)


@pytest.mark.parametrize("fun", [nn.softmax, layer_norm], ids=lambda f: f.__name__)
def test_loops_of_stages_are_vectorised(backend, fun) -> None:
    backend.stacking = True
    with consing():
        plan = planned(backend, traced(fun, [normal(64, 1000)]))
        (step,) = [s for s in plan.steps if isinstance(s, KernelStep)]
        module = kernels.module_of(step.kernel)
        text = str(compiler.optimize(module.text(), module.level))
    lanes = processors.host().vector_bits // 32
    assert len(step.kernel.stages) == 2
    stored = re.findall(rf"store <(?:{lanes}|{2 * lanes}) x float>", text)
    folded = re.findall(rf"phi <{4 * lanes} x (?:float|i32)>", text)
    assert len(stored) >= (2 if fun is nn.softmax else 1)
    assert len(folded) >= 2


@pytest.mark.parametrize("size", [16, 40, 63])
@pytest.mark.parametrize("name", ["sum", "max"])
def test_short_folds_are_vectors(backend, name: str, size: int) -> None:
    """One after the other, each operation would wait for the one before."""
    fold, x = lambda x: getattr(x * 2, name)(axis=1), normal(5, size)
    lanes = [int(n) for n in re.findall(r"fmul <(\d+) x float>", code(backend, fold, x))]
    assert max(lanes) >= min(processors.host().vector_bits // 32, size // 2)
    np.testing.assert_allclose(outcome(backend, fold, x, False)[0], getattr(2 * x, name)(axis=1), rtol=1e-5, atol=1e-5)


def code(backend, f, x: np.ndarray) -> str:
    """The code of the one kernel of a program, after LLVM's passes."""
    with consing():
        (step,) = [s for s in planned(backend, traced(f, [x])).steps if isinstance(s, KernelStep)]
        module = kernels.module_of(step.kernel)
        return str(compiler.optimize(module.text(), module.level))


def test_loops_around_loops_are_not_copied(backend) -> None:
    assert code(backend, lambda x: x.T * 2, normal(64, 33)).count(" fmul ") == 1


@pytest.mark.parametrize("size", [5, 7, 10, 15])
def test_short_rows_are_one_vector(backend, size: int) -> None:
    """Of which some lanes are empty: code for each element takes far longer to compile."""
    add, x = lambda x: x + x[0], normal(50, size)
    assert code(backend, add, x).count(" fadd ") == (1 if processors.host().has_masks else size.bit_count())
    np.testing.assert_array_equal(outcome(backend, add, x, False)[0], x + x[0])


UNROLLED = {
    "columns": (lambda x: x.T + x.T[:1], (7, 30)),
    "backwards": (lambda x: x[:, ::-1] + x, (30, 7)),
    "bytes": (lambda x: (x > 0) & (x < x[0]), (30, 7)),
}


@pytest.mark.parametrize("name", UNROLLED)
def test_short_rows_are_unrolled_where_they_are_no_vectors(backend, name: str) -> None:
    f, shape = UNROLLED[name]
    x = normal(*shape)
    assert ("llvm.masked.store" in code(backend, f, x)) == (name == "bytes" and processors.host().has_masks)
    np.testing.assert_array_equal(outcome(backend, f, x, False)[0], f(x))
