"""The binomial distribution whose probability has a beta distribution."""

from __future__ import annotations

from typing import Any

from polyax import numpy as jnp
from polyax.scipy import special
from polyax.scipy.stats.families import Counting, made

__all__ = ["logpmf", "pmf"]


def _log(k: Any, n: Any, a: Any, b: Any, loc: Any) -> Any:
    """Of the count below ``k``, from ``-loc`` on, as JAX has it; NaN where there is no such distribution."""
    y = jnp.floor(k) - loc
    outside = (y < -loc) | (y > n) | (y + a <= 0)
    y = jnp.where(outside, 0.0, y)
    ways = -jnp.log1p(n) - special.betaln(n - y + 1, y + 1)
    value = ways + special.betaln(y + a, n - y + b) - special.betaln(a, b)
    value = jnp.where(outside, -jnp.inf, jnp.where((y == 0) & (n == 0), 0.0, value))
    return jnp.where((n < 0) | (a <= 0) | (b <= 0), jnp.nan, value)


logpmf = made("betabinom", "logpmf", _log, ("k", "n", "a", "b"), {"loc": 0})
pmf = Counting("betabinom", "nab").pmf(logpmf)
