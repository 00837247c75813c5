"""The logistic distribution."""

from __future__ import annotations

from polyax import numpy as jnp
from polyax.scipy import special
from polyax.scipy.stats.families import LocationScale

__all__ = ["cdf", "isf", "logpdf", "pdf", "ppf", "sf"]

_of = LocationScale("logistic")

logpdf = _of.logpdf(lambda z: -jnp.abs(z) - 2 * jnp.log1p(jnp.exp(-jnp.abs(z))))
pdf = _of.pdf(logpdf)
cdf = _of.probability("cdf", special.expit)
sf = _of.probability("sf", lambda z: special.expit(-z))
ppf = _of.quantile("ppf", special.logit, "x")
isf = _of.quantile("isf", lambda q: -special.logit(q), "x")
