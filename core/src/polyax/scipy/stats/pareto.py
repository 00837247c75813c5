"""The Pareto distribution."""

from __future__ import annotations

from polyax import numpy as jnp
from polyax.scipy.stats.families import LocationScale, log1mexp

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]

_of = LocationScale("pareto", "b", 1)

logpdf = _of.logpdf(lambda z, b: jnp.log(b) - (b + 1) * jnp.log(z))
pdf = _of.pdf(logpdf)
cdf = _of.probability("cdf", lambda z, b: -jnp.expm1(-b * jnp.log(z)))
logcdf = _of.probability("logcdf", lambda z, b: log1mexp(b * jnp.log(z)))
sf = _of.probability("sf", lambda z, b: jnp.exp(-b * jnp.log(z)))
logsf = _of.probability("logsf", lambda z, b: -b * jnp.log(z))
ppf = _of.quantile("ppf", lambda q, b: jnp.exp(-jnp.log1p(-q) / b))
