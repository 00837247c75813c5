"""What code of products and convolutions shares: vectors of floats that are read and written where they lie, and digits
of numbers that count along several dimensions.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from polyax_cpu.llvm import Builder, IrValue, size_of
from polyax_cpu.processors import host

TYPES = {"float32": "float", "float64": "double"}


@functools.cache
def many() -> bool:
    """Whether there are 32 registers of vectors; else there are 16, with which BLAS is as fast where much is added."""
    return host().vector_bits == 512 and host().has_masks


def why_not() -> str | None:
    """Why this processor doesn't sum in blocks of registers, if so."""
    enough = many() or {"+avx2", "+fma"} <= set(host().features.split(","))
    return None if enough else "this processor has no vectors of eight numbers, or doesn't add products to them"


def why_few() -> str | None:
    """Why it doesn't sum in large ones."""
    return None if many() else "registers of this processor are too few for large blocks of sums"


def lanes(type: str) -> int:
    return host().vector_bits // (8 * size_of(type))


@dataclass(frozen=True)
class Vectors:
    """Registers of a type."""

    type: str

    @property
    def lanes(self) -> int:
        return lanes(self.type)

    def at(self, pointer: IrValue, offset: IrValue | int) -> IrValue:
        return pointer.b.at(pointer, offset, self.type)

    def load(self, pointer: IrValue, mask: IrValue | None = None, count: int | None = None) -> IrValue:
        """A vector; zeros where ``mask`` is false."""
        b = pointer.b
        return b.load_lanes(pointer, self.type, count or self.lanes, mask, b.const(0.0, self.type))

    def single(self, pointer: IrValue) -> IrValue:
        return pointer.b.load(pointer, self.type)

    def zero(self, b: Builder) -> IrValue:
        return b.splat(b.const(0.0, self.type), self.lanes)


def digit(number: IrValue, size: IrValue) -> tuple[IrValue, IrValue]:
    """What remains of a number without its last digit, and that."""
    rest = number / size
    return rest, number - rest * size


def between(b: Builder, at: IrValue, count: int, begin: IrValue, end: IrValue) -> IrValue:
    """Which of the ``count`` numbers from ``at`` on are between two others."""
    number = lambda x: b.splat(b.convert("trunc", x - at, "i32"), count)
    numbers = b.numbers(range(count), "i32")
    return b.test("icmp sge", numbers, number(begin)) & b.test("icmp slt", numbers, number(end))
