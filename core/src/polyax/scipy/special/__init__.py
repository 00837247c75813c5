"""Special functions, as ``jax.scipy.special`` has them. Re-exports only."""

from polyax.scipy.special.bessel import *
from polyax.scipy.special.betas import *
from polyax.scipy.special.elementary import *
from polyax.scipy.special.faddeeva import *
from polyax.scipy.special.gammas import *
from polyax.scipy.special.harmonics import *
from polyax.scipy.special.hypergeometric import *
from polyax.scipy.special.integrals import *
from polyax.scipy.special.quantiles import *
