"""The binomial distribution whose probability has a beta distribution."""

from __future__ import annotations

from typing import Any

from polyax import numpy as jnp
from polyax.scipy import special
from polyax.scipy.stats.families import Counting

__all__ = ["logpmf", "pmf"]

_of = Counting("betabinom", "nab")


def _log(k: Any, n: Any, a: Any, b: Any) -> Any:
    """Of the count below, as JAX has it."""
    k = jnp.floor(k)
    ways = -jnp.log(n + 1) - special.betaln(n - k + 1, k + 1)
    return ways + special.betaln(k + a, n - k + b) - special.betaln(a, b)


logpmf = _of.logpmf(lambda k, n, a, b: (k >= 0) & (k <= n), _log)
pmf = _of.pmf(logpmf)
