"""The Student's t distribution."""

from __future__ import annotations

import math
from typing import Any

from polyax import numpy as jnp
from polyax.scipy import special
from polyax.scipy.stats.families import LocationScale

__all__ = ["logpdf", "pdf"]

_of = LocationScale("t", ["df"])


def _log(z: Any, df: Any) -> Any:
    scale = special.gammaln((df + 1) / 2) - special.gammaln(df / 2) - 0.5 * jnp.log(df * math.pi)
    return scale - (df + 1) / 2 * jnp.log1p(z * z / df)


logpdf = _of.logpdf(_log)
pdf = _of.pdf(logpdf)
