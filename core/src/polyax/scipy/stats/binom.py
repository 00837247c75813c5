"""The binomial distribution."""

from __future__ import annotations

from typing import Any

from polyax import numpy as jnp
from polyax.scipy import special
from polyax.scipy.stats.families import Counting, made

__all__ = ["logpmf", "pmf"]


def _log(k: Any, n: Any, p: Any, loc: Any) -> Any:
    """What is no number is no count, and certain is what has nothing to do with chance: both as in JAX."""
    y = k - loc
    counts = (y >= 0) & (y < n + 1)
    y = jnp.where(counts, y, 0.0)
    ways = special.gammaln(n + 1) - special.gammaln(y + 1) - special.gammaln(n - y + 1)
    chances = special.xlogy(y, p) + special.xlog1py(n - y, -p)
    return jnp.where(counts, jnp.where(chances == 0, 0.0, ways + chances), -jnp.inf)


logpmf = made("binom", "logpmf", _log, ("k", "n", "p"), {"loc": 0})
pmf = Counting("binom", "np").pmf(logpmf)
