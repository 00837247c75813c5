"""``jax._src.dispatch``: waiting for what programs do besides computing."""

from polyax.runtime.arrays.devices import effects_barrier as wait_for_tokens

__all__ = ["wait_for_tokens"]
