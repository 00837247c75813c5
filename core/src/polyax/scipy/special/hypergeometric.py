"""Kummer's and Gauss's hypergeometric functions of real arguments, by their series and what carries into its reach."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from polyax import numpy as jnp
from polyax.lax import lenient as lax
from polyax.lax.special.converging import limit, limit_and_slope
from polyax.scipy.special.define import special
from polyax.scipy.special.elementary import gammasgn

__all__ = ["hyp1f1", "hyp2f1"]

Series = Callable[[Sequence[Any]], Any]
"""Sums a series with these parameters: its value, or its slope."""


def _start(*params: Any) -> Any:
    return jnp.ones_like(params[0]), jnp.ones_like(params[0])


def _kummer_step(k: Any, state: Any, a: Any, b: Any, x: Any) -> Any:
    total, term = state
    term = term * (a + k - 1.0) * x / ((b + k - 1.0) * k)
    return total + term, term


def _kummer(a: Any, b: Any, x: Any) -> Any:
    """The series; below zero exp(x) M(b - a, b, -x), whose terms have one sign."""
    negative = x < 0
    a, size = jnp.where(negative, b - a, a), jnp.abs(x)
    total = limit(_start, _kummer_step, (a, b, jnp.minimum(size, 600.0)))
    return jnp.where(negative, jnp.exp(jnp.maximum(x, -600.0)) * total, total)


def _decay_start(a: Any, b: Any, x: Any) -> Any:
    return jnp.ones_like(a), jnp.ones_like(a), jnp.ones_like(a)


def _decay_step(k: Any, state: Any, a: Any, b: Any, x: Any) -> Any:
    """Up to the smallest term, as the series diverges."""
    total, term, falling = state
    following = term * (a + k - 1.0) * (a - b + k) / (k * -x)
    falling = jnp.where(jnp.abs(following) < jnp.abs(term), falling, 0.0)
    return total + falling * following, following, falling


def _decay(a: Any, b: Any, x: Any) -> Any:
    """gamma(b) / gamma(b - a) (-x)**-a (1 + ...) for large negative x (DLMF 13.7.2)."""
    far = jnp.where(x < -100.0, x, -100.0)
    ratio = jnp.exp(lax.lgamma(b) - lax.lgamma(b - a) - a * jnp.log(-far)) * gammasgn(b) * gammasgn(b - a)
    pole = (b - a <= 0) & (b - a == jnp.floor(b - a))
    return jnp.where(pole, 0.0, ratio) * limit(_decay_start, _decay_step, (a, b, far), 200)


def _hyp1f1(a: Any, b: Any, x: Any) -> Any:
    near = _kummer(a, b, jnp.where(x < -100.0, 0.0, x))
    value = jnp.where(x < -100.0, _decay(a, b, x), near)
    return jnp.where((a == b) & (a == 0), 1.0, value)


def _slope_by(i: int) -> Callable[..., Any]:
    """The derivative by a parameter: that of each term of the series."""

    def slope(y: Any, a: Any, b: Any, x: Any) -> Any:
        direction = [jnp.ones_like(a) if j == i else jnp.zeros_like(a) for j in range(3)]
        negative = x < 0
        first = jnp.where(negative, direction[1] - direction[0], direction[0])
        params = jnp.where(negative, b - a, a), b, jnp.minimum(jnp.abs(x), 600.0)
        change = limit_and_slope(_start, _kummer_step, params, (first, direction[1], direction[2]))[1]
        return jnp.where(negative, jnp.exp(jnp.maximum(x, -600.0)) * change, change)

    return slope


@special(_slope_by(0), _slope_by(1), lambda y, a, b, x: a / b * _hyp1f1(a + 1.0, b + 1.0, x))
def hyp1f1(a: Any, b: Any, x: Any) -> Any:
    """Kummer's function: the sum of ``(a)_k / (b)_k x**k / k!``; 1 where ``a`` and ``b`` are 0.

    >>> print(f"{hyp1f1(1.0, 2.0, 1.0):.5f}")
    1.71828
    """
    return _hyp1f1(a, b, x)


# --- Gauss's function -------------------------------------------------------------------------------------------------


def _gauss_step(k: Any, state: Any, a: Any, b: Any, c: Any, x: Any) -> Any:
    total, term = state
    term = term * (a + k - 1.0) * (b + k - 1.0) * x / ((c + k - 1.0) * k)
    return total + term, term


def _series(a: Any, b: Any, c: Any, x: Any) -> Any:
    return limit(_start, _gauss_step, (a, b, c, x))


def _gamma_ratio(above: Sequence[Any], below: Sequence[Any]) -> Any:
    """A product of gamma functions over another, which is 0 at the poles of the latter."""
    log = sum(map(lax.lgamma, above)) - sum(map(lax.lgamma, below))
    sign = jnp.ones_like(log)
    for z in (*above, *below):
        sign = sign * jnp.where(_is_pole(z), 1.0, gammasgn(z))
    vanishes = _is_pole(below[0]) | _is_pole(below[1])
    return jnp.where(vanishes, 0.0, sign * jnp.exp(jnp.where(vanishes, 0.0, log)))


def _is_pole(z: Any) -> Any:
    return (z <= 0) & (z == jnp.floor(z))


def _near_one(a: Any, b: Any, c: Any, x: Any) -> Any:
    """In terms of 1 - x (DLMF 15.8.4), where c - a - b is no integer."""
    s = c - a - b
    first = _gamma_ratio((c, s), (c - a, c - b)) * _series(a, b, 1.0 - s, 1.0 - x)
    second = _gamma_ratio((c, -s), (a, b)) * _series(c - a, c - b, 1.0 + s, 1.0 - x)
    return first + (1.0 - x) ** s * second


def _unit(a: Any, b: Any, c: Any, x: Any) -> Any:
    """For 0 <= x <= 1."""
    s = c - a - b
    polynomial = _is_pole(a) | _is_pole(b)
    close = (x > 0.9) & ~polynomial & (jnp.abs(s - jnp.round(s)) > 1e-3)
    far = _series(a, b, c, jnp.where(close | (x == 1), 0.0, x))
    third = lambda value, other: jnp.where(close & (x < 1), value, other)
    near = _near_one(third(a, 0.3), third(b, 0.2), third(c, 0.75), third(x, 1.0 - 1e-3))
    ends = jnp.where(s > 0, _gamma_ratio((c, jnp.where(s > 0, s, 1.0)), (c - a, c - b)), jnp.inf)
    exact = limit(_start, _gauss_step, (jnp.where(polynomial, a, 0.0), b, c, x))
    return jnp.where(x == 1, jnp.where(polynomial, exact, ends), jnp.where(close, near, far))


def _hyp2f1(a: Any, b: Any, c: Any, x: Any) -> Any:
    """Below zero (1 - x)**-a F(a, c - b; c; x / (x - 1)) (DLMF 15.8.1)."""
    negative = x < 0
    below = jnp.where(negative, x, 0.0)
    inside = jnp.where(negative, below / (below - 1.0), jnp.clip(x, 0.0, 1.0))
    value = (1.0 - below) ** -a * _unit(a, jnp.where(negative, c - b, b), c, inside)
    polynomial = _is_pole(a) | _is_pole(b)
    beyond = jnp.where(polynomial, _series(jnp.where(polynomial, a, 0.0), b, c, x), jnp.inf)
    value = jnp.where(x > 1, beyond, value)
    return jnp.where(jnp.isnan(a + b + c + x), jnp.nan, value)


def _gauss_slope_by(i: int) -> Callable[..., Any]:
    def slope(y: Any, a: Any, b: Any, c: Any, x: Any) -> Any:
        """The derivative of each term; below zero, of the terms of the transformed series."""
        directions = [jnp.ones_like(a) if j == i else jnp.zeros_like(a) for j in range(3)]
        negative = x < 0
        below = jnp.where(negative, x, 0.0)
        params = a, jnp.where(negative, c - b, b), c, jnp.where(negative, below / (below - 1.0), x)
        second = jnp.where(negative, directions[2] - directions[1], directions[1])
        moved = directions[0], second, directions[2], jnp.zeros_like(a)
        total, change = limit_and_slope(_start, _gauss_step, params, moved)
        return (1.0 - below) ** -a * (change - directions[0] * jnp.log1p(-below) * total)

    return slope


@special(
    *map(_gauss_slope_by, range(3)),
    lambda y, a, b, c, x: a * b / c * _hyp2f1(a + 1.0, b + 1.0, c + 1.0, x),
)
def hyp2f1(a: Any, b: Any, c: Any, x: Any) -> Any:
    """Gauss's hypergeometric function: the sum of ``(a)_k (b)_k / (c)_k x**k / k!`` and its continuation below -1.

    Beyond 1 it is infinite, but for polynomials. Near 1, where ``c - a - b`` is an integer, the series is summed as far
    as 10,000 terms.

    >>> print(f"{hyp2f1(1.0, 1.0, 2.0, 0.5):.5f}")
    1.38629
    """
    return _hyp2f1(a, b, c, x)
