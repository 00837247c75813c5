"""NVRTC without a GPU: machine code, the cache on disk, and what is rejected."""

from __future__ import annotations

import pytest

from polyax_cuda import compiler
from polyax_kernels.gpu.runtime import KernelRejected

DOUBLE = 'extern "C" __global__ void kernel(float *x) { x[threadIdx.x] *= 2; }'


def test_machine_code_and_ptx() -> None:
    assert compiler.compiled(DOUBLE, "sm_90").startswith(b"\x7fELF")
    assert b".target sm_90" in compiler.compiled(DOUBLE, "compute_90")


def test_a_second_compilation_comes_from_disk() -> None:
    first = compiler.binary(DOUBLE, "sm_80")
    before = compiler._cache.stats()
    assert compiler.binary(DOUBLE, "sm_80") == first
    assert compiler._cache.stats().hits == before.hits + 1


def test_the_log_and_the_source_of_a_rejected_kernel() -> None:
    with pytest.raises(KernelRejected, match="identifier .* is undefined") as caught:
        compiler.compiled('extern "C" __global__ void kernel(float *x) { x[0] = missing; }', "sm_90")
    assert "x[0] = missing" in str(caught.value)


@pytest.mark.parametrize(("capability", "target"), [((9, 0), "sm_90"), ((7, 5), "sm_75"), ((99, 0), "compute_")])
def test_unknown_gpus_get_ptx(capability: tuple[int, int], target: str) -> None:
    assert compiler.target(*capability).startswith(target)
