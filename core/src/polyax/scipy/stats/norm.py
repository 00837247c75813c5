"""The normal distribution."""

from __future__ import annotations

import math

from polyax.scipy import special
from polyax.scipy.stats.families import LocationScale

__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]

_of = LocationScale("norm")

logpdf = _of.logpdf(lambda z: -0.5 * (z * z + math.log(2 * math.pi)))
pdf = _of.pdf(logpdf)
cdf = _of.probability("cdf", special.ndtr)
logcdf = _of.probability("logcdf", special.log_ndtr)
sf = _of.probability("sf", lambda z: special.ndtr(-z))
logsf = _of.probability("logsf", lambda z: special.log_ndtr(-z))
ppf = _of.quantile("ppf", special.ndtri)
isf = _of.quantile("isf", lambda q: -special.ndtri(q))
