"""``Shard``: the part of an array that is on one device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from polyax.meshes.sharding import Index
from polyax.runtime.contract.backend import Device


@dataclass(frozen=True)
class Shard:
    """The part of an array that is on ``device``: ``array[index]``."""

    device: Device
    index: Index
    replica_id: int
    data: Any

    def __repr__(self) -> str:
        return f"Shard(device={self.device!r}, index={self.index}, replica_id={self.replica_id}, data={self.data})"
