"""The cuda backend: what the generic GPU path needs to know of CUDA, and nothing else."""

from __future__ import annotations

from dataclasses import replace

from polyax_cuda import nccl
from polyax_cuda.emitter import CudaEmitter
from polyax_kernels.api.gpu import ATOMIC_SIZES, GpuBackend
from polyax_kernels.api.lowerings import REALS, Limits

GPU = Limits(REALS, lanes=1, tile=1, group=256, atomics=ATOMIC_SIZES)
"""What all of them have."""


class CudaBackend(GpuBackend):
    """Opened by the registry as platform ``cuda``, with all GPUs that CUDA_VISIBLE_DEVICES shows."""

    emitter = CudaEmitter
    communication = nccl.NCCL


def limits(shared_bytes: int, threads: int, units: int) -> Limits:
    """Of a GPU with so much memory for a block, threads in a block, and multiprocessors."""
    return replace(GPU, local_bytes=shared_bytes, threads=threads, units=units)
