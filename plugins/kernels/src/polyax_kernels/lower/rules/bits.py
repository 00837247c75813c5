"""Random bits: threefry2x32, unrolled."""

from __future__ import annotations

from polyax_kernels.ir.expr import Expr, const, op
from polyax_kernels.lower.lowering import Out, Read
from polyax_kernels.lower.rules.table import kernels

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA


@kernels("threefry2x32")
def _threefry2x32(out: Out, key0: Read, key1: Read, count0: Read, count1: Read) -> tuple[Expr, Expr]:
    """Five groups of four rounds, each followed by a part of the key (Salmon et al., 2011)."""
    k0, k1, x, y = (a.at(out.i) for a in (key0, key1, count0, count1))
    keys = k0, k1, op("xor", op("xor", k0, k1), const(PARITY, out.dtype))
    x, y = x + keys[0], y + keys[1]
    for group in range(5):
        for r in ROTATIONS[group % 2]:
            x = x + y
            y = ((y << r) | (y >> (32 - r))) ^ x
        x, y = x + keys[(group + 1) % 3], y + keys[(group + 2) % 3] + (group + 1)
    return x, y
