"""CUDA C as a dialect: its words, and the few names that NVRTC lacks without headers."""

from __future__ import annotations

from polyax_kernels.gpu.emitter import GpuEmitter
from polyax_kernels.kernel import Operand

HEADER = """\
typedef signed char int8_t; typedef short int16_t; typedef int int32_t; typedef long long int64_t;
typedef unsigned char uint8_t; typedef unsigned short uint16_t; typedef unsigned uint32_t;
typedef unsigned long long uint64_t;
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fc00000)
"""


class CudaEmitter(GpuEmitter):
    """Pointers are passed as they are, offsets included; kernels may read and write the same memory."""

    kernel_words = "__global__ void"
    local_words = "__shared__"
    barrier_words = "__syncthreads();"
    header = HEADER

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
        return f"blockDim.{'xyz'[dimension]}"

    def groups(self, dimension: int) -> str:
        return f"gridDim.{'xyz'[dimension]}"
