"""The regularised incomplete beta function, by the continued fraction of DLMF 8.17.22, and its derivatives.

The fraction converges fast up to the mean of the distribution; beyond it, I(a, b, x) = 1 - I(b, a, 1 - x).
"""

from __future__ import annotations

from typing import Any

from polyax import numpy as jnp
from polyax.lax.special.converging import limit, limit_and_slope
from polyax.lax.special.incomplete import in_floats
from polyax.ops.basis import add, mul, neg, sub
from polyax.ops.define import FLOAT, Derivative, elementwise
from polyax.ops.elementwise import exp, log, log1p
from polyax.ops.special import digamma, lgamma


def _density(a: Any, b: Any, x: Any) -> Any:
    """The derivative of ``betainc`` by ``x``."""
    powers = add(_times(sub(a, 1.0), log(x)), _times(sub(b, 1.0), log1p(neg(x))))
    return exp(add(powers, sub(lgamma(add(a, b)), add(lgamma(a), lgamma(b)))))


def _times(exponent: Any, log_x: Any) -> Any:
    """The logarithm of a power, which is 1 for the exponent 0, also of 0."""
    return jnp.where(exponent == 0, 0.0, mul(exponent, log_x))


def _by_shape(da: float, db: float) -> Derivative:
    slope = in_floats(lambda a, b, x: _slope(a, b, x, da, db))
    return lambda t, z, a, b, x: mul(t, slope(a, b, x)[0])


regularized_incomplete_beta_p = elementwise(
    "regularized_incomplete_beta",
    (FLOAT, FLOAT, FLOAT),
    (_by_shape(1.0, 0.0), _by_shape(0.0, 1.0), lambda t, z, a, b, x: mul(t, _density(a, b, x))),
)


def betainc(a: Any, b: Any, x: Any) -> Any:
    """The integral of ``t**(a-1) (1-t)**(b-1)`` from 0 to ``x``, over that from 0 to 1.

    Args:
      a, b: floats that are not negative.
      x: floats between 0 and 1, of the same dtype; NaN outside.

    >>> from polyax import lax
    >>> print(f"{lax.betainc(2.0, 1.0, 0.5):.4f}")
    0.2500
    """
    return regularized_incomplete_beta_p.bind1(a, b, x)


# --- the fraction ----------------------------------------------------------------------------------------------------


def _start(a: Any, b: Any, x: Any) -> Any:
    """The fraction, and the quotients of its numerators and of its denominators (Lentz)."""
    tiny = float(jnp.finfo(a.dtype).tiny) ** 0.5
    return jnp.ones_like(a), jnp.full_like(a, 1.0 / tiny), jnp.ones_like(a)


def _step(k: Any, state: Any, a: Any, b: Any, x: Any) -> Any:
    total, above, below = state
    top = a + 2.0 * k
    odd = -(a + k - 1.0) * (a + b + k - 1.0) * x / ((top - 2.0) * (top - 1.0))
    even = k * (b - k) * x / ((top - 1.0) * top)
    for numerator in (odd, even):
        below = 1.0 / (1.0 + numerator * below)
        above = 1.0 + numerator / above
        total = total * above * below
    return total, above, below


def _arguments(a: Any, b: Any, x: Any) -> tuple[Any, Any, tuple[Any, Any, Any]]:
    """Where the function is defined, where it is reflected, and what the fraction gets: harmless arguments outside."""
    proper = (a > 0) & (b > 0) & (x > 0) & (x < 1) & jnp.isfinite(a) & jnp.isfinite(b)
    a, b, x = (jnp.where(proper, value, other) for value, other in ((a, 1.0), (b, 1.0), (x, 0.25)))
    swapped = x > (a + 1.0) / (a + b + 2.0)
    return proper, swapped, (jnp.where(swapped, b, a), jnp.where(swapped, a, b), jnp.where(swapped, 1.0 - x, x))


def _weight(a: Any, b: Any, x: Any) -> Any:
    return jnp.exp(a * jnp.log(x) + b * jnp.log1p(-x) + lgamma(a + b) - lgamma(a) - lgamma(b)) / a


def _value(a: Any, b: Any, x: Any) -> Any:
    proper, swapped, args = _arguments(a, b, x)
    part = _weight(*args) * limit(_start, _step, args)
    return jnp.where(proper, jnp.where(swapped, 1.0 - part, part), _at_edges(a, b, x))


def _at_edges(a: Any, b: Any, x: Any) -> Any:
    """The limits; NaN where there is none."""
    all_low, all_high = (a == 0) | (b == jnp.inf), (b == 0) | (a == jnp.inf)
    value = jnp.where((x >= 1) | (all_low & (x > 0)), 1.0, 0.0)
    value = jnp.where(all_high & (x < 1), 0.0, value)
    undefined = (all_low & all_high) | (a < 0) | (b < 0) | (x < 0) | (x > 1)
    return jnp.where(undefined | jnp.isnan(a + b + x), jnp.nan, value).astype(x.dtype)


def _slope(a: Any, b: Any, x: Any, da: float, db: float) -> Any:
    """The derivative in a direction of the shapes."""
    proper, swapped, args = _arguments(a, b, x)
    da, db = jnp.where(swapped, db, da).astype(a.dtype), jnp.where(swapped, da, db).astype(a.dtype)
    total, change = limit_and_slope(_start, _step, args, (da, db, jnp.zeros_like(a)))
    p, q, y = args
    of_sum = digamma(p + q)
    of_weight = da * (jnp.log(y) - digamma(p) + of_sum - 1.0 / p) + db * (jnp.log1p(-y) - digamma(q) + of_sum)
    slope = _weight(p, q, y) * (total * of_weight + change)
    return jnp.where(proper, jnp.where(swapped, -slope, slope), 0.0 * _at_edges(a, b, x))


regularized_incomplete_beta_p.decompose = in_floats(_value)
