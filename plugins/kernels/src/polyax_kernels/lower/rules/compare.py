"""Comparisons in total order, where -NaN < -inf, -0 < +0 and inf < NaN; and products' upper halves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from polyax.ir.aval import ShapedArray
from polyax_kernels.ir.expr import Expr, bitcast, cast, const, op
from polyax_kernels.lower.lowering import Kernels, Out, Read
from polyax_kernels.lower.rules.table import RULES, kernels


def _ordered(x: Expr) -> Expr:
    """An integer that is ordered as the float is: of negative ones the magnitude is inverted."""
    if x.dtype.kind in "iub":
        return x
    signed = np.dtype(f"int{8 * x.dtype.itemsize}")
    bits = bitcast(x, signed)
    sign = op("shift_right_arithmetic", bits, const(8 * signed.itemsize - 1, signed))
    return op("xor", bits, op("and", sign, const(np.iinfo(signed).max, signed)))


def _total(name: str) -> Callable[..., Expr]:
    def build(out: Out, x: Read, y: Read) -> Expr:
        return op(name, _ordered(x.at(out.i)), _ordered(y.at(out.i)))

    return build


RULES.update({f"{name}_to": Kernels(_total(name)) for name in ("eq", "le", "lt")})


def _wide(avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> str | None:
    return "there are no 128-bit integers" if avals[0].dtype.itemsize == 8 else None


@kernels("mulhi", why_not=_wide)
def _mulhi(out: Out, x: Read, y: Read) -> Expr:
    """In twice the width."""
    wide = np.dtype(f"{x.dtype.kind}{2 * x.dtype.itemsize}")
    product = op("mul", cast(x.at(out.i), wide), cast(y.at(out.i), wide))
    return cast(op("shift_right_arithmetic", product, const(8 * x.dtype.itemsize, wide)), x.dtype)
