"""The cuda backend: what the generic GPU path needs to know of CUDA, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from polyax_cuda.emitter import CudaEmitter
from polyax_cuda.graphs import CudaExecutable
from polyax_kernels.gpu.backend import GpuBackend
from polyax_kernels.gpu.runtime import Runtime


class CudaBackend(GpuBackend):
    """Opened by the registry as platform ``cuda``, with all GPUs that CUDA_VISIBLE_DEVICES shows."""

    emitter = CudaEmitter
    executable = CudaExecutable

    def __init__(self, runtimes: Sequence[Runtime] | None = None) -> None:
        super().__init__("cuda", all_gpus() if runtimes is None else runtimes)


def all_gpus() -> Sequence[Runtime]:
    from polyax_cuda.runtime import CudaRuntime, count

    return [CudaRuntime(n) for n in range(count())]
