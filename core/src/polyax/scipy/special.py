"""Special functions, as ``jax.scipy.special`` has them. Re-exports only."""

# ruff: noqa: F403

from polyax.scipy.functions import *
