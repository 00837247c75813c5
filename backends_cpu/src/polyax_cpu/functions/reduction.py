"""Circular functions of large arguments, by Payne and Hanek's reduction: of the product with 2/pi, only the digits
around its point are computed, as integers."""

from __future__ import annotations

import math

from polyax_cpu.llvm import IrValue
from polyax_kernels.emit.functions import circular_double
from polyax_kernels.emit.functions.blocks import INF, NAN, absolute, bits, select
from polyax_kernels.emit.functions.circular import quadrant, sin_cos, tan_of
from polyax_kernels.emit.functions.pairs import ordered_sum, product


def two_over_pi(digits: int) -> int:
    """So many bits after the point, with pi by Machin's formula."""
    one = 1 << (digits + 64)

    def arccotangent(n: int) -> int:
        total, term, k = 0, one // n, 1
        while term:
            total += term // k if k % 4 == 1 else -(term // k)
            term, k = term // n**2, k + 2
        return total

    return (2 * one << digits) // (4 * (4 * arccotangent(5) - arccotangent(239)))


# float32 --------------------------------------------------------------------------------------------------------------


def _reduced_single(x: IrValue) -> tuple[IrValue, IrValue]:
    """x = m 2^e times 2/pi modulo 4, in 256-bit fixed point with 192 bits of fraction."""
    b, n = x.b, bits(x)
    mantissa = b.convert("zext", (n & 0x7FFFFF) | 0x800000, "i256")
    exponent = b.convert("zext", ((n >> 23) & 0xFF) - 145, "i256")  # e + 5, not negative where this counts
    turned = (mantissa * two_over_pi(192)) << exponent
    turns = b.convert("trunc", turned >> 135, "i64")  # two integer bits, 62 of the fraction
    fraction = turns << 2
    quarter = b.convert("trunc", ((turns >> 62) + select(fraction < 0, 1, turns.like(0))), "i32")
    r = b.convert("sitofp", fraction, "double") * (math.pi / 2 * 2.0**-64)
    r = select(n < 0, -r, r)
    return r, select(n < 0, -quarter, quarter)


def single(kind: str, x: IrValue) -> IrValue:
    r, n = _reduced_single(x)
    s, c = sin_cos(r, single=False)
    value = tan_of(s, c, n) if kind == "tan" else quadrant(s, c, n + (kind == "cos"))
    return select(absolute(x) < INF, x.b.convert("fptrunc", value, "float"), NAN)


# float64 --------------------------------------------------------------------------------------------------------------

_DIGITS = 1176
"""Of 2/pi: enough for the largest argument and ``_FRACTION`` of the product."""
_FRACTION = 190
_LEAST = -22
"""The exponent of the least argument that this is for, whose mantissa is an integer."""
_PIECE = 48


def _window(x: IrValue, exponent: IrValue) -> IrValue:
    """The digits of 2/pi whose products with the mantissa count, with the product's point behind bit ``_FRACTION``;
    those above are whole turns."""
    b, digits = x.b, two_over_pi(_DIGITS).to_bytes(160, "little")
    text = "".join(f"\\{byte:02X}" for byte in digits)
    b.module.top(f'@two_over_pi = internal constant [{len(digits)} x i8] c"{text}"')
    shift = _DIGITS - _FRACTION - exponent
    found = b.load(b.at(b.pointer("@two_over_pi"), shift >> 3, "i8"), "i256", ", align 1")
    return b.emit("i256", f"lshr {found}, {b.convert('zext', shift & 7, 'i256').name}")


def _reduced_double(x: IrValue) -> tuple[IrValue, IrValue, IrValue]:
    """The angle as a sum, and the number of quarter turns. Up to 62 digits behind the point may be equal."""
    b, n = x.b, bits(x)
    exponent = b.intrinsic("smax", ((n >> 52) & 0x7FF) - 1075, n.like(_LEAST))
    mantissa = b.convert("zext", (n & (1 << 52) - 1) | 1 << 52, "i256")
    turns = (_window(x, exponent) * mantissa) << (254 - _FRACTION)
    fraction = turns << 2
    quarter = b.convert("trunc", (turns >> 254) + select(fraction < 0, 1, turns.like(0)), "i64")
    whole = b.convert("trunc", fraction >> (256 - _PIECE), "i64")
    pieces = [whole, *(b.convert("trunc", fraction >> (256 - k * _PIECE), "i64") & (1 << _PIECE) - 1 for k in (2, 3))]
    most, next, last = (
        b.convert("sitofp", piece, "double") * 2.0 ** (-_PIECE * (k + 1)) for k, piece in enumerate(pieces)
    )
    angle, rest = ordered_sum(most, next)
    r, low = product(angle, circular_double.PIO2[0])
    low = low + angle * circular_double.PIO2[1] + (rest + last) * circular_double.PIO2[0]
    turn = lambda value: select(n < 0, -value, value)
    return turn(r), turn(low), turn(quarter)


def double(kind: str, x: IrValue) -> IrValue:
    return select(absolute(x) < INF, circular_double.wave(kind, *_reduced_double(x)), NAN)
