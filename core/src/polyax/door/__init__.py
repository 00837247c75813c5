"""What ``polyax.as_jax`` is made of: ``jax`` as another name of polyax's modules, and names that only libraries use."""
