"""The largest elements of rows, one by one and by a sort: their order, their places and their bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernels.gpu_backend import grouped_backend
from kernels.programs import compiled, launched, on_reference, traced

import polyax
from polyax import lax
from polyax.ir.aval import ShapedArray
from polyax.reference.interpreter import evaluate
from polyax_kernels.gpu.schedule import GpuSchedule
from polyax_kernels.gpu.top_k import BY_SORT, FEW, ONE_BY_ONE, WRITTEN_OUT

RNG = np.random.default_rng(5)
TIES = RNG.integers(-3, 3, (4, 300))
SPECIAL = TIES[:, :60].astype(np.float32)
SPECIAL[0, ::7], SPECIAL[1, ::5], SPECIAL[2, ::9], SPECIAL[3, :] = np.nan, -0.0, np.inf, -np.inf
SPECIAL[1, 3::5], SPECIAL[0, 1::7] = 0.0, -np.float32(np.nan)
LEAST = np.full((3, 40), np.iinfo(np.int32).min, np.int32)


def schedules(x: np.ndarray, k: int, axis: int, eager: bool = False) -> list[GpuSchedule]:
    """Those of the kernels that find what the reference finds, to the bit."""
    backend: Any = grouped_backend(32)
    closed = traced(lambda x: lax.top_k(x, k, axis=axis), [x])
    executable: Any = compiled(backend, closed, eager=eager)
    same(launched(backend, executable, closed, [x]), on_reference(lambda x: lax.top_k(x, k, axis=axis), [x]))
    kernels = [backend.kernels[0].get(s.kernel, s.scalars) for s in executable.plan.steps if hasattr(s, "kernel")]
    return [k.schedule for k in kernels]


def same(found: Any, wanted: Any) -> None:
    for got, want in zip(found, wanted, strict=True):
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        np.testing.assert_array_equal(np.asarray(got).view(np.uint8), np.ascontiguousarray(want).view(np.uint8))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "uint32", "float16", "bfloat16", "float32"])
def test_types(dtype: str) -> None:
    schedules((TIES > 0 if dtype == "bool" else TIES).astype(np.dtype(polyax.numpy.dtype(dtype))), 2, 1)


@pytest.mark.parametrize("x", [SPECIAL, LEAST], ids=["special", "least"])
@pytest.mark.parametrize("k", [1, 3, WRITTEN_OUT + 3, FEW])
def test_order_of_special_numbers_and_of_equal_ones(x: np.ndarray, k: int) -> None:
    schedules(x, k, 1)


def test_eager() -> None:
    schedules(SPECIAL, 2, 1, eager=True)


def test_one_kernel_finds_a_few() -> None:
    x = RNG.standard_normal((500, 100)).astype(np.float32)
    made = schedules(x, 3, 1)
    assert len(made) <= 3 and made[0].mode == "groups"


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_axes(axis: int) -> None:
    schedules(RNG.standard_normal((9, 12, 11)).astype(np.float32), 3, axis)


def test_as_many_as_there_are() -> None:
    schedules(TIES[:, :6].astype(np.int32), 6, 1)
    schedules(TIES[:, :6].astype(np.int32), 0, 1)


@pytest.mark.parametrize("x", [SPECIAL, LEAST, TIES > 0, TIES.astype(np.uint8)])
@pytest.mark.parametrize("axis", [0, 1])
def test_by_a_sort(x: np.ndarray, axis: int) -> None:
    program = BY_SORT.program([ShapedArray(x.shape, x.dtype)], k=3, axis=axis)
    same(evaluate(program.jaxpr, [*program.consts, x]), on_reference(lambda x: lax.top_k(x, 3, axis=axis), [x]))


@pytest.mark.parametrize("k", [1, FEW, FEW + 1])
def test_one_of_both_finds_them(k: int) -> None:
    backend: Any = grouped_backend(32)
    (eqn,) = traced(lambda x: lax.top_k(x, k), [TIES.astype(np.float32)]).jaxpr.eqns
    target = backend.rules(backend.runtimes[0].limits).target
    declined = [rule.declines(target, eqn) for rule in (ONE_BY_ONE, BY_SORT)]
    assert [reason is None for reason in declined] == [k <= FEW, k > FEW]
