"""float16 and bfloat16 as 16 bits: conversions in integer arithmetic, right on devices that have no such types.

All are rounded to nearest, ties to even; NaN stays NaN, and subnormal numbers are kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polyax_kernels.emit.c_helpers import Helper
from polyax_kernels.ir.limits import FLOAT32

FROM_BFLOAT16: Helper = (
    "bits_from_bfloat16",
    "uint32_t bits_from_bfloat16(uint16_t x) { return (uint32_t)x << 16; }",
)
TO_BFLOAT16: Helper = (  # the carry of the discarded half goes into the kept one
    "bits_to_bfloat16",
    "uint16_t bits_to_bfloat16(uint32_t b) "
    "{ return (b & 0x7fffffffu) > 0x7f800000u ? b >> 16 | 64 : (b + 0x7fff + (b >> 16 & 1)) >> 16; }",
)
FROM_FLOAT16: Helper = (  # ``tiny``: the bits of the magnitude as a multiple of the smallest number
    "bits_from_float16",
    "uint32_t bits_from_float16(uint16_t x, uint32_t tiny) { uint32_t m = (uint32_t)(x & 0x7fff); "
    "return (uint32_t)(x & 0x8000) << 16 | (m >= 0x7c00 ? (m << 13) + 0x70000000u "
    ": m >= 0x400 ? (m << 13) + 0x38000000u : tiny); }",
)
TO_FLOAT16: Helper = (  # ``tiny``: the magnitude in units of the smallest number, rounded
    "bits_to_float16",
    "uint16_t bits_to_float16(uint32_t b, uint32_t tiny) { uint32_t m = b & 0x7fffffffu; "
    "uint32_t r = m > 0x7f800000u ? 0x7e00 : m >= 0x47800000u ? 0x7c00 "
    ": m >= 0x38800000u ? (m + 0xfff + (m >> 13 & 1) - 0x38000000u) >> 13 : tiny; return b >> 16 & 0x8000 | r; }",
)
SMALLEST = "5.9604645e-08f"
"""The smallest float16, 2 ** -24."""
BITS = np.dtype("uint32")


def widened(emitter: Any, x: str, source: np.dtype) -> str:
    """The float32 that the 16 bits ``x`` are, written by a ``CEmitter``."""
    if source.name == "bfloat16":
        bits = emitter.value(BITS, f"{emitter.helper(FROM_BFLOAT16)}({x})")
    else:
        tiny = emitter.value(FLOAT32, f"(float)({x} & 0x3ff) * {SMALLEST}")
        bits = emitter.value(BITS, f"{emitter.helper(FROM_FLOAT16)}({x}, {emitter.bitcast(tiny, FLOAT32, BITS)})")
    return emitter.bitcast(bits, BITS, FLOAT32)


def narrowed(emitter: Any, x: str, target: np.dtype) -> str:
    """The 16 bits of the float32 ``x``, rounded."""
    bits = emitter.bitcast(x, FLOAT32, BITS)
    if target.name == "bfloat16":
        return f"{emitter.helper(TO_BFLOAT16)}({bits})"
    magnitude = emitter.op("abs", FLOAT32, x)
    scaled = emitter.value(FLOAT32, f"{magnitude} < 1.0f ? {magnitude} * 16777216.0f : 0.0f")
    tiny = emitter.value(BITS, f"(uint32_t){emitter.op('round_even', FLOAT32, scaled)}")
    return f"{emitter.helper(TO_FLOAT16)}({bits}, {tiny})"
