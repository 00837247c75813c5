"""The von Mises distribution on a circle."""

from __future__ import annotations

import math
from typing import Any

from polyax import numpy as jnp
from polyax.scipy import special
from polyax.scipy.stats.families import LocationScale

__all__ = ["logpdf", "pdf"]

_of = LocationScale("vonmises", ["kappa"], scaled=False)


def _log(x: Any, kappa: Any) -> Any:
    """NaN unless ``kappa`` is positive."""
    safe = jnp.where(kappa > 0, kappa, 1.0)
    value = safe * (jnp.cos(x) - 1) - jnp.log(2 * math.pi * special.i0e(safe))
    return jnp.where(kappa > 0, value, jnp.nan)


logpdf = _of.logpdf(_log)
pdf = _of.pdf(logpdf)
