"""Arrays that lie on several devices: a block on each. Other programs get the whole array, gathered on the host."""

from __future__ import annotations

import copyreg
from collections.abc import Sequence
from typing import Any

import numpy as np

from polyax.ir.aval import ShapedArray
from polyax.ops.index import dynamic_slice
from polyax.runtime.arrays import devices as places
from polyax.runtime.arrays.array import Array
from polyax.runtime.arrays.sharding import DeviceSharding, Index, Shard
from polyax.runtime.contract.backend import Buffer, Device


class ShardedArray(Array):
    """The array of the blocks ``shards``, which lie as ``sharding`` says. Made by ``pmap``.

    It has no buffer and no device of its own, so that nobody can take a block for the whole.
    """

    __slots__ = ("_host", "_layout", "shards")

    def __init__(self, aval: ShapedArray, shards: Sequence[Array], layout: DeviceSharding) -> None:
        super().__init__(aval, None, None)  # type: ignore[arg-type]
        self.shards = list(shards)
        self._layout = layout
        self._host: np.ndarray | None = None

    # --- where it is

    @property
    def device(self) -> Any:
        """Its sharding, as in JAX, unless there is one device."""
        return self._layout if len(self.shards) > 1 else self.shards[0].device

    def devices(self) -> set[Device]:
        return self._layout.device_set

    @property
    def committed(self) -> bool:
        return True

    @property
    def sharding(self) -> Any:
        return self._layout

    @property
    def is_fully_replicated(self) -> bool:
        return self._layout.is_fully_replicated

    @property
    def addressable_shards(self) -> list[Shard]:
        seen: list[Index] = []
        found: list[Shard] = []
        for x, index in zip(self.shards, self._layout.indices, strict=True):
            found.append(Shard(x.device, index, seen.count(index), x))
            seen.append(index)
        return found

    def platform(self) -> str:
        return self._layout.device_list[0].platform

    # --- its life

    def is_ready(self) -> bool:
        return all(x.is_ready() for x in self.shards)

    def block_until_ready(self) -> Array:
        self.alive()
        for x in self.shards:
            x.block_until_ready()
        return self

    def delete(self) -> None:
        for x in self.shards:
            x.delete()

    def is_deleted(self) -> bool:
        return any(x.is_deleted() for x in self.shards)

    def alive(self) -> Buffer:
        if self.is_deleted():
            raise RuntimeError(f"Array has been deleted with shape={self.aval}.")
        return self.shards[0].alive()

    def copy_to_host_async(self) -> None:
        for x in self.shards:
            x.copy_to_host_async()

    # --- its contents

    def host_value(self) -> np.ndarray:
        """All blocks, put together once."""
        self.alive()
        if self._host is None:
            parts = [x.host_value() for x in self.shards]
            more = parts[0].shape[len(self.aval.shape) :]  # of the representation of an extended dtype
            value = np.empty((*self.aval.shape, *more), parts[0].dtype)
            for part, index in zip(parts, self._layout.indices, strict=True):
                value[index] = part.reshape(value[index].shape)
            value.flags.writeable = False
            self._host = value
        return self._host

    def __copy__(self) -> Array:
        return ShardedArray(self.aval, [x.__copy__() for x in self.shards], self._layout)


copyreg.pickle(ShardedArray, places.reduce_array)  # pyright: ignore[reportArgumentType]


def blocks(x: Any, block: ShapedArray, layout: DeviceSharding) -> Sequence[Array]:
    """A block of ``x``, of type ``block``, on each of the devices: without a copy where it lies there."""
    if isinstance(x, ShardedArray):
        if x.sharding == layout:
            x.alive()
            return x.shards
    elif type(x) is Array and (layout.is_fully_replicated or not x.is_ready()):
        return [_moved(_cut(x, block, i), d) for d, i in zip(layout.device_list, layout.indices, strict=True)]
    host = x.host_value() if isinstance(x, Array) else np.asarray(x, block.dtype)
    return [
        places.from_host(host[index], device, block)
        for device, index in zip(layout.device_list, layout.indices, strict=True)
    ]


def _moved(x: Array, device: Device) -> Array:
    return x if x.device is device else places.device_put(x, device)


def _cut(x: Array, block: ShapedArray, index: Index) -> Array:
    """A block of an array that may still be in the making: nobody waits for it here."""
    if x.aval.shape == block.shape:
        return x
    return dynamic_slice(x, [np.int32(s.start or 0) for s in index], block.shape)
