"""``polyax.custom_batching``: functions with rules of their own for being mapped. Re-exports only."""

from polyax.control.calls.custom_vmap import custom_vmap as custom_vmap
from polyax.control.calls.custom_vmap import sequential_vmap as sequential_vmap
