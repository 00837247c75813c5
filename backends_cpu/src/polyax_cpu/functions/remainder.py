"""The remainder of a division whose quotient is rounded towards zero, with the sign of the dividend, exactly.

While the quotient has fewer digits than a double, a multiple of the divisor is subtracted in one rounding, and what is
left is a number of its type: nothing is lost. Larger quotients are rare; the C library divides digit by digit.
"""

from __future__ import annotations

from polyax_cpu.functions.variants import variant, with_variants
from polyax_cpu.llvm import IrValue, Module, Params, vector
from polyax_kernels.emit.functions.blocks import INF, absolute, fma, select, with_sign

LARGE = 2.0**51
"""Quotients that can't be told from their neighbours once they are rounded."""
LANES = {"float": (8, 16), "double": (4, 8)}
"""Of AVX2 and AVX-512."""
PIECE = 8
"""Lanes of the functions that call the C library."""
_PURE = "nounwind willreturn memory(none)"


def remainder(x: IrValue, y: IrValue) -> IrValue:
    """x - trunc(x / y) y, of float32 or float64; NaN for infinite ``x`` and for ``y`` of 0."""
    if x.lanes > 1:
        return _any_quotients(x, y)
    name, module = f"polyax_rem_{x.type}_any", x.b.module
    if name not in module.functions:
        _define_variants(module, name, x.type)
    return x.b.call(x.type, name, x, y)


def _any_quotients(x: IrValue, y: IrValue) -> IrValue:
    b, wide = x.b, [x, y] if x.type == "double" else [x.b.convert("fpext", v, "double") for v in (x, y)]
    dividend, divisor = map(absolute, wide)
    quotient = dividend / divisor
    rest = fma(-b.intrinsic("trunc", quotient), divisor, dividend)
    rest = select(rest < 0, rest + divisor, rest)  # the quotient was rounded up to a whole number
    rest = select((divisor >= INF) & (dividend < INF), dividend, rest)
    near = with_sign(rest if x.type == "double" else b.convert("fptrunc", rest, "float"), x)
    far = (quotient >= LARGE) & (divisor > 0) & (dividend < INF)
    # a lane's bits, those of NaN too, don't depend on the others
    return b.choose(b.any(far), lambda: select(far, _digit_by_digit(x, y), near), near)


def _digit_by_digit(x: IrValue, y: IrValue) -> IrValue:
    """By functions of a few lanes, since a call for each of many is long."""
    b, lanes = x.b, min(x.lanes, PIECE)
    name = variant(f"polyax_rem_{x.type}_far", lanes)
    if name not in b.module.functions:
        kind = vector(x.type, lanes)
        far = b.module.function(kind, name, _params(kind), f"noinline cold {_PURE}")
        far.ret(far.pieces(1, lambda x, y: far.plain("frem", x, y), *far.args))
    return b.pieces(lanes, lambda *xs: b.call_lanes(x.type, name, *xs), x, y)


def _define_variants(module: Module, name: str, type: str) -> None:
    """The function ``name`` and, for the loop vectoriser, the same for several lanes."""
    widths = LANES[type]
    one = module.function(type, name, _params(type), f"noinline {_PURE} {with_variants(name, 2, widths)}")
    one.ret(_any_quotients(*one.args))
    for width in widths:
        kind = vector(type, width)
        lanes = module.function(kind, variant(name, width), _params(kind), f"alwaysinline {_PURE}")
        lanes.ret(_any_quotients(*lanes.args))
    module.keep(*(variant(name, width) for width in widths))


def _params(kind: str) -> Params:
    return [(kind, "x"), (kind, "y")]
