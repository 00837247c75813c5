"""The Bernoulli distribution: 1 with probability ``p``, else 0."""

from __future__ import annotations

from typing import Any

from polyax import numpy as jnp
from polyax.numpy.promotion import promote_args_inexact
from polyax.scipy import special
from polyax.scipy.stats.families import Counting

__all__ = ["cdf", "logpmf", "pmf", "ppf"]

_of = Counting("bernoulli", "p")

# Numbers between 0 and 1 are mixtures of both, as the grey of pixels is: cross entropies are made of them.
logpmf = _of.logpmf(lambda k, p: (k >= 0) & (k <= 1), lambda k, p: special.xlogy(k, p) + special.xlog1py(1 - k, -p))
pmf = _of.pmf(logpmf)


def cdf(k: Any, p: Any) -> Any:
    """The probability of at most ``k``; NaN unless ``p`` is a probability.

    >>> print(f"{cdf(0, 0.25):.2f}")
    0.75
    """
    k, p = map(jnp.asarray, promote_args_inexact("bernoulli.cdf", k, p))
    value = jnp.where(k < 0, 0.0, jnp.where(k < 1, 1 - p, 1.0))
    return jnp.where(jnp.isnan(k) | ~_is_probability(p), jnp.nan, value)


def ppf(q: Any, p: Any) -> Any:
    """The least number of whose ``cdf`` is at least ``q``; NaN unless both are probabilities."""
    q, p = map(jnp.asarray, promote_args_inexact("bernoulli.ppf", q, p))
    value = jnp.where(q <= 1 - p, 0.0, 1.0)
    return jnp.where(_is_probability(q) & _is_probability(p), value, jnp.nan).astype(q.dtype)


def _is_probability(p: Any) -> Any:
    return (p >= 0) & (p <= 1)
