"""Extrema, of complex numbers too: these are ordered by real part, and by imaginary part where real parts are equal.

Primitives know real numbers alone; what is said of complex ones here is made of them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from operator import index
from typing import Any

from polyax.control.flow.associative import associative_scan
from polyax.ir import dtypes
from polyax.ir.aval import aval_of
from polyax.ops import cumulative, elementwise, reduce
from polyax.ops.basis import add, div, eq, full, full_like, mul, reduce_sum, same_dtype, select_n, stretched
from polyax.ops.compare import gt, lt
from polyax.ops.convert import complex as of_parts
from polyax.ops.convert import imag, real, stop_gradient
from polyax.ops.define import broadcast_shape
from polyax.ops.reduce import restore_axes

__all__ = ["cummax", "cummin", "max", "min", "reduce_max", "reduce_min"]


def _is_complex(x: Any) -> bool:
    return aval_of(x).dtype in dtypes.COMPLEX


def precedes(x: Any, y: Any, before: Callable[[Any, Any], Any]) -> Any:
    """``before(x, y)``, a comparison, of complex numbers by their parts."""
    if not _is_complex(x):
        return before(x, y)
    (a, b), (c, d) = (real(x), imag(x)), (real(y), imag(y))
    return select_n(eq(a, c), before(a, c), before(b, d))


def _of_two(of_real: Callable[[Any, Any], Any], before: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    @functools.wraps(of_real)
    def extremum(x: Any, y: Any) -> Any:
        if not (_is_complex(x) or _is_complex(y)):
            return of_real(x, y)
        x, y = same_dtype(x, y)
        shape = broadcast_shape(of_real.__name__, [aval_of(x).shape, aval_of(y).shape])
        x, y = stretched(x, shape), stretched(y, shape)
        return select_n(eq(x, y), select_n(precedes(x, y, before), y, x), _middle(x, y))

    return extremum


def _middle(x: Any, y: Any) -> Any:
    """Of equal numbers, which thus have half of the derivative each."""
    return of_parts(*(add(mul(0.5, part(x)), mul(0.5, part(y))) for part in (real, imag)))


max = _of_two(elementwise.max, gt)
min = _of_two(elementwise.min, lt)


def _over_axes(of_real: Callable[..., Any], worst: float) -> Callable[[Any, Sequence[int]], Any]:
    @functools.wraps(of_real)
    def extremum(operand: Any, axes: Sequence[int]) -> Any:
        if not _is_complex(operand):
            return of_real(operand, axes)
        return _of_parts(of_real, worst, operand, tuple(map(index, axes)))

    return extremum


def _of_parts(of_real: Callable[..., Any], worst: float, x: Any, axes: tuple[int, ...]) -> Any:
    """By the real parts, and by the imaginary ones of those that share it; equal numbers share the derivative."""
    fixed, shape = stop_gradient(x), aval_of(x).shape
    if any(shape[d] == 0 for d in axes):
        return full([n for d, n in enumerate(shape) if d not in axes], complex(worst, 0), aval_of(x).dtype)
    level = eq(real(fixed), restore_axes(of_real(real(fixed), axes), shape, axes))
    best = of_real(select_n(level, full_like(imag(fixed), worst), imag(fixed)), axes)
    hits = select_n(level, full_like(level, False), eq(imag(fixed), restore_axes(best, shape, axes)))
    count = reduce_sum(select_n(hits, full_like(x, 0), full_like(x, 1)), axes)  # 0, if one is NaN
    return div(reduce_sum(select_n(hits, full_like(x, 0), x), axes), count)


reduce_max = _over_axes(reduce.reduce_max, float("-inf"))
reduce_min = _over_axes(reduce.reduce_min, float("inf"))


def _up_to_each(of_real: Callable[..., Any], of_two: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    @functools.wraps(of_real)
    def extremum(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
        if not _is_complex(operand):
            return of_real(operand, axis, reverse)
        return associative_scan(of_two, operand, reverse=reverse, axis=axis)

    return extremum


cummax = _up_to_each(cumulative.cummax, max)
cummin = _up_to_each(cumulative.cummin, min)
