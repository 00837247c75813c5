"""The uniform distribution."""

from __future__ import annotations

from polyax import numpy as jnp
from polyax.scipy.stats.families import LocationScale

__all__ = ["cdf", "logpdf", "pdf", "ppf"]

_of = LocationScale("uniform", low=0, high=1)

logpdf = _of.logpdf(jnp.zeros_like)
pdf = _of.pdf(logpdf)
cdf = _of.probability("cdf", lambda z: z)
ppf = _of.quantile("ppf", lambda q: q)
