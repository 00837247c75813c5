"""Linear algebra, as ``jax.numpy.linalg`` has it. Re-exports only."""

# ruff: noqa: F403

from polyax.numpy.determinants import *
from polyax.numpy.matrices import *
