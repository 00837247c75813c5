"""``polyax.experimental``: what JAX keeps in its ``experimental``. Re-exports only."""

from polyax.control.callback import io_callback as io_callback
