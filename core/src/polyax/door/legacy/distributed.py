"""``jax._src.distributed``: what is known of the group of processes."""

from __future__ import annotations

from polyax.runtime.contract import processes


class GlobalState:
    """This process among others. There is no client: processes talk through the plugin that connects them."""

    client: None = None
    service: None = None
    coordinator_address: str | None = None

    @property
    def process_id(self) -> int:
        """The number of this process."""
        return processes.here().rank

    @property
    def num_processes(self) -> int:
        """How many there are."""
        return processes.here().size


global_state = GlobalState()
