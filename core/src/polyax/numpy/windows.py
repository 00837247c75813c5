"""Functions of Bessel's ``I0``, and the window that is made of it."""

from __future__ import annotations

from operator import index
from typing import Any

from polyax.ir import dtypes
from polyax.ir.aval import aval_of
from polyax.lax import lenient as lax
from polyax.numpy.promotion import as_array, promote_args_inexact
from polyax.numpy.ranges import linspace

__all__ = ["i0", "kaiser"]


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


def kaiser(M: int, beta: Any) -> Any:
    """Kaiser's window of ``M`` points: ``i0(beta sqrt(1 - t^2)) / i0(beta)`` for t from -1 to 1."""
    points, dtype = index(M), dtypes.default_float()
    if points < 2:
        return lax.full((max(points, 0),), 1, dtype)
    t = linspace(-1.0, 1.0, points, dtype=dtype)
    inside = lax.max(lax.sub(1.0, lax.mul(t, t)), 0.0)
    return lax.div(i0(lax.mul(lax.sqrt(inside), lax.convert_element_type(beta, dtype))), i0(beta))
