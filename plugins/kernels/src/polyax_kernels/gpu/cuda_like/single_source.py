"""The dialect of C++ that CUDA C and HIP share, without a header: its words, and the names of threads."""

from __future__ import annotations

from polyax_kernels.gpu.emitter import GpuEmitter
from polyax_kernels.ir.kernel import Operand


class SingleSourceEmitter(GpuEmitter):
    """Pointers are passed as they are, offsets included; kernels may read and write the same memory."""

    kernel_words = "__global__ void"
    local_words = "__shared__"
    barrier_words = "__syncthreads();"

    def signature(self) -> list[str]:
        """With the number of threads, which tells the compiler how many registers each may have."""
        x, y = self.schedule.threads
        return [f'extern "C" __launch_bounds__({x * y})', *super().signature()]

    def argument(self, slot: int, operand: Operand, type: str) -> tuple[str, list[str]]:
        return f"{type} *b{slot}", []

    def thread(self, dimension: int) -> str:
        return f"threadIdx.{'xyz'[dimension]}"

    def group(self, dimension: int) -> str:
        return f"blockIdx.{'xyz'[dimension]}"

    def threads(self, dimension: int) -> str:
        """As a constant: the compiler sees how often loops run."""
        return str(self.schedule.threads[dimension])

    def groups(self, dimension: int) -> str:
        return f"gridDim.{'xyz'[dimension]}"
