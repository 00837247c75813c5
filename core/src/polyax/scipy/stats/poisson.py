"""The Poisson distribution."""

from __future__ import annotations

import math
from typing import Any

from polyax import numpy as jnp
from polyax.numpy.fused import fused
from polyax.numpy.promotion import promote_args_inexact
from polyax.scipy import special
from polyax.scipy.stats.families import Counting, made

__all__ = ["cdf", "entropy", "logpmf", "pmf"]


def _log(k: Any, mu: Any, loc: Any) -> Any:
    """Of a whole ``k``; all else is no count, NaN as well."""
    x = k - loc
    counts = ~(x < 0) & (jnp.round(k) == k)
    x = jnp.where(counts, x, 0.0)
    return jnp.where(counts, special.xlogy(x, mu) - special.gammaln(x + 1) - mu, -jnp.inf)


logpmf = made("poisson", "logpmf", _log, ("k", "mu"), {"loc": 0})
pmf = Counting("poisson", ["mu"]).pmf(logpmf)


def cdf(k: Any, mu: Any, loc: Any = 0) -> Any:
    """The probability of at most ``k``.

    >>> print(f"{cdf(1, 2.0):.4f}")
    0.4060
    """
    k, mu, loc = promote_args_inexact("poisson.cdf", k, mu, loc)
    k = jnp.asarray(k - loc)
    return jnp.where(k < 0, 0.0, special.gammaincc(jnp.floor(jnp.maximum(k, 0)) + 1, mu))


_TERMS = 96
_LARGE = 32.0


def entropy(mu: Any, loc: Any = 0) -> Any:
    """The expectation of ``-logpmf``; NaN for negative ``mu``.

    Args:
      loc: without effect.

    >>> print(f"{entropy(2.0):.4f}")
    1.7049
    """
    mu, _ = promote_args_inexact("poisson.entropy", mu, loc)
    return _entropy(jnp.asarray(mu))


@fused
def _entropy(mu: Any) -> Any:
    """A sum over all counts that matter, and for large ``mu`` the series in 1 / mu of the normal distribution's."""
    small = jnp.where(mu > _LARGE, 1.0, mu)[..., None]
    k = jnp.arange(_TERMS, dtype=mu.dtype)
    log = special.xlogy(k, small) - special.gammaln(k + 1) - small
    total = -jnp.sum(jnp.exp(log) * jnp.where(jnp.isfinite(log), log, 0.0), -1)
    large = jnp.maximum(mu, _LARGE)
    series = 1 / (12 * large) + 1 / (24 * large**2) + 19 / (360 * large**3) + 9 / (80 * large**4)
    value = jnp.where(mu > _LARGE, 0.5 * jnp.log(2 * math.pi * math.e * large) - series, total)
    return jnp.where(mu < 0, jnp.nan, value)
