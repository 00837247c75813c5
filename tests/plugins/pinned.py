"""A backend whose devices address memory of the host's beside their own."""

from __future__ import annotations

from typing import Any

from plugins.faults.broken import Working

from polyax.backend import HostBuffer


class Pinned(HostBuffer):
    """Memory of the host that devices see."""


class WithPinned(Working):
    memory_kinds = ("device", "pinned_host")
    in_host_memory = False

    def into_memory(self, buffer: Any, aval: Any, device: Any, kind: str) -> HostBuffer:
        buffer.wait()
        return {"device": HostBuffer, "pinned_host": Pinned}[kind](buffer.data.copy())
