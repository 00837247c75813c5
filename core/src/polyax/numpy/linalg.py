"""Linear algebra, as ``jax.numpy.linalg`` has it. Re-exports only."""

# ruff: noqa: F403

import sys as _sys

from polyax.numpy.decompositions import *
from polyax.numpy.determinants import *
from polyax.numpy.matrices import *
from polyax.numpy.norms import *
from polyax.numpy.solutions import *
from polyax.runtime.contract.tracebacks import guard as _guard
from polyax.runtime.running.repeated import repeating as _repeating

_guard(_sys.modules[__name__], _repeating)
