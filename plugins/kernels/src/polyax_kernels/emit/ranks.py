"""Ranks: extrema of floats as extrema of integers that are ordered as they are, with NaN at the end that wins.

Where a processor's maximum knows neither NaN nor the sign of zero, a maximum of floats is a chain of instructions that
each element has to wait for. That of ranks is one; what leads to a rank depends on the element alone. It is a rewrite
of kernels: no emitter knows of it.
"""

from __future__ import annotations

import numpy as np

from polyax_kernels.ir.expr import Expr, bitcast, cast, const, fold, op, rewriter
from polyax_kernels.ir.kernel import Kernel, map_kernel
from polyax_kernels.ir.limits import FLOAT32, NARROW

EXTREMA = ("max", "min")


def rank(kernel: Kernel) -> Kernel:
    """The kernel whose folds by max and min of floats are folds of ranks."""
    return map_kernel(kernel, rewriter(_ranked))


def _ranked(x: Expr) -> Expr | None:
    if x.kind != "fold" or x.attr.combine not in EXTREMA or x.dtype.kind in "biu":
        return None
    init, body = map(_narrow, x.args)
    if init.dtype != body.dtype:
        init, body = x.args
    lowest = _lowest(body.dtype, x.attr.combine)
    best = fold(x.attr.combine, x.attr.axes, (_rank(init, lowest),), (_rank(body, lowest),))
    key = bitcast(best, lowest.dtype) + lowest
    return cast(bitcast(_mirrored(key), body.dtype), x.dtype)


def _narrow(x: Expr) -> Expr:
    """What ``x`` was widened from: that has the same order, and fewer bits."""
    widened = x.kind == "cast" and x.dtype == FLOAT32 and x.args[0].dtype in NARROW
    return x.args[0] if widened else x


def _mirrored(bits: Expr) -> Expr:
    """Signed integers in the order of the floats with these bits, and back: of negative ones all bits but the sign."""
    width = 8 * bits.dtype.itemsize
    negative = op("shift_right_arithmetic", bits, const(width - 1, bits.dtype))
    return bits ^ (negative & np.iinfo(bits.dtype).max)


def _lowest(dtype: np.dtype, combine: str) -> Expr:
    """The mirrored bits of rank 0: for maxima those of -inf, for minima those behind inf, so that NaN comes first."""
    signed = np.dtype(f"int{8 * dtype.itemsize}")
    inf = int(np.asarray(np.inf, dtype).view(signed))
    return const(~inf if combine == "max" else inf + 1, signed)


def _rank(x: Expr, lowest: Expr) -> Expr:
    """How many values come before ``x``. NaNs of either sign are at the end that ``combine`` takes: counting wraps."""
    return bitcast(_mirrored(bitcast(x, lowest.dtype)) - lowest, f"uint{8 * x.dtype.itemsize}")
