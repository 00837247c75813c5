"""What is read across the last axis is turned in squares by groups of threads, for one size and for all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from kernels.building import F32, axes, indices, one_store
from kernels.gpu_backend import grouped_backend
from kernels.programs import assert_same, compiled, launched, on_reference, traced

import polyax.numpy as jnp
from polyax_kernels.gpu.schedule import GpuSchedule, choose
from polyax_kernels.gpu.squares import LEAST, in_squares
from polyax_kernels.ir.expr import consing, load
from polyax_kernels.ir.limits import Limits

GPU = Limits(lanes=1, tile=1, threads=1024, group=256, units=132)
RNG = np.random.default_rng(0)
MATRIX = RNG.normal(size=(130, 150)).astype(F32)
CUBE = RNG.normal(size=(37, 40, 35)).astype(F32)

PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "whole squares": (lambda x: x.T + 1, (MATRIX[:128, :128],)),
    "parts of squares": (lambda x: x.T + 1, (MATRIX,)),
    "both ways": (lambda x: x.T * x, (MATRIX[:, :130],)),
    "two operands": (lambda x, y: x.T - y.T.astype(jnp.float32), (MATRIX, (9 * MATRIX).astype(np.int16))),
    "two results": (lambda x: (x.T * 2, jnp.sin(x.T)), (MATRIX,)),
    "the outer axis": (lambda x: x.transpose(2, 1, 0) * 2, (CUBE,)),
    "the middle axis": (lambda x: x.transpose(0, 2, 1) * 2, (CUBE,)),
    "an outer axis that becomes the last": (lambda x: x.transpose(1, 2, 0) * 2, (CUBE,)),
    "a part": (lambda x: x[2:, 3:].T * 2, (MATRIX,)),
    "half": (lambda x: x.T * 2, (MATRIX.astype(np.float16),)),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("eager", [False, True])
def test_programs(name: str, eager: bool) -> None:
    fun, args = PROGRAMS[name]
    backend: Any = grouped_backend(32)
    closed = traced(fun, args)
    executable: Any = compiled(backend, closed, eager=eager)
    kernels = [backend.kernels[0].get(s.kernel, s.scalars) for s in executable.plan.steps]
    assert any(k.schedule.across is not None for k in kernels)
    assert_same(launched(backend, executable, closed, args), on_reference(fun, args))


def schedule(shape: tuple[int, int], limits: Limits = GPU) -> GpuSchedule:
    with consing():
        i, j = indices(grid := axes(*shape))
        return choose(one_store(grid, load(0, F32, (j, i)), [np.empty(shape[::-1], F32)]), limits)


def test_a_group_has_a_square() -> None:
    assert schedule((1000, 500)) == GpuSchedule("groups", (256, 1), across=0)
    with consing():
        i, j = indices(grid := axes(100, 500))
        kernel = one_store(grid, load(0, F32, (j, i)), [np.empty((500, 100), F32)])
        assert choose(kernel, GPU).geometry(kernel, ()) == ((4 * 16,), (256,))
        assert [a.extent for a in in_squares(kernel, 0).grid] == [4, 16]


@pytest.mark.parametrize(("shape", "threads"), [((8, LEAST), (32, 8)), ((20, 20), (32, 8)), ((3, LEAST), (64, 4))])
def test_threads_of_small_or_narrow_arrays_form_squares(shape: tuple[int, int], threads: tuple[int, int]) -> None:
    assert schedule(shape) == GpuSchedule("points", threads)


def test_devices_without_much_memory_for_a_group_read_as_it_is_written() -> None:
    assert schedule((1000, 500), replace(GPU, local_bytes=1000)).mode == "points"
