"""The cuda backend: what the generic GPU path needs to know of CUDA, and nothing else."""

from __future__ import annotations

from polyax_cuda.emitter import CudaEmitter
from polyax_kernels.gpu.backend import GpuBackend


class CudaBackend(GpuBackend):
    """Opened by the registry as platform ``cuda``, with all GPUs that CUDA_VISIBLE_DEVICES shows."""

    emitter = CudaEmitter
