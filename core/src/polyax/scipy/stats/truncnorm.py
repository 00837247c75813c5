"""The normal distribution between bounds, which are in standard units."""

from __future__ import annotations

import math
from typing import Any

from polyax import numpy as jnp
from polyax.scipy import special
from polyax.scipy.stats.families import LocationScale, log1mexp

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]

_of = LocationScale("truncnorm", "ab")


def _log_difference(x: Any, y: Any) -> Any:
    """log(exp(x) - exp(y)) for x >= y; -inf where these are equal."""
    equal = x == y
    return jnp.where(equal, -jnp.inf, x + log1mexp(jnp.where(equal, 1.0, x - y)))


def _log_mass(a: Any, b: Any) -> Any:
    """The logarithm of the probability between a and b, each tail from its own side."""
    above, below = a > 0, b < 0
    tail = lambda inside, z: special.log_ndtr(jnp.where(inside, z, 0.0))
    right = _log_difference(tail(above, -a), tail(above, jnp.where(above, -b, -1.0)))
    left = _log_difference(tail(below, b), tail(below, jnp.where(below, a, -1.0)))
    middle = jnp.log1p(-jnp.where(above | below, 0.5, special.ndtr(a) + special.ndtr(-b)))
    return jnp.where(above, right, jnp.where(below, left, middle))


def _log(z: Any, a: Any, b: Any) -> Any:
    value = -0.5 * (z * z + math.log(2 * math.pi)) - _log_mass(a, b)
    return _checked(jnp.where((z < a) | (z > b), -jnp.inf, value), a, b)


def _checked(value: Any, a: Any, b: Any) -> Any:
    return jnp.where(a < b, value, jnp.nan)


def _log_below(z: Any, a: Any, b: Any) -> Any:
    z = jnp.clip(z, a, b)
    return _checked(jnp.where(z == a, -jnp.inf, _log_mass(a, jnp.where(z == a, b, z)) - _log_mass(a, b)), a, b)


def _log_above(z: Any, a: Any, b: Any) -> Any:
    return _log_below(-z, -b, -a)


logpdf = _of.logpdf(_log)
pdf = _of.pdf(logpdf)
logcdf = _of.probability("logcdf", _log_below)
cdf = _of.probability("cdf", lambda z, a, b: jnp.exp(_log_below(z, a, b)))
logsf = _of.probability("logsf", _log_above)
sf = _of.probability("sf", lambda z, a, b: jnp.exp(_log_above(z, a, b)))
