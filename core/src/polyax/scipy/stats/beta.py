"""The beta distribution."""

from __future__ import annotations

from typing import Any

from polyax.scipy import special
from polyax.scipy.stats.families import LocationScale

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]

_of = LocationScale("beta", "ab", 0, 1, proper=lambda a, b: (a > 0) & (b > 0))


def _log(z: Any, a: Any, b: Any) -> Any:
    return special.xlogy(a - 1, z) + special.xlog1py(b - 1, -z) - special.betaln(a, b)


logpdf = _of.logpdf(_log)
pdf = _of.pdf(logpdf)
cdf = _of.probability("cdf", lambda z, a, b: special.betainc(a, b, z))
logcdf = _of.log("logcdf", cdf)
sf = _of.probability("sf", lambda z, a, b: special.betainc(b, a, 1 - z))
logsf = _of.log("logsf", sf)
