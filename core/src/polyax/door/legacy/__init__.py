"""Names of JAX that are private or out of use, for libraries: they are reached through ``polyax.as_jax`` alone."""
