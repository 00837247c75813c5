"""The gamma distribution."""

from __future__ import annotations

from polyax.scipy import special
from polyax.scipy.stats.families import LocationScale

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]

_of = LocationScale("gamma", "a", 0)

logpdf = _of.logpdf(lambda z, a: special.xlogy(a - 1, z) - z - special.gammaln(a))
pdf = _of.pdf(logpdf)
cdf = _of.probability("cdf", lambda z, a: special.gammainc(a, z))
logcdf = _of.log("logcdf", cdf)
sf = _of.probability("sf", lambda z, a: special.gammaincc(a, z))
logsf = _of.log("logsf", sf)
