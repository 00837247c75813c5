"""The exponential distribution."""

from __future__ import annotations

from polyax import numpy as jnp
from polyax.scipy.stats.families import LocationScale, log1mexp

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]

_of = LocationScale("expon", low=0)

logpdf = _of.logpdf(lambda z: -z)
pdf = _of.pdf(logpdf)
cdf = _of.probability("cdf", lambda z: -jnp.expm1(-z))
logcdf = _of.probability("logcdf", log1mexp)
sf = _of.probability("sf", lambda z: jnp.exp(-z))
logsf = _of.probability("logsf", lambda z: -z)
ppf = _of.quantile("ppf", lambda q: -jnp.log1p(-q))
