"""The dialect of C++ that CUDA C and HIP share, without a header: its words, and the names of threads."""

from __future__ import annotations

import numpy as np

from polyax_kernels.gpu.emitter import GpuEmitter
from polyax_kernels.ir.kernel import Operand

UPDATES = {
    **{("add", d): "atomicAdd({0}, {1});" for d in ("float32", "float64", "int32", "uint32", "uint64")},
    **{("sub", d): "atomicAdd({0}, -{1});" for d in ("float32", "float64")},
    **{("sub", d): "atomicSub({0}, {1});" for d in ("int32", "uint32")},
    **{("max", d): "if (*({0}) < {1}) atomicMax({0}, {1});" for d in ("int32", "uint32", "int64", "uint64")},
    **{("min", d): "if (*({0}) > {1}) atomicMin({0}, {1});" for d in ("int32", "uint32", "int64", "uint64")},
    ("add", "int64"): "atomicAdd((uint64_t *)({0}), (uint64_t){1});",
}
"""One instruction each, and none where an extremum stays: of many that meet, most change nothing. All else is replaced
by comparison."""
EXTREMUM = """\
void {name}({type} *p, {type} x) {{
  if (*p != *p || *p {beyond} x) return;
  if (x != x) atomicExch(({bits} *)p, ~({bits})0 {nan});
  else if (signbit(x)) atomic{negative}(({bits} *)p, *({bits} *)&x);
  else atomic{positive}(({whole} *)p, *({whole} *)&x);
}}"""
"""Of positive floats the larger one has the larger bits, of negative ones the smaller; as numbers without a sign, the
bits of negative ones are above all others, as numbers with a sign below. NaN stays: it is put there with bits that
neither of the two ever replaces."""


def _extremum(name: str, dtype: np.dtype) -> tuple[str, str]:
    """The helper's name and text. NaN has all bits, for maxima but the sign."""
    wide = dtype.itemsize == 8
    names = {"type": "double" if wide else "float", "bits": "uint64_t" if wide else "uint32_t"}
    names |= {"whole": "int64_t" if wide else "int32_t", "nan": ">> 1" if name == "max" else ""}
    names["beyond"] = ">" if name == "max" else "<"
    names |= {"negative": "Min" if name == "max" else "Max", "positive": "Max" if name == "max" else "Min"}
    called = f"{name}_at_{dtype.name}"
    return called, EXTREMUM.format(name=called, **names)


ATOMIC_SIZES = frozenset((2, 4, 8))
"""What can be compared and replaced, in bytes."""


class SingleSourceEmitter(GpuEmitter):
    """Pointers are passed as they are, offsets included; kernels may read and write the same memory."""

    kernel_words = "__global__ void"
    local_words = "__shared__"
    barrier_words = "__syncthreads();"
    updates = UPDATES

    def update(self, name: str, dtype: np.dtype) -> str | None:
        """Extrema of floats are those of their bits as whole numbers; see ``EXTREMUM``."""
        if name in ("max", "min") and dtype.name in ("float32", "float64"):
            return f"{self.helper(_extremum(name, dtype))}({{0}}, {{1}});"
        return super().update(name, dtype)

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
