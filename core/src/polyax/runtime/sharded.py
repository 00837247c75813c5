"""Arrays that lie on several devices: a block on each. Other programs get the whole array, gathered on the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polyax.ir.aval import ShapedArray
from polyax.runtime.array import Array
from polyax.runtime.backend import Device
from polyax.runtime.sharding import DeviceSharding, Shard

Index = tuple[slice, ...]


class ShardedArray(Array):
    """The array of the blocks ``shards``, of which each has its place in ``indices``. Made by ``pmap``."""

    __slots__ = ("_host", "indices", "shards")

    def __init__(self, aval: ShapedArray, shards: Sequence[Array], indices: Sequence[Index]) -> None:
        super().__init__(aval, shards[0].buffer, shards[0].device)
        self.shards = list(shards)
        self.indices = list(indices)
        self._host: np.ndarray | None = None

    def devices(self) -> set[Device]:
        return {x.device for x in self.shards}

    @property
    def sharding(self) -> Any:
        return DeviceSharding(tuple(x.device for x in self.shards), tuple(self.indices))

    @property
    def is_fully_replicated(self) -> bool:
        return all(i == self.indices[0] for i in self.indices)

    @property
    def addressable_shards(self) -> list[Shard]:
        seen: list[Index] = []
        found: list[Shard] = []
        for x, index in zip(self.shards, self.indices, strict=True):
            found.append(Shard(x.device, index, seen.count(index), x))
            seen.append(index)
        return found

    def is_ready(self) -> bool:
        return all(x.is_ready() for x in self.shards)

    def block_until_ready(self) -> Array:
        for x in self.shards:
            x.block_until_ready()
        return self

    def delete(self) -> None:
        super().delete()
        for x in self.shards:
            x.delete()

    def host_value(self) -> np.ndarray:
        """All blocks, put together once."""
        self._alive()
        if self._host is None:
            value = np.empty(self.aval.shape, self.aval.dtype)
            for x, index in zip(self.shards, self.indices, strict=True):
                value[index] = x.host_value().reshape(value[index].shape)
            value.flags.writeable = False
            self._host = value
        return self._host

    def __copy__(self) -> Array:
        return ShardedArray(self.aval, [x.__copy__() for x in self.shards], self.indices)
