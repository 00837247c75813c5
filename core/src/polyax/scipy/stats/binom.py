"""The binomial distribution."""

from __future__ import annotations

from typing import Any

from polyax.scipy import special
from polyax.scipy.stats.families import Counting

__all__ = ["logpmf", "pmf"]

_of = Counting("binom", "np")


def _log(k: Any, n: Any, p: Any) -> Any:
    ways = special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)
    return ways + special.xlogy(k, p) + special.xlog1py(n - k, -p)


logpmf = _of.logpmf(lambda k, n, p: (k >= 0) & (k < n + 1), _log)
pmf = _of.pmf(logpmf)
