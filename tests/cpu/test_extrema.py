"""Extrema of vectors: NaN before all, and zeros told apart, as their sign says."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import polyax
from polyax import lax
from polyax_cpu.emit.emitter import add_kernel
from polyax_cpu.llvm import Module
from polyax_cpu.processors import host
from polyax_kernels.emit.schedule import choose
from polyax_kernels.ir.expr import Axis, consing, index, load, op
from polyax_kernels.ir.kernel import Kernel, Operand, Stage, Store

VALUES = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, -np.nan, 1e-45, -3e38]


def _expected(name: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    larger = (x > y) | ((x == y) & ~np.signbit(x))
    chosen = np.where(larger, x, y) if name == "max" else np.where(larger, y, x)
    return np.where(np.isnan(x) | np.isnan(y), np.nan, chosen)


def _equal(got: np.ndarray, wanted: np.ndarray) -> None:
    np.testing.assert_array_equal(got, wanted)
    numbers = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(got)[numbers], np.signbit(wanted)[numbers])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["max", "min"])
def test_of_two(name: str, dtype: str) -> None:
    with polyax.enable_x64(), polyax.default_device("cpu"), np.errstate(all="ignore"):
        x, y = np.array(list(itertools.product(VALUES, VALUES)), dtype).T
        _equal(np.asarray(polyax.jit(getattr(lax, name))(x, y)), _expected(name, x, y))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("length", [33, 64, 200])
def test_of_rows(length: int, name: str, dtype: str) -> None:
    """One value among others, anywhere."""
    rows = [(base, other, at) for base in VALUES[:6] for other in VALUES for at in (0, 17, length - 1)]
    with polyax.enable_x64(), polyax.default_device("cpu"), np.errstate(all="ignore"):
        x = np.stack([np.full(length, base, dtype) for base, _, _ in rows])
        for row, (_, other, at) in zip(x, rows, strict=True):
            row[at] = other
        bases, others = (np.array([row[n] for row in rows], dtype) for n in (0, 1))
        reduce = {"max": lax.reduce_max, "min": lax.reduce_min}[name]
        _equal(np.asarray(polyax.jit(lambda x: reduce(x, (1,)))(x)), _expected(name, bases, others))


@pytest.mark.skipif(not host().has_ranges, reason="this processor has no such instruction")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_take_one_instruction_that_knows_zeros_apart(dtype: str) -> None:
    with consing():
        axis, module = Axis(4096), Module(["k"])
        x, y = (load(n, np.dtype(dtype), (index(axis),)) for n in range(2))
        operands = tuple(Operand((4096,), np.dtype(dtype), role) for role in ("in", "in", "out"))
        kernel = Kernel((axis,), (Stage((), (Store(2, (index(axis),), op("max", x, y)),)),), operands)
        add_kernel(module, kernel, choose(kernel), "k")
    assert "avx512.mask.range" in module.text()
    assert "llvm.maximum" not in module.text().replace("declare", "")
