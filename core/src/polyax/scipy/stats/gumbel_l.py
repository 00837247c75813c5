"""The left-skewed Gumbel distribution."""

from __future__ import annotations

from polyax import numpy as jnp
from polyax.scipy.stats.families import LocationScale, log1mexp

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]

_of = LocationScale("gumbel_l", positive=True)

logpdf = _of.logpdf(lambda z: z - jnp.exp(z))
pdf = _of.pdf(logpdf)
cdf = _of.probability("cdf", lambda z: -jnp.expm1(-jnp.exp(z)))
logcdf = _of.probability("logcdf", lambda z: log1mexp(jnp.exp(z)))
sf = _of.probability("sf", lambda z: jnp.exp(-jnp.exp(z)))
logsf = _of.probability("logsf", lambda z: -jnp.exp(z))
ppf = _of.quantile("ppf", lambda q: jnp.log(-jnp.log1p(-q)), "p", ends=False)
