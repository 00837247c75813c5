"""Initial weights, as ``jax.nn.initializers`` has them. Re-exports only."""

# ruff: noqa: F403

from polyax.nn.initial import *
