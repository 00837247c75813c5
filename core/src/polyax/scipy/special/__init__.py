"""Special functions, as ``jax.scipy.special`` has them. Re-exports only."""

from typing import Any as _Any

from polyax import late as _late
from polyax.scipy.special.bessel import *
from polyax.scipy.special.betas import *
from polyax.scipy.special.elementary import *
from polyax.scipy.special.faddeeva import *
from polyax.scipy.special.gammas import *
from polyax.scipy.special.harmonics import *
from polyax.scipy.special.hypergeometric import *
from polyax.scipy.special.integrals import *
from polyax.scipy.special.quantiles import *


def __getattr__(name: str) -> _Any:
    return _late.load(__name__, {}, name)
