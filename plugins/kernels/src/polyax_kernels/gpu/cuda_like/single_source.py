"""The dialect of C++ that CUDA C and HIP share, without a header: its words, and the names of threads."""

from __future__ import annotations

from polyax_kernels.gpu.emitter import GpuEmitter
from polyax_kernels.ir.kernel import Operand

UPDATES = {
    **{("add", d): "atomicAdd({0}, {1});" for d in ("float32", "float64", "int32", "uint32", "uint64")},
    **{("sub", d): "atomicAdd({0}, -{1});" for d in ("float32", "float64")},
    **{("sub", d): "atomicSub({0}, {1});" for d in ("int32", "uint32")},
    **{("max", d): "atomicMax({0}, {1});" for d in ("int32", "uint32", "int64", "uint64")},
    **{("min", d): "atomicMin({0}, {1});" for d in ("int32", "uint32", "int64", "uint64")},
    ("add", "int64"): "atomicAdd((uint64_t *)({0}), (uint64_t){1});",
}
"""One instruction each. All else is replaced by comparison, floats' extrema too, which order zeros and keep NaN."""
ATOMIC_SIZES = frozenset((2, 4, 8))
"""What can be compared and replaced, in bytes."""


class SingleSourceEmitter(GpuEmitter):
    """Pointers are passed as they are, offsets included; kernels may read and write the same memory."""

    kernel_words = "__global__ void"
    local_words = "__shared__"
    barrier_words = "__syncthreads();"
    updates = UPDATES

    def swapped(self, pointer: str, before: str, after: str, nbytes: int) -> str:
        return f"atomicCAS({pointer}, {before}, {after})"

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
