"""``jax._src.compiler``: what compiles is a plugin's, so nothing is here but the name."""
