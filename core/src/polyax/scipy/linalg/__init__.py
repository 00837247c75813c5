"""Linear algebra, as ``jax.scipy.linalg`` has it. Re-exports only."""

from polyax.scipy.linalg.factorizations import *
from polyax.scipy.linalg.functions import *
from polyax.scipy.linalg.matrices import *
from polyax.scipy.linalg.spectral import *
