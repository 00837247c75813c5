"""Floats to integers: rounded towards zero, the nearest integer there is beyond their range, 0 for NaN.

LLVM's own operation means the same, and takes the lanes of a vector one by one.
"""

from __future__ import annotations

import numpy as np

from polyax_cpu.llvm import IrValue

REALS = {"float": np.float32, "double": np.float64}
NARROW = 32
"""Bits below which processors convert to wider integers, of which the upper bits are left out."""


def to_integer(x: IrValue, type: str, signed: bool) -> IrValue:
    """``x`` as an integer of ``type``."""
    if x.type == "half":
        x = x.b.convert("fpext", x, "float")
    low, high = _range(int(type[1:]), signed)
    top = _below(high, REALS[x.type])
    inside = _smaller(_larger(x, low), top)
    whole = x.b.convert("fptosi" if signed else "fptoui", inside, type if int(type[1:]) > NARROW else f"i{NARROW}")
    if top < high:
        whole = x.b.select(x > top, high, whole)
    if signed:
        whole = x.b.select(x.compare("!=", x), 0, whole)
    return whole if whole.type == type else x.b.convert("trunc", whole, type)


def _range(bits: int, signed: bool) -> tuple[int, int]:
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)


def _below(high: int, real: type[np.floating]) -> float:
    """The largest float that is no more than ``high``."""
    near = real(high)
    return float(near if int(near) <= high else np.nextafter(near, real(0)))


def _larger(x: IrValue, bound: float) -> IrValue:
    """``bound`` for NaN, too."""
    return x.b.select(x > bound, x, bound)


def _smaller(x: IrValue, bound: float) -> IrValue:
    return x.b.select(x < bound, x, bound)
