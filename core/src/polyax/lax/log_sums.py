"""Running logarithms of sums of exponentials, of complex numbers too.

The primitive knows real numbers alone; complex ones are combined in pairs.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from polyax.control.flow.associative import associative_scan
from polyax.ir import dtypes
from polyax.ir.aval import aval_of
from polyax.lax.extrema import precedes
from polyax.ops import cumulative
from polyax.ops.basis import add, div, mul, select_n, sub
from polyax.ops.compare import gt
from polyax.ops.convert import complex, imag, real
from polyax.ops.elementwise import exp, floor, log1p

__all__ = ["cumlogsumexp"]


@functools.wraps(cumulative.cumlogsumexp)
def cumlogsumexp(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    if aval_of(operand).dtype not in dtypes.COMPLEX:
        return cumulative.cumlogsumexp(operand, axis, reverse)
    return associative_scan(_log_of_sum, _turned(operand), reverse=reverse, axis=axis)


def _log_of_sum(x: Any, y: Any) -> Any:
    """log(e^x + e^y), from the larger of them."""
    swapped = precedes(x, y, gt)
    large, small = select_n(swapped, y, x), select_n(swapped, x, y)
    return _turned(add(large, log1p(exp(sub(small, large)))))


def _turned(x: Any) -> Any:
    """The same by whole turns, with an angle in (-pi, pi]."""
    turns = floor(div(sub(np.pi, imag(x)), 2 * np.pi))
    return complex(real(x), add(imag(x), mul(turns, 2 * np.pi)))
