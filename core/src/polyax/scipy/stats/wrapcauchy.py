"""The Cauchy distribution wrapped around a circle."""

from __future__ import annotations

import math
from typing import Any

from polyax import numpy as jnp
from polyax.scipy.stats.families import LocationScale

__all__ = ["logpdf", "pdf"]


def _proper(c: Any) -> Any:
    return (c > 0) & (c < 1)


def _log(x: Any, c: Any) -> Any:
    c = jnp.where(_proper(c), c, 0.5)
    return jnp.log1p(-c * c) - math.log(2 * math.pi) - jnp.log(1 + c * c - 2 * c * jnp.cos(x))


_of = LocationScale("wrapcauchy", "c", 0, 2 * math.pi, scaled=False, proper=_proper)


logpdf = _of.logpdf(_log)
pdf = _of.pdf(logpdf)
