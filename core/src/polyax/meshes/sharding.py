"""How an array lies on devices."""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyax.meshes import memories
from polyax.meshes.axes import AbstractMesh, MeshAxes
from polyax.meshes.mesh import Mesh
from polyax.meshes.spec import UNCONSTRAINED, Cuts, PartitionSpec, cotangent_sums_of, summands, sums_of

Device = Any
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
        """The same for the devices of this process alone."""
        return {d: i for d, i in self.devices_indices_map(global_shape).items() if d.is_addressable}

    @property
    def device_set(self) -> set[Device]:
        return set(self.device_list)

    @property
    def addressable_devices(self) -> set[Device]:
        """Those of this process."""
        return {d for d in self.device_list if d.is_addressable}

    @property
    def _device_assignment(self) -> tuple[Device, ...]:  # libraries that save arrays ask for these two
        return self.device_list

    @property
    def _addressable_device_assignment(self) -> tuple[Device, ...]:
        return tuple(d for d in self.device_list if d.is_addressable)

    @property
    def has_addressable_devices(self) -> bool:
        return any(d.is_addressable for d in self.device_list)

    @property
    def memory_kind(self) -> str | None:
        """The kind of memory that arrays are in."""
        return memories.DEFAULT

    def with_memory_kind(self, kind: str | None) -> Sharding:
        """The same, of arrays in another kind of memory.

        Raises:
          ValueError: the devices can't address such memory.
        """
        if kind not in (None, memories.DEFAULT):
            raise ValueError(f"{self} says nothing of memory; name {kind!r} in a NamedSharding")
        return self

    def is_equivalent_to(self, other: Sharding, ndim: int) -> bool:
        """Whether both put the same parts of arrays of ``ndim`` dimensions on the same devices."""
        if self == other:
            return True
        if self.device_list != other.device_list or self.memory_kind != other.memory_kind:
            return False
        shape = (math.lcm(1, *range(1, self.num_devices + 1)),) * ndim  # whatever the tiles are, they divide it
        mine, others = self.devices_indices_map(shape), other.devices_indices_map(shape)
        return all(bounds(i, shape) == bounds(others[d], shape) for d, i in mine.items())

    @property
    def num_devices(self) -> int:
        return len(self.device_list)

    @property
    def is_fully_addressable(self) -> bool:
        return all(d.is_addressable for d in self.device_list)

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


class SingleDeviceSharding(Sharding):
    """All of the array is on one device, in its memory or one that it can address."""

    __slots__ = ("device", "memory")

    def __init__(self, device: Device, *, memory_kind: str | None = None) -> None:
        self.device = device
        self.memory = memories.DEFAULT if memory_kind is None else memories.checked_kind(device, memory_kind)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SingleDeviceSharding):
            return False
        return self.device == other.device and self.memory == other.memory

    def __hash__(self) -> int:
        return hash(self.device)

    @property
    def memory_kind(self) -> str:
        return self.memory

    def with_memory_kind(self, kind: str | None) -> SingleDeviceSharding:
        return make_single_device_sharding(self.device, memory_kind=kind)

    def __repr__(self) -> str:
        return f"SingleDeviceSharding(device={self.device!r}, memory_kind={self.memory})"

    @property
    def device_list(self) -> tuple[Device, ...]:
        return (self.device,)

    def devices_indices_map(self, global_shape: Sequence[int]) -> dict[Device, Index]:
        return {self.device: (slice(None),) * len(global_shape)}


def make_single_device_sharding(device: Device, *, memory_kind: str | None = None) -> SingleDeviceSharding:
    """The sharding of arrays that are on ``device``, in its memory or one that it can address.

    Raises:
      ValueError: it can't address memory of this kind.
    """
    return SingleDeviceSharding(device, memory_kind=memory_kind)


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


class NamedSharding(Sharding):
    """Dimensions of an array are cut along axes of a mesh, as the spec says; along other axes it is the same.

    >>> NamedSharding(AbstractMesh((4, 2), ("x", "y")), PartitionSpec("x", None)).shard_shape((8, 3))
    (2, 3)
    """

    mesh: Mesh | AbstractMesh
    spec: PartitionSpec

    def __init__(self, mesh: Mesh | AbstractMesh, spec: PartitionSpec, *, memory_kind: str | None = None) -> None:
        _check_spec(mesh, spec)
        self.mesh = mesh
        self.spec = spec
        self.memory = memory_kind or memories.DEFAULT
        if self.memory != memories.DEFAULT:
            memories.checked_kind(mesh.device_list[0] if isinstance(mesh, Mesh) else None, memory_kind)
        self._hash = hash((mesh, spec))
        self._maps: dict[tuple[int, ...], dict[Device, Index]] = {}

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, NamedSharding)
            and self.mesh == other.mesh
            and self.spec == other.spec
            and self.memory == other.memory
        )

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> Any:
        return functools.partial(NamedSharding, memory_kind=self.memory), (self.mesh, self.spec)

    @property
    def memory_kind(self) -> str | None:
        return self.memory if isinstance(self.mesh, Mesh) or self.memory != memories.DEFAULT else None

    @property
    def replicated_axes(self) -> frozenset[Any]:
        """The axes that nothing is cut along."""
        named = self.spec.unreduced | self.spec.reduced
        return frozenset(self.mesh.axis_names) - named.union(*self.spec.cuts(0))

    @property
    def device_list(self) -> tuple[Device, ...]:
        if isinstance(self.mesh, AbstractMesh):
            raise ValueError(f"{self} has no devices: its mesh is an AbstractMesh")
        return self.mesh.device_list

    @property
    def is_fully_replicated(self) -> bool:
        sizes = self.mesh.shape
        return all(sizes[a] == 1 for axes in (*self.spec.cuts(0), self.spec.unreduced) for a in axes)

    def check_compatible_aval(self, aval_shape: Sequence[int]) -> None:
        """Raises ValueError if arrays of this shape have fewer dimensions than the spec says something of."""
        self.cuts(len(aval_shape))

    def cuts(self, ndim: int) -> Cuts:
        """For each dimension the axes that it is cut along."""
        if len(self.spec) > ndim:
            scalars = " For scalars the PartitionSpec should be P()" if not ndim else ""
            raise ValueError(
                f"Sharding {self} is only valid for values of rank at least {len(self.spec)}, but was applied to a "
                f"value of rank {ndim}.{scalars}"
            )
        return self.spec.cuts(ndim)

    def of_rank(self, ndim: int) -> NamedSharding:
        """Without entries at the end that say nothing of dimensions that aren't there."""
        entries = self.spec.partitions
        if len(entries) <= ndim or any(e is not None for e in entries[ndim:]):
            return self
        return self.update(spec=self.spec.update(partitions=entries[:ndim]))

    def _real_cuts(self, ndim: int) -> Cuts:
        """Without axes of one device, which cut nothing."""
        sizes, cuts = self.mesh.shape, self.cuts(ndim)
        return summands(
            [tuple([a for a in axes if sizes[a] > 1]) for axes in cuts], sums_of(cuts), cotangent_sums_of(cuts)
        )

    def is_equivalent_to(self, other: Sharding, ndim: int) -> bool:
        if self.memory_kind != other.memory_kind:
            return False
        if isinstance(other, NamedSharding) and self.mesh == other.mesh:
            return self._real_cuts(ndim) == other._real_cuts(ndim)
        if isinstance(other, NamedSharding) and (self.spec.unreduced or other.spec.unreduced):
            return False
        return super().is_equivalent_to(other, ndim)

    def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]:
        shape, sizes = tuple(global_shape), self.mesh.shape
        tiles = [math.prod(sizes[a] for a in axes) for axes in self.cuts(len(shape))]
        for axis, (n, tile) in enumerate(zip(shape, tiles, strict=True)):
            if n % tile:
                raise IndivisibleError(
                    f"Sharding {self} implies that array axis {axis} is partitioned {tile} times, but the dimension "
                    f"size is {n} (full shape: {shape}, per-dimension tiling factors: {tiles} should evenly divide the "
                    f"shape). Pad it to a multiple of {tile}, or cut it along fewer axes."
                )
        return tuple(n // tile for n, tile in zip(shape, tiles, strict=True))

    def devices_indices_map(self, global_shape: Sequence[int]) -> dict[Device, Index]:
        if self.spec.unreduced:
            raise NotImplementedError(
                f"device_indices_map doesn't work with unreduced: {self} says that devices have parts of a sum, which "
                "is still to be made. Make it with `polyax.reshard`."
            )
        return self.blocks(global_shape)

    def blocks(self, global_shape: Sequence[int]) -> dict[Device, Index]:
        """The same, also where what a device has is a part of a sum."""
        shape = tuple(global_shape)
        found = self._maps.get(shape)
        if found is None:
            found = self._maps[shape] = self._indices(shape)
        return found

    def _indices(self, shape: tuple[int, ...]) -> dict[Device, Index]:
        block, sizes = self.shard_shape(shape), self.mesh.shape
        cuts, found = self.cuts(len(shape)), {}
        for device, place in zip(self.device_list, np.ndindex(self.mesh.axis_sizes), strict=True):
            at = dict(zip(self.mesh.axis_names, place, strict=True))
            found[device] = tuple([_slice(axes, at, sizes, n) for axes, n in zip(cuts, block, strict=True)])
        return found

    def update(self, *, mesh: Any = None, spec: Any = None, memory_kind: str | None = None) -> NamedSharding:
        """The same with another mesh, spec or kind of memory."""
        mesh, spec = self.mesh if mesh is None else mesh, self.spec if spec is None else spec
        return NamedSharding(mesh, spec, memory_kind=memory_kind or self.memory)

    def on(self, devices: Sequence[Device]) -> NamedSharding:
        """The same with ``devices``, if its mesh has none.

        Raises:
          ValueError: they aren't as many as the mesh has places.
        """
        if isinstance(self.mesh, Mesh):
            return self
        if self.mesh.size != len(devices):
            raise ValueError(
                f"The size of abstract mesh {self.mesh.size} in {self} must match the length of device assignment: "
                f"{len(devices)}"
            )
        return self.update(mesh=Mesh.of_axes(self.mesh, devices))

    def with_memory_kind(self, kind: str | None) -> NamedSharding:
        return NamedSharding(self.mesh, self.spec, memory_kind=kind)

    def __repr__(self) -> str:
        kind = f", memory_kind={self.memory_kind}" if self.memory_kind else ""
        return f"NamedSharding(mesh={self.mesh!s}, spec={self.spec}{kind})"


def with_entry(sharding: NamedSharding, dim: int, entry: Any) -> NamedSharding:
    """The sharding of arrays with a further dimension, of which the spec says ``entry``; without one, it's open where
    a mesh leaves that to the partitioner."""
    entry = entry or (UNCONSTRAINED if sharding.mesh.auto_axes else None)
    entries = [*sharding.spec.partitions, *[None] * (dim - len(sharding.spec))]
    return sharding.update(spec=sharding.spec.update(partitions=(*entries[:dim], entry, *entries[dim:])))


def _slice(axes: Sequence[Any], at: Mapping[Any, int], sizes: Mapping[Any, int], block: int) -> slice:
    """The part of a dimension, cut along ``axes``, that is at one place of the mesh."""
    if not axes:
        return slice(None, None, None)
    n = 0
    for axis in axes:
        n = n * sizes[axis] + at[axis]
    return slice(n * block, (n + 1) * block, None)


def _check_spec(mesh: Any, spec: Any) -> None:
    if not isinstance(mesh, MeshAxes):
        raise TypeError(f"NamedSharding needs a Mesh or an AbstractMesh, got {mesh!r} of type {type(mesh).__name__}")
    if not isinstance(spec, PartitionSpec):
        raise TypeError(f"NamedSharding needs a PartitionSpec, got {spec!r} of type {type(spec).__name__}")
    if UNCONSTRAINED in spec.partitions and not mesh.auto_axes:
        raise ValueError(
            f"{spec} cannot contain `P.UNCONSTRAINED` when no mesh axis_types are `Auto`. Got mesh axis_types: "
            f"{mesh.axis_types}"
        )
    seen: set[Any] = set()
    for axes in spec.cuts(0):
        for axis in axes:
            if axis not in mesh.axis_names:
                raise ValueError(
                    f"Resource axis: {axis} of {spec} is not found in mesh: {mesh.axis_names}. "
                    "Name one of these, or None for what isn't cut."
                )
            if axis in seen:
                raise DuplicateSpecError(spec, axis)
            seen.add(axis)
    for role in ("unreduced", "reduced"):
        for axis in getattr(spec, role):
            _check_sum(mesh, spec, role, axis)


def _check_sum(mesh: MeshAxes, spec: PartitionSpec, role: str, axis: Any) -> None:
    if axis not in mesh.axis_names:
        raise ValueError(f"{role.capitalize()} axes {axis} is not found in {mesh.axis_names=}. Got pspec={spec}")
    if axis not in mesh.explicit_axes:
        raise ValueError(
            f"{role.capitalize()} axes can only refer to mesh axes that is of type `Explicit`. Got {role} axes: "
            f"{set(getattr(spec, role))} and mesh: {mesh}"
        )


class IndivisibleError(ValueError):
    """A dimension can't be cut into as many equal blocks as the sharding says."""


class DuplicateSpecError(ValueError):
    """A spec, which is a sharding's or what an option is called, names an axis twice."""

    def __init__(self, spec: PartitionSpec, axis: Any, what: str = "NamedSharding spec") -> None:
        super().__init__(
            f"A single {what} specification can map every mesh axis to at most one positional dimension, but {spec} "
            f"has duplicate entries for `{axis}`"
        )
        self.spec, self.axis = spec, axis
