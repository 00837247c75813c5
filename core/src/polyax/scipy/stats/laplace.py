"""The Laplace distribution."""

from __future__ import annotations

import math
from typing import Any

from polyax import numpy as jnp
from polyax.scipy.stats.families import LocationScale

__all__ = ["cdf", "logpdf", "pdf"]

_of = LocationScale("laplace")


def _below(z: Any) -> Any:
    half = 0.5 * jnp.exp(-jnp.abs(z))
    return jnp.where(z < 0, half, 1 - half)


logpdf = _of.logpdf(lambda z: -jnp.abs(z) - math.log(2))
pdf = _of.pdf(logpdf)
cdf = _of.probability("cdf", _below)
