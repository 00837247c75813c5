"""Rows that a kernel passes over more than once: while a later pass computes, the next row comes from memory.

Processors fetch ahead within a pass; in the passes behind it, over what is in the cache by then, memory would wait.
Knows kernels and where they read; must not know how loops are written.
"""

from __future__ import annotations

from collections import defaultdict
from math import prod

from polyax_cpu.llvm import Builder, IrValue
from polyax_kernels.ir.expr import postorder
from polyax_kernels.ir.kernel import Kernel, Operand, kernel_roots
from polyax_kernels.ir.strides import stride

LARGE = 1 << 22
"""Bytes of operands; those of fewer are in the cache as it is."""
ROWS = range(1 << 9, 1 << 16)
"""Bytes between rows that are worth it, and are still in the cache when their turn comes."""
LINE = 64
"""Bytes that memory hands over at once."""


class Ahead:
    """Fetches the next rows of the operands of one kernel. ``passes``: loops over rows that were begun so far."""

    def __init__(self, b: Builder, kernel: Kernel) -> None:
        self.b = b
        self.passes = 0
        self.pitches = _pitches(kernel)
        self.read: dict[int, list[int]] = defaultdict(list)
        """The passes that read an operand, by slot."""

    def fetch(self, slot: int, place: IrValue, nbytes: int) -> None:
        """Asks for what is one row behind ``place``, if this is the second pass over the operand."""
        if slot not in self.pitches:
            return
        read = self.read[slot]
        if self.passes not in read:
            read.append(self.passes)
        if read[1:2] == [self.passes]:
            for n in range(0, nbytes, LINE):
                self.b.prefetch(self.b.at(place, self.pitches[slot] + n, "i8"))


def _pitches(kernel: Kernel) -> dict[int, int]:
    """Bytes between the rows of large operands, by slot."""
    if not kernel.grid:
        return {}
    steps: dict[int, set[int | None]] = defaultdict(set)
    for x in postorder(*kernel_roots(kernel)):
        if x.kind == "load":
            steps[x.attr.slot].add(stride(x.args[0], kernel.grid[-1]))
    large = {slot: kernel.operands[slot].dtype.itemsize for slot in steps if _is_large(kernel.operands[slot])}
    pitches = {slot: size * (steps[slot].pop() or 0) for slot, size in large.items() if len(steps[slot]) == 1}
    return {slot: pitch for slot, pitch in pitches.items() if pitch in ROWS}


def _is_large(operand: Operand) -> bool:
    if operand.role == "local" or not all(isinstance(n, int) for n in operand.shape):
        return False
    return prod(n for n in operand.shape if isinstance(n, int)) * operand.dtype.itemsize >= LARGE
