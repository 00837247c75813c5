"""``jax.interpreters``: what libraries take from modules that are out of use."""
