"""The incomplete gamma functions, with derivatives by both arguments.

Below x = a + 1 the series of DLMF 8.7.1 converges fast, above it the continued fraction of 8.9.2. Derivatives by ``a``
are those of the same series and fraction, term by term. All share the weight x**a exp(-x) / gamma(a).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polyax import numpy as jnp
from polyax.ir import dtypes
from polyax.lax.special.converging import limit, limit_and_slope
from polyax.ops.basis import mul, neg, sub
from polyax.ops.define import FLOAT, Derivative, elementwise
from polyax.ops.elementwise import exp, log
from polyax.ops.special import digamma, lgamma

# --- primitives ------------------------------------------------------------------------------------------------------


def _density(a: Any, x: Any) -> Any:
    """The derivative of ``igamma`` by ``x``."""
    return exp(sub(sub(mul(sub(a, 1.0), log(x)), x), lgamma(a)))


def absent(what: str) -> Derivative:
    def derivative(*_: Any) -> Any:
        raise NotImplementedError(f"Differentiation rule for '{what}' not implemented: it is a derivative already")

    return derivative


igamma_p = elementwise(
    "igamma",
    (FLOAT, FLOAT),
    (lambda t, z, a, x: mul(t, igamma_grad_a(a, x)), lambda t, z, a, x: mul(t, _density(a, x))),
)
igammac_p = elementwise(
    "igammac",
    (FLOAT, FLOAT),
    (lambda t, z, a, x: neg(mul(t, igamma_grad_a(a, x))), lambda t, z, a, x: neg(mul(t, _density(a, x)))),
)
igamma_grad_a_p = elementwise("igamma_grad_a", (FLOAT, FLOAT), (absent("igamma_grad_a"),) * 2)
random_gamma_grad_p = elementwise("random_gamma_grad", (FLOAT, FLOAT), (absent("random_gamma_grad"),) * 2)


def igamma(a: Any, x: Any) -> Any:
    """The regularised lower incomplete gamma function, the integral of ``t**(a-1) exp(-t) / gamma(a)`` from 0 to ``x``.

    Args:
      a, x: floats of one dtype; NaN where either is negative.

    >>> from polyax import lax
    >>> print(f"{lax.igamma(1.0, 2.0):.4f}")
    0.8647
    """
    return igamma_p.bind1(a, x)


def igammac(a: Any, x: Any) -> Any:
    """``1 - igamma(a, x)``, accurate where it is small."""
    return igammac_p.bind1(a, x)


def igamma_grad_a(a: Any, x: Any) -> Any:
    """The derivative of ``igamma`` by ``a``."""
    return igamma_grad_a_p.bind1(a, x)


def random_gamma_grad(*args: Any) -> Any:
    """Of ``(a, x)``: how a gamma number ``x`` of shape ``a`` moves with ``a`` while its place in the distribution
    stays."""
    a, x = args
    return random_gamma_grad_p.bind1(a, x)


# --- series and fraction ---------------------------------------------------------------------------------------------


def _series_start(a: Any, x: Any) -> Any:
    return jnp.ones_like(a), jnp.ones_like(a)


def _series_step(k: Any, state: Any, a: Any, x: Any) -> Any:
    total, term = state
    term = term * x / (a + k)
    return total + term, term


def _fraction_start(a: Any, x: Any) -> Any:
    """The fraction, and the quotients of its numerators and of its denominators (Lentz)."""
    first = 1.0 / (x + 1.0 - a)
    return first, jnp.full_like(a, 1.0 / _tiny(a)), first


def _fraction_step(k: Any, state: Any, a: Any, x: Any) -> Any:
    total, above, below = state
    numerator, denominator = k * (a - k), x + 2.0 * k + 1.0 - a
    below = 1.0 / (denominator + numerator * below)
    above = denominator + numerator / above
    return total * above * below, above, below


def _tiny(x: Any) -> float:
    return float(jnp.finfo(x.dtype).tiny) ** 0.5


def _regions(a: Any, x: Any) -> tuple[Any, tuple[Any, Any], tuple[Any, Any]]:
    """Where the series serves, its arguments, and those of the fraction; harmless ones elsewhere."""
    valid = (a > 0) & (x > 0) & jnp.isfinite(a) & jnp.isfinite(x)
    low = x <= jnp.maximum(a, 0.5) + 0.5
    series, fraction = valid & low, valid & ~low
    in_series = jnp.where(series, a, 1.0), jnp.where(series, x, 0.0)
    return low, in_series, (jnp.where(fraction, a, 1.0), jnp.where(fraction, x, 2.0))


_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)
_LARGE = 15.0


def _log_weight(a: Any, x: Any) -> Any:
    """log(x**a exp(-x) / gamma(a)); for large ``a`` in terms of x / a - 1, so that large numbers don't cancel."""
    plain = a * jnp.log(x) - x - lgamma(a)
    large = jnp.maximum(a, _LARGE)
    excess = (x - large) / large
    stirling = sum(c / large ** (2 * k + 1) for k, c in enumerate(_STIRLING))
    log = jnp.where(excess < -0.5, jnp.log(x / large), jnp.log1p(jnp.maximum(excess, -0.5)))
    shifted = large * (log - excess) + 0.5 * jnp.log(large / (2 * np.pi)) - stirling
    return jnp.where(a > _LARGE, shifted, plain)


def _lower_and_upper(a: Any, x: Any) -> tuple[Any, Any]:
    """Both functions; the smaller one is computed."""
    low, (sa, sx), (fa, fx) = _regions(a, x)
    weight = jnp.exp(_log_weight(a, x))
    lower = weight / a * limit(_series_start, _series_step, (sa, sx))
    upper = weight * limit(_fraction_start, _fraction_step, (fa, fx))
    beside = jnp.where((a < 0.5) & (x <= 1.0), _upper_of_small(a, x), 1.0 - lower)
    lower, upper = jnp.where(low, lower, 1.0 - upper), jnp.where(low, beside, upper)
    return _at_edges(a, x, lower, 0.0, 1.0), _at_edges(a, x, upper, 1.0, 0.0)


def _zeta_less_1(k: float) -> float:
    """zeta(k) - 1: the first terms, and the others by the formula of Euler and Maclaurin (DLMF 25.2.9)."""
    n = 30.0
    rises = 1 / 12, -(k + 1) * (k + 2) / 720 / n**2, (k + 1) * (k + 2) * (k + 3) * (k + 4) / 30240 / n**4
    rest = n / (k - 1) + 0.5 + k / n * sum(rises)
    return sum(m**-k for m in range(2, int(n))) + rest * n**-k


_ZETA_LESS_1 = tuple(map(_zeta_less_1, map(float, range(2, 30))))


def _lgamma_after_1(a: Any) -> Any:
    """lgamma(1 + a) for 0 <= a <= 1/2: DLMF 5.7.3."""
    total = jnp.zeros_like(a)
    for k, c in reversed([*enumerate(_ZETA_LESS_1, 2)]):
        total = (total + (-1) ** k * c / k) * a
    return a * (total + (1.0 - np.euler_gamma)) - jnp.log1p(a)


def _upper_of_small(a: Any, x: Any) -> Any:
    """The upper function for a < 1/2 and x <= 1, where the lower one is near 1: the series of DLMF 8.7.1 without its
    first term, which is x**a / gamma(1 + a) = 1 + expm1(...)."""
    inside = (a > 0) & (a < 0.5) & (x > 0) & (x <= 1.0)
    a, x = jnp.where(inside, a, 0.25), jnp.where(inside, x, 0.5)
    rest = jnp.zeros_like(a)
    for k in reversed(range(1, 19)):
        rest = x / -k * (1.0 / (a + k) + rest)
    log = a * jnp.log(x) - _lgamma_after_1(a)
    return -jnp.expm1(log) - jnp.exp(log) * a * rest


def _at_edges(a: Any, x: Any, value: Any, at_zero: float, at_infinity: float) -> Any:
    """``value``, but the limits at 0 and infinity, and NaN where the functions aren't defined."""
    value = jnp.where((x == 0) | (a == jnp.inf), at_zero, value)
    value = jnp.where((a == 0) | (x == jnp.inf), at_infinity, value)
    undefined = (a < 0) | (x < 0) | ((a == 0) & (x == 0)) | ((a == jnp.inf) & (x == jnp.inf))
    return jnp.where(undefined | jnp.isnan(a) | jnp.isnan(x), jnp.nan, value)


def _slope(a: Any, x: Any) -> Any:
    """The derivative of ``igamma`` by ``a``, over the weight."""
    low, (sa, sx), (fa, fx) = _regions(a, x)
    one, zero = jnp.ones_like(a), jnp.zeros_like(a)
    total, change = limit_and_slope(_series_start, _series_step, (sa, sx), (one, zero))
    series = (total * (jnp.log(x) - digamma(a + 1.0)) + change) / a
    total, change = limit_and_slope(_fraction_start, _fraction_step, (fa, fx), (one, zero))
    fraction = total * (jnp.log(x) - digamma(a)) + change
    return jnp.where(low, series, -fraction)


# --- decompositions --------------------------------------------------------------------------------------------------


def in_floats(fun: Any) -> Any:
    """The rule ``decompose`` of a formula that needs at least float32, of operands of one shape."""

    def rule(*args: Any, **_: Any) -> list[Any]:
        dtype = next((x.dtype for x in args if hasattr(x, "dtype")), dtypes.canonicalize(float))  # constants have none
        wide = dtypes.wider(dtype, np.float32)
        return [fun(*(x.astype(wide) for x in jnp.broadcast_arrays(*args))).astype(dtype)]

    return rule


def _by_shape(a: Any, x: Any) -> Any:
    return _at_edges(a, x, jnp.exp(_log_weight(a, x)) * _slope(a, x), 0.0, 0.0)


def _by_shape_at_place(a: Any, x: Any) -> Any:
    return _at_edges(a, x, neg(mul(x, _slope(a, x))), 0.0, 0.0)


igamma_p.decompose = in_floats(lambda a, x: _lower_and_upper(a, x)[0])
igammac_p.decompose = in_floats(lambda a, x: _lower_and_upper(a, x)[1])
igamma_grad_a_p.decompose = in_floats(_by_shape)
random_gamma_grad_p.decompose = in_floats(_by_shape_at_place)
