"""Names of ``jax.experimental`` for what polyax doesn't have, which libraries import."""
