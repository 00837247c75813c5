"""Windows: weights that fall towards both ends; and Bessel's ``I0``, which one of them is made of."""

from __future__ import annotations

import math
from typing import Any

from polyax.ir import dtypes
from polyax.ir.aval import aval_of
from polyax.lax import lenient as lax
from polyax.numpy.promotion import as_array, promote_args_inexact, refuse_traced
from polyax.numpy.ranges import linspace

__all__ = ["bartlett", "blackman", "hamming", "hanning", "i0", "kaiser"]


def i0(x: Any) -> Any:
    """The modified Bessel function of the first kind and order 0. Elementwise, for real numbers.

    Raises:
      ValueError: ``x`` is complex.

    >>> round(i0(1.0).item(), 4)
    1.2661
    """
    (x,) = promote_args_inexact("i0", x)
    if not dtypes.is_float(aval_of(x).dtype):
        raise ValueError(f"Unsupported input type to jnp.i0: {aval_of(x)}; it takes real numbers")
    x = as_array(x)
    size = lax.max(x, lax.neg(x))  # which has, as I0 has, the derivative 0 at 0
    return lax.mul(lax.exp(size), lax.bessel_i0e(x))


def _length(name: str, M: Any) -> int:
    """The number of points that ``M`` says, cut to an integer; none if it is negative."""
    return max(int(refuse_traced(M, f"M argument of jnp.{name}")), 0)


def _few(count: int) -> Any:
    return lax.full((count,), 1, dtypes.default_float())


def _cosine_window(count: int, *coefficients: float) -> Any:
    """a0 - a1 cos(t) + a2 cos(2t) ... for t from 0 to 2 pi."""
    if count < 2:
        return _few(count)
    t = linspace(0.0, 2 * math.pi, count)
    total = lax.full_like(t, coefficients[0])
    for i, c in enumerate(coefficients[1:], 1):
        total = lax.add(total, lax.mul(lax.cos(lax.mul(t, float(i))), c * (-1.0) ** i))
    return total


def hanning(M: int) -> Any:
    """The window 0.5 - 0.5 cos(t)."""
    return _cosine_window(_length("hanning", M), 0.5, 0.5)


def hamming(M: int) -> Any:
    """The window 0.54 - 0.46 cos(t)."""
    return _cosine_window(_length("hamming", M), 0.54, 0.46)


def blackman(M: int) -> Any:
    """The window 0.42 - 0.5 cos(t) + 0.08 cos(2t)."""
    return _cosine_window(_length("blackman", M), 0.42, 0.5, 0.08)


def bartlett(M: int) -> Any:
    """The triangular window."""
    count = _length("bartlett", M)
    return _few(count) if count < 2 else lax.sub(1.0, lax.abs(linspace(-1.0, 1.0, count)))


def kaiser(M: int, beta: Any) -> Any:
    """Kaiser's window of ``M`` points: ``i0(beta sqrt(1 - t^2)) / i0(beta)`` for t from -1 to 1."""
    count, dtype = _length("kaiser", M), dtypes.default_float()
    if count < 2:
        return _few(count)
    t = linspace(-1.0, 1.0, count, dtype=dtype)
    inside = lax.max(lax.sub(1.0, lax.mul(t, t)), 0.0)
    return lax.div(i0(lax.mul(lax.sqrt(inside), lax.convert_element_type(beta, dtype))), i0(beta))
