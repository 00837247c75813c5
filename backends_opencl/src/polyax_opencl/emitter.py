"""OpenCL C: the words in which it differs from CUDA C and C99."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from polyax_kernels.api.emitters import TABLE, Operand
from polyax_kernels.api.gpu import GpuEmitter
from polyax_opencl import functions
from polyax_opencl.functions import PROCESSOR

OWN = {
    "int8": "char", "int16": "short", "int32": "int", "int64": "long", "float32": "float", "float64": "double",
    "uint8": "uchar", "uint16": "ushort", "uint32": "uint", "uint64": "ulong", "float16": "ushort",
    "bfloat16": "ushort",
}  # fmt: skip
"""OpenCL's names of types."""
_TYPES = "\n".join(f"typedef {own} {name}_t;" for name, own in OWN.items() if "float" not in name)
HEADER = f"""\
#pragma OPENCL FP_CONTRACT OFF
{_TYPES}
#ifdef {PROCESSOR}
#define CORE(name, suffix) __builtin_##name##suffix
#define signbit(x) __builtin_signbit(x)
#else
#define CORE(name, suffix) name
#endif
"""
CORE = frozenset(("floor", "ceil", "trunc", "rint", "fabs", "sqrt"))
"""What is one instruction. A call of a processor's OpenCL library would keep loops from being vectorised."""

EXTREMA = frozenset(("max", "min"))
SIDE = 32


class OpenCLEmitter(GpuEmitter):
    """The dialect. An operand is a buffer and an offset in bytes: sub-buffers would have to be aligned."""

    kernel_words = "__kernel void"
    memory_words = "__global"
    local_words = "__local"
    barrier_words = "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);"
    long: ClassVar[str] = "L"
    inline: ClassVar[str] = "static inline __attribute__((always_inline))"
    header = HEADER

    def signature(self) -> list[str]:
        """With the size of groups: some compilers wait with their work until they know it."""
        x, y = self.schedule.threads
        return [f"__attribute__((reqd_work_group_size({x}, {y}, 1)))", *super().signature()]

    def argument(self, slot: int, operand: Operand, type: str) -> tuple[str, list[str]]:
        pointer = f"__global {type} *"
        return f"__global uchar *m{slot}, long o{slot}", [f"  {pointer}b{slot} = ({pointer})(m{slot} + o{slot});"]

    def function(self, name: str, dtype: np.dtype) -> str:
        if name in TABLE and dtype.itemsize == 4:
            return self.helper(functions.function(name))
        return f"CORE({name}, {'f' if dtype.itemsize == 4 else ''})" if name in CORE else name

    def vector_pragma(self, reduction: str = "") -> None:
        """Independent iterations go two vectors at a time: elementary functions are long chains of operations."""
        more = "" if reduction else " interleave_count(2)"
        self.lines.append(f"#pragma clang loop vectorize(assume_safety){more}")

    def fold(
        self,
        stop: str,
        inits: Sequence[str],
        dtypes: Sequence[np.dtype],
        body: Callable[[str, Sequence[str]], Sequence[str]],
        *,
        combines: Sequence[str] = (),
        **options: Any,
    ) -> Sequence[str]:
        """Compilers don't know our maxima and minima, which order zeros and keep NaN: several are made side by side."""
        if self.schedule.mode != "ranges" or not combines or not EXTREMA.issuperset(combines):
            return super().fold(stop, inits, dtypes, body, combines=combines, **options)
        kinds = [self.types[dtype.name] for dtype in dtypes]
        carries, parts = ([self.fresh("c") for _ in inits] for _ in range(2))
        for kind, c, p, init in zip(kinds, carries, parts, inits, strict=True):
            self.lines += [f"{kind} {c} = {init};", f"{kind} {p}[{SIDE}];"]
            self.lines.append(f"for (int l = 0; l < {SIDE}; l++) {p}[l] = {c};")

        def block(start: str) -> None:
            rest = self.value(self.index_dtype, f"{stop} - {start}")
            width = self.value(self.index_dtype, f"{rest} < {SIDE} ? {rest} : {SIDE}")
            self.vector_pragma()
            self.count("0", width, "1", lambda l: step(start, l))

        def step(start: str, l: str) -> None:
            places = [f"{p}[{l}]" for p in parts]
            results = body(self.value(self.index_dtype, f"{start} + {l}"), places)
            self.lines += [f"{p} = {r};" for p, r in zip(places, results, strict=True)]

        self.count("0", stop, str(SIDE), block)
        for name, dtype, c, p in zip(combines, dtypes, carries, parts, strict=True):
            joined = self.expression(name, dtype, (c, f"{p}[l]"))
            self.lines.append(f"for (int l = 0; l < {SIDE}; l++) {c} = {joined};")
        return carries

    def bitcast(self, x: str, source: np.dtype, target: np.dtype) -> str:
        return x if OWN[source.name] == OWN[target.name] else self.value(target, f"as_{OWN[target.name]}({x})")

    def thread(self, dimension: int) -> str:
        return f"get_local_id({dimension})"

    def group(self, dimension: int) -> str:
        return f"get_group_id({dimension})"

    def threads(self, dimension: int) -> str:
        return f"get_local_size({dimension})"

    def groups(self, dimension: int) -> str:
        return f"get_num_groups({dimension})"
