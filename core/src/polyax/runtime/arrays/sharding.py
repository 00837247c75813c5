"""How an array lies on devices."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from polyax.runtime.contract.backend import Device

Index = tuple[slice, ...]


class Sharding(ABC):
    """Says which part of an array each of some devices has."""

    @property
    @abstractmethod
    def device_list(self) -> tuple[Device, ...]:
        """The devices, in the order of the array's parts."""

    @property
    def is_fully_replicated(self) -> bool:
        """Whether each device has the whole array."""
        return self.num_devices == 1

    @abstractmethod
    def devices_indices_map(self, global_shape: Sequence[int]) -> dict[Device, Index]:
        """What each device has of an array of this shape: ``array[index]``."""

    def addressable_devices_indices_map(self, global_shape: Sequence[int]) -> dict[Device, Index]:
        """The same for the devices of this process, which are all."""
        return self.devices_indices_map(global_shape)

    @property
    def device_set(self) -> set[Device]:
        return set(self.device_list)

    @property
    def num_devices(self) -> int:
        return len(self.device_list)

    @property
    def is_fully_addressable(self) -> bool:
        return True

    def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of each part of an array of this shape.

        Raises:
          ValueError: it doesn't fall into parts of one shape.
        """
        indices = self.devices_indices_map(global_shape).values()
        if all(len(i) == len(global_shape) for i in indices):
            parts = {bounds(i, global_shape) for i in indices}
            first, *others = {tuple([b - a for a, b in part]) for part in parts}
            if not others and len(parts) * math.prod(first) == math.prod(global_shape):
                return first
        raise ValueError(f"{self} doesn't divide arrays of shape {tuple(global_shape)} into parts of one shape")


def bounds(index: Index, shape: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Where a part begins and ends, in each dimension."""
    return tuple([s.indices(n)[:2] for s, n in zip(index, shape, strict=True)])


@dataclass(frozen=True)
class SingleDeviceSharding(Sharding):
    """All of the array is on one device."""

    device: Device

    @property
    def device_list(self) -> tuple[Device, ...]:
        return (self.device,)

    def devices_indices_map(self, global_shape: Sequence[int]) -> dict[Device, Index]:
        return {self.device: (slice(None),) * len(global_shape)}


@dataclass(frozen=True)
class BlockSharding(Sharding):
    """A block of an array of one shape is on each of the devices: ``array[indices[n]]`` on ``devices[n]``."""

    devices: tuple[Device, ...]
    indices: tuple[Index, ...]

    def __hash__(self) -> int:
        return hash(self.devices)  # slices have no hash before Python 3.12

    @property
    def device_list(self) -> tuple[Device, ...]:
        return self.devices

    @property
    def is_fully_replicated(self) -> bool:
        return all(i == self.indices[0] for i in self.indices)

    def devices_indices_map(self, global_shape: Sequence[int]) -> dict[Device, Index]:
        return dict(zip(self.devices, self.indices, strict=True))


@dataclass(frozen=True)
class Shard:
    """The part of an array that is on ``device``: ``array[index]``."""

    device: Device
    index: Index
    replica_id: int
    data: Any

    def __repr__(self) -> str:
        return f"Shard(device={self.device!r}, index={self.index}, replica_id={self.replica_id}, data={self.data})"
