"""The cuda backend: what the generic GPU path needs to know of CUDA, and nothing else."""

from __future__ import annotations

from polyax_cuda import nccl
from polyax_cuda.emitter import CudaEmitter
from polyax_kernels.api.gpu import ATOMIC_SIZES, GpuBackend
from polyax_kernels.api.lowerings import REALS, Limits


class CudaBackend(GpuBackend):
    """Opened by the registry as platform ``cuda``, with all GPUs that CUDA_VISIBLE_DEVICES shows."""

    emitter = CudaEmitter
    communication = nccl.NCCL


def limits(shared_bytes: int, threads: int, units: int) -> Limits:
    """Of a GPU with so much memory for a block, threads in a block, and multiprocessors."""
    shape = {"lanes": 1, "tile": 1, "threads": threads, "group": 256, "units": units}
    return Limits(REALS, local_bytes=shared_bytes, atomics=ATOMIC_SIZES, **shape)
