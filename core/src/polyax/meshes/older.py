"""Shardings that JAX had before meshes had names: arrays of devices, and tiles as XLA writes them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from polyax.meshes.sharding import Device, Index, IndivisibleError, Sharding


class _Tiled(Sharding):
    """Each dimension of an array is cut into as many parts as the array of devices has entries along it; a cell of that
    array holds the devices that have the same part."""

    cells: np.ndarray
    """Of tuples of devices."""

    def _key(self) -> Any:
        return self.cells.shape, tuple(self.cells.flat)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    @property
    def device_list(self) -> tuple[Device, ...]:
        return tuple(d for cell in self.cells.flat for d in cell)

    @property
    def is_fully_replicated(self) -> bool:
        return self.cells.size == 1

    def devices_indices_map(self, global_shape: Sequence[int]) -> dict[Device, Index]:
        shape = tuple(global_shape)
        tiles = self._tiles(shape)
        found: dict[Device, Index] = {}
        for place, cell in zip(np.ndindex(tiles), self.cells.flat, strict=True):
            index = tuple(slice(k * (n // t), (k + 1) * (n // t)) for k, n, t in zip(place, shape, tiles, strict=True))
            found.update(dict.fromkeys(cell, index))
        return found

    def _tiles(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        tiles = self.cells.shape if self.cells.size > 1 else (1,) * len(shape)
        if len(tiles) != len(shape):
            raise ValueError(f"{self} cuts arrays of {len(tiles)} dimensions, got one of shape {shape}")
        for axis, (n, tile) in enumerate(zip(shape, tiles, strict=True)):
            if n % tile:
                raise IndivisibleError(
                    f"Sharding {self} implies that array axis {axis} is partitioned {tile} times, but the dimension "
                    f"size is {n} (full shape: {shape}, per-dimension tiling factors: {list(tiles)} should evenly "
                    "divide the shape)"
                )
        return tiles


class PositionalSharding(_Tiled):
    """Devices, arranged as the blocks of an array are: ``PositionalSharding(devices).reshape(4, 2)``.

    >>> import polyax
    >>> PositionalSharding(polyax.devices()[:1]).reshape(1, 1).shard_shape((4, 2))
    (4, 2)
    """

    def __init__(self, devices: Any, *, memory_kind: str | None = None) -> None:
        flat = np.asarray(devices, dtype=object)
        self.cells = _cells([(d,) for d in flat.flat], flat.shape)

    @classmethod
    def _of(cls, cells: np.ndarray) -> PositionalSharding:
        self = cls.__new__(cls)
        self.cells = cells
        return self

    @property
    def shape(self) -> tuple[int, ...]:
        return self.cells.shape

    @property
    def ndim(self) -> int:
        return self.cells.ndim

    def reshape(self, *shape: Any) -> PositionalSharding:
        return self._of(self.cells.reshape(*shape))

    def transpose(self, *axes: Any) -> PositionalSharding:
        return self._of(self.cells.transpose(*axes))

    T = property(transpose)

    def replicate(self, axis: int | None = None, keepdims: bool = True) -> PositionalSharding:
        """The devices along ``axis``, or all, have the same part."""
        axes = range(self.ndim) if axis is None else [axis % self.ndim]
        kept = [n for n in range(self.ndim) if n not in axes]
        rows = self.cells.transpose(*kept, *axes).reshape(*(self.shape[n] for n in kept), -1)
        shape = [1 if n in axes else size for n, size in enumerate(self.shape)]
        merged = [sum(row, ()) for row in rows.reshape(-1, rows.shape[-1])]
        return self._of(_cells(merged, shape if keepdims else [self.shape[n] for n in kept]))

    def __repr__(self) -> str:
        ids = [f"{{{', '.join(f'{d.platform.upper()} {d.id}' for d in cell)}}}" for cell in self.cells.flat]
        return f"PositionalSharding({' '.join(ids)}, shape={self.shape})"


class GSPMDSharding(_Tiled):
    """What XLA's ``OpSharding`` says, read from an object with its fields.

    Args:
      devices: in the order that the tiles name them.
      op_sharding: has ``tile_assignment_dimensions``, ``tile_assignment_devices`` and ``replicate_on_last_tile_dim``;
        None: all devices have all of the array.
    """

    def __init__(self, devices: Sequence[Device], op_sharding: Any = None, *, memory_kind: str | None = None) -> None:
        listed, dims = tuple(devices), list(getattr(op_sharding, "tile_assignment_dimensions", None) or ())
        if not dims:
            self.cells = _cells([listed], ())
            return
        order = [listed[n] for n in op_sharding.tile_assignment_devices]
        copies = dims.pop() if op_sharding.replicate_on_last_tile_dim else 1
        if math.prod(dims) * copies != len(listed):
            raise ValueError(f"GSPMDSharding: {len(listed)} devices for tiles {dims}, each on {copies}")
        self.cells = _cells([tuple(order[n : n + copies]) for n in range(0, len(order), copies)], dims)

    @classmethod
    def get_replicated(cls, device_assignment: Sequence[Device], *, memory_kind: str | None = None) -> GSPMDSharding:
        return cls(device_assignment)

    def __repr__(self) -> str:
        return f"GSPMDSharding({'replicated' if self.cells.size == 1 else f'tiles={self.cells.shape}'})"


def _cells(tuples: Sequence[tuple[Device, ...]], shape: Sequence[int]) -> np.ndarray:
    found = np.empty(len(tuples), object)
    found[:] = tuples
    return found.reshape(tuple(shape))
