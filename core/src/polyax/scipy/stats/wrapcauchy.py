"""The Cauchy distribution wrapped around a circle."""

from __future__ import annotations

import math
from typing import Any

from polyax import numpy as jnp
from polyax.scipy.stats.families import LocationScale

__all__ = ["logpdf", "pdf"]

_of = LocationScale("wrapcauchy", "c", 0, 2 * math.pi, scaled=False)


def _log(x: Any, c: Any) -> Any:
    """NaN unless ``c`` is between 0 and 1."""
    proper = (c > 0) & (c < 1)
    c = jnp.where(proper, c, 0.5)
    value = jnp.log1p(-c * c) - math.log(2 * math.pi) - jnp.log(1 + c * c - 2 * c * jnp.cos(x))
    return jnp.where(proper, value, jnp.nan)


logpdf = _of.logpdf(_log)
pdf = _of.pdf(logpdf)
