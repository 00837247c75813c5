"""The larger or the smaller of two floats: NaN if one of them is, and of zeros the positive one is larger.

LLVM has six instructions for that. Processors with AVX-512 have one that knows zeros apart; it leaves out NaN, which
their sum brings back. Knows no kernels.
"""

from __future__ import annotations

from polyax_cpu.llvm import BITS, IrValue, vector
from polyax_cpu.processors import host

LANES = {"float": 16, "double": 8}
CHOICES = {"minimum": 0b0100, "maximum": 0b0101}
"""Of ``vrange``: which of two, with its own sign."""
SUFFIXES = {"float": "ps.512", "double": "pd.512"}
AS_ROUNDED = 4
"""Instead of a way of rounding: as the processor is set."""


def extremum(name: str, x: IrValue, y: IrValue, *, one_by_one: bool = False) -> IrValue:
    """``name``: ``minimum`` or ``maximum``, as LLVM's intrinsics are called.

    ``one_by_one``: no loop around it is to become one over vectors. LLVM branches by the sign of single numbers, which
    takes longer where nobody can guess it.
    """
    lanes = LANES.get(x.type)
    if one_by_one and lanes is not None and max(x.lanes, y.lanes) == 1:
        return _chosen(name, x, y)
    if lanes is None or max(x.lanes, y.lanes) < lanes or not host().has_ranges:
        return x.b.intrinsic(name, x, y)
    return x.b.pieces(lanes, lambda x, y: _in_range(name, x, y), x, y)


def _chosen(name: str, x: IrValue, y: IrValue) -> IrValue:
    """By selections: what both have in common tells zeros apart, and a sum brings NaN."""
    b, bits = x.b, f"i{BITS[x.type]}"
    larger = b.select(x > y if name == "maximum" else x < y, x, y)
    both = [b.convert("bitcast", z, bits) for z in (x, y)]
    common = both[0] & both[1] if name == "maximum" else both[0] | both[1]
    found = b.select(x.compare("==", y), b.convert("bitcast", common, x.type), larger)
    return b.select(b.test("fcmp uno", x, y), x + y, found)


def _in_range(name: str, x: IrValue, y: IrValue) -> IrValue:
    b, kind, mask = x.b, vector(x.type, x.lanes), f"i{x.lanes}"
    full = f"llvm.x86.avx512.mask.range.{SUFFIXES[x.type]}"
    b.module.declare(full, f"{kind} @{full}({kind}, {kind}, i32, {kind}, {mask}, i32)")
    settings = f"i32 {CHOICES[name]}, {kind} zeroinitializer, {mask} -1, i32 {AS_ROUNDED}"
    found = b.emit(x.type, f"call {kind} @{full}({x}, {y}, {settings})", x.lanes)
    return b.select(b.test("fcmp uno", x, y), x + y, found)
