"""The generalised normal distribution, with tails like ``exp(-abs(x)**beta)``."""

from __future__ import annotations

from typing import Any

from polyax import numpy as jnp
from polyax.scipy import special
from polyax.scipy.stats.families import LocationScale

__all__ = ["cdf", "logpdf", "pdf"]

_of = LocationScale("gennorm", ["beta"], scaled=False)


def _below(x: Any, beta: Any) -> Any:
    return 0.5 * (1 + jnp.sign(x) * special.gammainc(1 / beta, jnp.abs(x) ** beta))


logpdf = _of.logpdf(lambda x, beta: jnp.log(0.5 * beta) - special.gammaln(1 / beta) - jnp.abs(x) ** beta)
pdf = _of.pdf(logpdf)
cdf = _of.probability("cdf", _below)
