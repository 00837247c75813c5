"""The Cauchy distribution."""

from __future__ import annotations

import math

from polyax import numpy as jnp
from polyax.scipy.stats.families import LocationScale

__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]

_of = LocationScale("cauchy")

logpdf = _of.logpdf(lambda z: -math.log(math.pi) - jnp.log1p(z * z))
pdf = _of.pdf(logpdf)
cdf = _of.probability("cdf", lambda z: jnp.arctan2(jnp.ones_like(z), -z) / math.pi)
logcdf = _of.log("logcdf", cdf)
sf = _of.probability("sf", lambda z: jnp.arctan2(jnp.ones_like(z), z) / math.pi)
logsf = _of.log("logsf", sf)
ppf = _of.quantile("ppf", lambda q: jnp.tan(math.pi * q - math.pi / 2))
isf = _of.quantile("isf", lambda q: jnp.tan(math.pi / 2 - math.pi * q))
