"""The chi-squared distribution."""

from __future__ import annotations

import math
from typing import Any

from polyax.scipy import special
from polyax.scipy.stats.families import LocationScale

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]

_of = LocationScale("chi2", ["df"], 0)


def _log(z: Any, df: Any) -> Any:
    return special.xlogy(df / 2 - 1, z / 2) - z / 2 - special.gammaln(df / 2) - math.log(2)


logpdf = _of.logpdf(_log)
pdf = _of.pdf(logpdf)
cdf = _of.probability("cdf", lambda z, df: special.gammainc(df / 2, z / 2))
logcdf = _of.log("logcdf", cdf)
sf = _of.probability("sf", lambda z, df: special.gammaincc(df / 2, z / 2))
logsf = _of.log("logsf", sf)
