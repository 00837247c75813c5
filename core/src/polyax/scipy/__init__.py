"""SciPy's functions on arrays and tracers, as ``jax.scipy`` has them. Re-exports only."""

from polyax.scipy import special as special
