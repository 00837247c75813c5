"""The geometric distribution: trials up to the first success."""

from __future__ import annotations

from polyax import numpy as jnp
from polyax.scipy import special
from polyax.scipy.stats.families import Counting

__all__ = ["logpmf", "pmf"]

_of = Counting("geom", "p")

logpmf = _of.logpmf(lambda k, p: k > 0, lambda k, p: special.xlog1py(k - 1, -p) + jnp.log(p))
pmf = _of.pmf(logpmf)
