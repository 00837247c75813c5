"""The negative binomial distribution: failures before ``n`` successes."""

from __future__ import annotations

from typing import Any

from polyax.scipy import special
from polyax.scipy.stats.families import Counting

__all__ = ["logpmf", "pmf"]

_of = Counting("nbinom", "np")


def _log(k: Any, n: Any, p: Any) -> Any:
    ways = special.gammaln(k + n) - special.gammaln(n) - special.gammaln(k + 1)
    return ways + special.xlogy(n, p) + special.xlog1py(k, -p)


logpmf = _of.logpmf(lambda k, n, p: k >= 0, _log)
pmf = _of.pmf(logpmf)
