"""float32 rounded to bfloat16, the upper half of its bits: to nearest, ties to even; NaN stays NaN.

The carry of the lower half rounds, and would make numbers of some NaN. Processors with AVX-512 have an instruction that
brings these back, instead of a test and a choice, and one that takes the halves of two vectors, instead of shifts and
moves. (Theirs for the whole conversion makes zeros of the least numbers.) Knows no kernels.
"""

from __future__ import annotations

from polyax_cpu.llvm import IrValue, vector
from polyax_cpu.processors import host

LANES = 16
FIX = "llvm.x86.avx512.mask.fixupimm.ps.512"
RESPONSES = 0x22
"""Of ``vfixupimm`` to a NaN, quiet or not: it is taken, and is quiet. All else stays."""
AS_ROUNDED = 4
QUIET, HALF = 0x400000, 0x7FFF


def rounded(x: IrValue) -> IrValue:
    """The bits of float32 ``x``, an ``i16`` each."""
    b = x.b
    bits = b.convert("bitcast", x, "i32")
    carried = bits + HALF + (b.plain("lshr", bits, bits.like(16)) & 1)
    if x.lanes >= LANES and host().vector_bits == 512:
        fixed = b.pieces(LANES, _with_nan, b.convert("bitcast", carried, "float"), x)
        carried = b.convert("bitcast", fixed, "i32")
    else:
        carried = b.select(x.compare("!=", x), bits | QUIET, carried)
    if x.lanes > LANES and host().has_masks:
        halves = b.emit("i16", f"bitcast {carried} to {vector('i16', 2 * x.lanes)}", 2 * x.lanes)
        return b.mixed(halves, halves, range(1, 2 * x.lanes, 2))
    return b.convert("trunc", b.plain("lshr", carried, carried.like(16)), "i16")


def _with_nan(x: IrValue, source: IrValue) -> IrValue:
    """``x``; NaN where ``source`` is."""
    b, kind = x.b, vector("float", LANES)
    b.module.declare(FIX, f"{kind} @{FIX}({kind}, {kind}, <{LANES} x i32>, i32, i{LANES}, i32)")
    table = b.splat(b.const(RESPONSES, "i32"), LANES)
    return b.emit("float", f"call {kind} @{FIX}({x}, {source}, {table}, i32 0, i{LANES} -1, i32 {AS_ROUNDED})", LANES)
