"""float16 and bfloat16 for code generators without such types: their bits, held in an ``i32``, and float32.

Rounded to nearest, ties to even; NaN stays NaN, and subnormal numbers are kept. ``emit/narrow.py`` is the same in C.
"""

from __future__ import annotations

import numpy as np

from polyax_kernels.emit.functions.blocks import V, absolute, bits, from_bits, select


def widened(x: V, source: np.dtype) -> V:
    """The ``float`` that the 16 bits of ``x`` are. The least float16s are multiples of 2^-24."""
    if source.name == "bfloat16":
        return from_bits(x << 16)
    magnitude = x & 0x7FFF
    tiny = bits(x.b.convert("sitofp", x & 0x3FF, "float") * 2.0**-24)
    moved = magnitude << 13
    usual = select(magnitude < 0x400, tiny, moved + 0x38000000)
    return from_bits(select(magnitude < 0x7C00, usual, moved + 0x70000000) | ((x & 0x8000) << 16))


def narrowed(x: V, target: np.dtype) -> V:
    """The 16 bits of the ``float`` ``x``, rounded."""
    all_bits = bits(x)
    magnitude = all_bits & 0x7FFFFFFF
    if target.name == "bfloat16":
        rounded = all_bits + 0x7FFF + ((all_bits >> 16) & 1)
        return select(magnitude > 0x7F800000, (all_bits >> 16) | 64, rounded >> 16) & 0xFFFF
    tiny = bits(absolute(x) + 0.5) & 0xFFFF  # 1/2 has units of 2^-24, in which the sum is rounded
    usual = (magnitude + 0xFFF + ((magnitude >> 13) & 1) - 0x38000000) >> 13
    finite = select(magnitude < 0x38800000, tiny, usual)
    large = select(magnitude > 0x7F800000, finite.like(0x7E00), finite.like(0x7C00))
    return select(magnitude < 0x47800000, finite, large) | ((all_bits >> 16) & 0x8000)
