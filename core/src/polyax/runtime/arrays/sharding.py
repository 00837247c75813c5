"""How an array lies on devices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from polyax.runtime.contract.backend import Device

Index = tuple[slice, ...]


@dataclass(frozen=True)
class SingleDeviceSharding:
    """All of the array is on one device."""

    device: Device

    @property
    def device_set(self) -> set[Device]:
        return {self.device}

    @property
    def is_fully_replicated(self) -> bool:
        return True

    @property
    def is_fully_addressable(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"SingleDeviceSharding(device={self.device!r})"


@dataclass(frozen=True)
class DeviceSharding:
    """A block of the array is on each of the devices: ``array[indices[n]]`` on ``device_list[n]``."""

    device_list: tuple[Device, ...]
    indices: tuple[Index, ...]

    def __hash__(self) -> int:
        return hash(self.device_list)  # slices have no hash before Python 3.12

    @property
    def device_set(self) -> set[Device]:
        return set(self.device_list)

    @property
    def is_fully_replicated(self) -> bool:
        return all(i == self.indices[0] for i in self.indices)

    @property
    def is_fully_addressable(self) -> bool:
        return True


@dataclass(frozen=True)
class Shard:
    """The part of an array that is on ``device``: ``array[index]``."""

    device: Device
    index: Index
    replica_id: int
    data: Any

    def __repr__(self) -> str:
        return f"Shard(device={self.device!r}, index={self.index}, replica_id={self.replica_id}, data={self.data})"
