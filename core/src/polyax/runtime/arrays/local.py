"""What this process has of arrays that lie on the devices of several: its part as an array of its own, and back.

A process's part is what its devices have, in each dimension one stretch after the other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from polyax.ir.aval import aval_of
from polyax.meshes.explicit import told
from polyax.meshes.sharding import BlockSharding, Index, NamedSharding, Sharding, bounds
from polyax.runtime.arrays.array import Array, is_concrete
from polyax.runtime.arrays.placing import on_devices
from polyax.runtime.contract import processes

Place = tuple[tuple[int, int], ...]


def _stretches(sharding: Sharding, shape: Sequence[int], own: set[Place]) -> list[list[tuple[int, int]]]:
    """In each dimension, what this process has, in order.

    Raises:
      ValueError: its parts aren't a block: some combination of stretches is missing.
    """
    found = [sorted({place[d] for place in own}) for d in range(len(shape))]
    if len(own) != math.prod(len(s) for s in found):
        raise ValueError(
            f"process {processes.here().rank} has parts of an array of shape {tuple(shape)} with {sharding} that "
            f"aren't a block of it, so that they make no local array: {sorted(own)}"
        )
    return found


def _within(place: Place, stretches: Sequence[Sequence[tuple[int, int]]]) -> Index:
    """Where a part is in the array of this process's parts."""
    index: list[slice] = []
    for (begin, end), own in zip(place, stretches, strict=True):
        before = sum(b - a for a, b in own if b <= begin)
        index.append(slice(before, before + end - begin))
    return tuple(index)


def local_sharding(sharding: Sharding, shape: Sequence[int]) -> tuple[tuple[int, ...], Sharding]:
    """The shape of this process's part of an array, and how it lies on its devices."""
    places = {d: bounds(i, shape) for d, i in sharding.addressable_devices_indices_map(shape).items()}
    stretches = _stretches(sharding, shape, set(places.values()))
    indices = {d: _within(place, stretches) for d, place in places.items()}
    local = tuple([sum(b - a for a, b in s) for s in stretches])
    return local, _named_alike(sharding, local, indices) or BlockSharding(tuple(indices), tuple(indices.values()))


def _named_alike(sharding: Sharding, local: tuple[int, ...], indices: dict[Any, Index]) -> Sharding | None:
    """The same spec on the mesh of this process's devices, if that means the same."""
    if not isinstance(sharding, NamedSharding) or not len(indices):
        return None
    try:
        found = NamedSharding(sharding.mesh.local_mesh, sharding.spec)  # pyright: ignore[reportAttributeAccessIssue]
        means = found.devices_indices_map(local)
    except ValueError:  # its devices aren't a block of the mesh
        return None
    alike = means.keys() == indices.keys() and all(bounds(means[d], local) == bounds(indices[d], local) for d in means)
    return found if alike else None


def local_part(x: Array) -> Array:
    """What this process has of ``x``."""
    if x.is_fully_addressable:
        return x
    shape, layout = local_sharding(x.sharding, x.shape)
    return Array.of_parts(told(x.aval.with_shape(shape), layout), x.parts, layout)


def of_local_part(x: Any, shape: Sequence[int], sharding: Sharding) -> Array:
    """The array of this shape and sharding, of which ``x`` is what this process has.

    Raises:
      ValueError: the shapes don't fit each other.
    """
    local, layout = local_sharding(sharding, shape)
    aval = aval_of(x)
    if aval.shape != local:
        raise ValueError(
            f"process {processes.here().rank} has a part of shape {local} of an array of shape {tuple(shape)} with "
            f"{sharding}, and was given one of shape {aval.shape}"
        )
    block = aval.with_shape(sharding.shard_shape(shape))
    parts = on_devices(x, block, layout)
    mine = {id(part) for part in x.parts} if is_concrete(x) and x._device is not None else set[int]()
    return Array.of_parts(
        told(block.with_shape(tuple(shape)), sharding),
        [p.__copy__() if id(p) in mine else p for p in parts],
        sharding,
    )


def whole_shape(sharding: Sharding, local: Sequence[int]) -> tuple[int, ...]:
    """The shape of which this process's blocks make up ``local``: dimensions are counted in blocks, here and in all."""
    unit = (sharding.num_devices,) * len(local)
    everywhere = [bounds(i, unit) for i in sharding.devices_indices_map(unit).values()]
    here = [bounds(i, unit) for i in sharding.addressable_devices_indices_map(unit).values()]
    counts = [(len({p[n] for p in everywhere}), len({p[n] for p in here})) for n in range(len(local))]
    return tuple(n * total // own for n, (total, own) in zip(local, counts, strict=True))
