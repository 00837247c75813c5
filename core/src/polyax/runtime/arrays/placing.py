"""Bringing arrays to devices: from the host, from device to device, whole or in parts.

What lies on devices that can copy from each other never goes through the host.
"""

from __future__ import annotations

import copyreg
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.primitive import ambient, def_rule, note
from polyax.meshes.current import mesh_in_force, named_sharding, without_mesh
from polyax.meshes.explicit import mesh_here, seen, told
from polyax.meshes.formats import Format
from polyax.meshes.memories import DEFAULT, MemorySpace
from polyax.meshes.resharding import resharded
from polyax.meshes.sharding import (
    Index,
    NamedSharding,
    Sharding,
    SingleDeviceSharding,
    bounds,
    make_single_device_sharding,
)
from polyax.meshes.spec import UNCONSTRAINED, PartitionSpec
from polyax.ops.constraint import constrain
from polyax.ops.index import dynamic_slice
from polyax.ops.joining import concatenate
from polyax.ops.memories import device_put_p, put_at, put_into
from polyax.runtime.arrays import guards
from polyax.runtime.arrays.array import Array, check_addressable, is_concrete
from polyax.runtime.arrays.summands import among_zeros, cut_besides
from polyax.runtime.contract import edge, questions
from polyax.runtime.contract.backend import Device
from polyax.runtime.contract.queue import HostQueue
from polyax.runtime.contract.tracebacks import api_boundary
from polyax.runtime.plugins.default_device import default_device_now
from polyax.trace.context import set_trace
from polyax.trace.paths import broadcast_prefix, prefix_errors
from polyax.trace.tracer import Tracer
from polyax.trace.tree import tree_flatten, tree_unflatten
from polyax.transforms.jvp import JVPTracer
from polyax.transforms.vmap import BatchTracer

Layout = Device | Sharding
Target = Layout | MemorySpace | None
"""Where a value lies: on one device, or in parts on several."""


@api_boundary
def device_put(x: Any, device: Any = None, *, src: Any = None, donate: Any = False, may_alias: Any = None) -> Any:
    """Copies a pytree of arrays to ``device``; arrays that are there already are returned as they are.

    Args:
      x: arrays, NumPy arrays and scalars, in any pytree.
      device: a ``Device``, a sharding such as another array's, a ``Format`` with one, a ``PartitionSpec`` for the
        mesh in force, or a pytree of those that ``x`` begins with; None: the default.
      donate: whether to delete the arrays that were copied, on devices with memory of their own; or a tree of that
        which ``x`` begins with.
      may_alias: likewise, False for arrays of their own where these are there already.

    Raises:
      TypeError: a leaf is no array, or the device lacks its dtype.
      ValueError: ``device`` is none of these, or a leaf can't be divided as the sharding says.

    >>> from polyax import devices
    >>> device_put({"a": 1.5}, devices("reference")[0])
    {'a': Array(1.5, dtype=float32, weak_type=True)}
    """
    leaves, tree = tree_flatten(x)
    donated, aliased = _of_each("donate", donate, x, leaves), _of_each("may_alias", may_alias, x, leaves)
    if any(a and d for a, d in zip(aliased, donated, strict=True)):
        raise ValueError("may_alias and donate cannot be True at the same time.")
    if device is None or isinstance(device, (Device, Sharding)):
        targets: Sequence[Any] = [device] * len(leaves)
    else:
        targets = _of_each("device", device, x, leaves)
    if getattr(ambient.trace, "onlooker", None) is not None:
        _refuse_devices(targets)
    with guards.asked_for():
        put = [_put(x, _target(device, x), d) for x, device, d in zip(leaves, targets, donated, strict=True)]
        pairs = zip(put, leaves, aliased, strict=True)
        return tree_unflatten(tree, [x.copy() if x is old and a is False else x for x, old, a in pairs])


def _refuse_devices(targets: Sequence[Any]) -> None:
    """What a function on blocks makes is on each device of the mesh."""
    for device in targets:
        if isinstance(device, Device):
            raise ValueError(
                "device_put with explicit device not allowed within shard_map-decorated functions, but got device "
                f"{device}"
            )


def check_stays(name: str, x: Any, device: Any) -> None:
    """Raises a ValueError if an array that was put somewhere by name is to be made into one elsewhere; ``device_put``
    moves arrays, nothing else does."""
    if not (is_concrete(x) and x.committed and isinstance(device, (Device, Sharding))):
        return
    here, there = ([d.id for d in s.device_list] for s in (x.sharding, _as_layout(device)))
    if here != there:
        raise ValueError(
            f"Received incompatible devices for jitted computation. Got argument of {name} of type {x.aval} and with "
            f"device ids {here} and device ids {there} to put it on. Move it there first with polyax.device_put."
        )


def _as_layout(device: Layout) -> Sharding:
    return make_single_device_sharding(device) if isinstance(device, Device) else device


def _of_each(name: str, given: Any, x: Any, leaves: Sequence[Any]) -> Sequence[Any]:
    """What is given for each leaf of ``x``."""
    if given is None or type(given) is bool:
        return [given] * len(leaves)
    try:
        return broadcast_prefix(given, x, is_leaf=lambda d: d is None, name=f"device_put {name}")
    except ValueError:
        found = [str(e(f"device_put {name}")) for e in prefix_errors(given, x, lambda d: d is None)]
        raise ValueError(
            f"device_put {name} specification must be a tree prefix of the corresponding value; \n"
            f"  Mismatch details ({len(found)} found):\n  " + "\n  ".join(found)
        ) from None


def _target(device: Any, x: Any) -> Target:
    if device is None or isinstance(device, (Device, MemorySpace)):
        return device
    if isinstance(device, Format):
        return _target(device.place_of(np.shape(x)), x)
    if isinstance(device, PartitionSpec):
        device = named_sharding(device, "device_put")
    if not isinstance(device, Sharding):
        raise ValueError(
            "`polyax.device_put` only accepts `None`, `polyax.sharding.Sharding`, `polyax.Device`, `Format`, "
            "`polyax.memory.Space` or a pytree of these values. Received invalid value: "
            f"{device!r} of type {type(device)}"
        )
    if isinstance(device, NamedSharding) and UNCONSTRAINED in device.spec.partitions:
        raise ValueError(
            f"Unconstrained dims are not allowed when passed to device_put: {device}. Name axes of the mesh, or None."
        )
    return device


def _put(x: Any, target: Target, donate: bool) -> Any:
    if isinstance(x, Tracer):
        return _put_traced(x, target)
    if isinstance(target, MemorySpace):
        target = (x if is_concrete(x) else from_host(x)).sharding.with_memory_kind(kind_of(target))
    if target is None:
        return x if is_concrete(x) else from_host(x)
    put = _on_device_alone(x, target) if isinstance(target, Device) else _laid_out(x, target)
    if donate and is_concrete(x) and put is not x and not (_in_host_memory(x) or any(put is part for part in x.parts)):
        put.block_until_ready()
        x.delete()
    return put.committed_alias() if put is x else put.commit()


def _in_host_memory(x: Array) -> bool:
    """Where memory is the host's, what is donated stays: as in JAX, whose programs read it afterwards."""
    return x.sharding.device_list[0].backend.in_host_memory


@def_rule(device_put_p, "impl")
def _put_outside(x: Any, *, memory_kind: str | None, target: Any, source: Any) -> list[Any]:
    if target is not None:
        return [_put(x, target, False)]
    assert memory_kind is not None
    return [in_memory_of_kind(x if is_concrete(x) else from_host(x), memory_kind)]


def _put_traced(x: Tracer, target: Target) -> Tracer:
    if isinstance(target, MemorySpace):
        return put_into(x, kind_of(target))
    value, mapped = _traced_value(x)
    if is_concrete(value) and not (isinstance(target, NamedSharding) and (mapped or target.mesh.explicit_axes)):
        return put_at(x, target, None if mapped else value.sharding)
    if isinstance(target, Sharding) and target.memory_kind not in (None, DEFAULT):
        return put_into(_put_traced(x, target.with_memory_kind(None)), target.memory_kind)
    if isinstance(target, NamedSharding):
        mesh = mesh_here(target.mesh) if seen.any else target.mesh
        return resharded(x, target.update(mesh=mesh)) if seen.any and mesh.explicit_axes else constrain(x, target)
    where = target.device if isinstance(target, SingleDeviceSharding) else target
    if target is None or isinstance(target, Device) or where is default_device_now():
        return x  # a program runs on one device: there is nothing to move
    raise NotImplementedError(
        f"device_put to {where} inside a transformed function isn't built: a program runs on one device. "
        "Move the arguments before the call, or give jit a device."
    )


def _traced_value(x: Any) -> tuple[Any, bool]:
    """What a tracer stands for, and whether that is mapped: outside of programs, an array."""
    mapped = False
    while isinstance(x, (JVPTracer, BatchTracer)):
        mapped = mapped or isinstance(x, BatchTracer)
        x = x.value if isinstance(x, BatchTracer) else x.primal
    return x, mapped


def _laid_out(x: Any, layout: Sharding) -> Array:
    if is_concrete(x) and x.sharding == layout:
        return retold(x, told(x.aval, layout))
    if isinstance(layout, SingleDeviceSharding):
        return in_memory_of_kind(on_device(_in_own_memory(x), layout.device), layout.memory)
    x = _in_own_memory(x)
    if is_concrete(x) and x.is_sum:
        return _laid_out(_summed(x), layout)
    if isinstance(layout, NamedSharding) and layout.spec.unreduced:
        return _as_summands(x, layout)
    aval = aval_of(x)
    found = on_devices(x, aval.with_shape(_block_shape(aval, layout)), layout)
    mine = {id(part) for part in x.parts} if is_concrete(x) else ()
    aval = told(aval, layout)
    parts = [part.__copy__() if id(part) in mine else part for part in found]
    if layout.memory_kind not in (None, DEFAULT):
        parts = [_into_memory(part, layout.memory_kind) for part in parts]
    return Array.of_parts(aval, parts, layout)


def _on_device_alone(x: Any, device: Device) -> Array:
    """In the device's own memory."""
    return on_device(_in_own_memory(x), device)


def in_memory_of_kind(x: Array, kind: str) -> Array:
    """``x`` in this kind of the memory of where it is: a new array, if it was in another."""
    layout = x.sharding.with_memory_kind(kind)
    if x.sharding == layout:
        return x
    parts = [_into_memory(part, kind) for part in x.parts]
    alone = kind == DEFAULT and isinstance(layout, SingleDeviceSharding)
    return parts[0] if alone else Array.of_parts(x.aval, parts, layout)


def _into_memory(part: Array, kind: str) -> Array:
    return Array(part.aval, edge.into_memory(part.alive(), part.aval.stored, part.device, kind), part.device.free)


def _in_own_memory(x: Any) -> Any:
    return in_memory_of_kind(x, DEFAULT) if is_concrete(x) and x.sharding.memory_kind not in (None, DEFAULT) else x


def kind_of(space: MemorySpace) -> str:
    if space is MemorySpace.Any:
        raise ValueError(f"device_put can't put arrays into {space!r}: name MemorySpace.Device or MemorySpace.Host")
    return space.value


def _block_shape(aval: ShapedArray, layout: Sharding) -> tuple[int, ...]:
    try:
        return layout.shard_shape(aval.shape)
    except ValueError as e:
        raise type(e)(
            f"One of device_put args, of type {aval.str_short()}, is incompatible with its sharding annotation "
            f"{layout}: {e}"
        ) from None


def _summed(x: Array) -> Array:
    """An array of which devices have summands, with the sum made."""
    assert isinstance(x.sharding, NamedSharding)
    return resharded(x, x.sharding.update(spec=PartitionSpec(*x.sharding.spec.partitions)))


def _as_summands(x: Any, layout: NamedSharding) -> Array:
    """The first device along each axis that is summed over has the value, and others have nothing; of what is cut along
    these axes, each has its own block."""
    uncut = layout.update(spec=PartitionSpec(*layout.spec.partitions))
    if is_concrete(x) and cut_besides(x, uncut) == layout.spec.unreduced:
        return Array.of_parts(told(x.aval, layout), among_zeros(x, uncut), layout)
    whole = _laid_out(x, uncut)
    at = [layout.mesh.axis_names.index(a) for a in layout.spec.unreduced]
    places = zip(np.ndindex(layout.mesh.axis_sizes), layout.device_list, strict=True)
    first = {device for place, device in places if not any(place[n] for n in at)}
    parts = [part if part.device in first else _nothing(part) for part in whole.parts]
    return Array.of_parts(told(whole.aval, layout), parts, layout)


def _nothing(part: Array) -> Array:
    return from_host(np.zeros(part.shape, part.dtype), part.device, part.aval)


def retold(x: Array, aval: ShapedArray) -> Array:
    """The same array, of a type that tells something else of how it is cut."""
    return x if aval.told == x.aval.told else Array.of_parts(aval, x.parts, x.sharding)


# --- to one device ----------------------------------------------------------------------------------------------------


def on_device(x: Any, device: Device) -> Array:
    """``x`` on ``device``: as it is if it lies there, else moved, put together or copied from the host."""
    if not is_concrete(x):
        return from_host(x, device)
    if x._device is device:
        return x
    if x._device is not None:
        return _moved(x, device)
    if x.is_sum:
        return on_device(_summed(x), device)
    return _moved(x.parts[0], device) if x.sharding.num_devices == 1 else _whole(x, device)


def from_host(x: Any, device: Device | None = None, aval: ShapedArray | None = None) -> Array:
    """The array with the contents of a NumPy array or scalar, on ``device`` (the default one, if None).

    Raises:
      TypeError: ``x`` is no array, or the device lacks its dtype.
    """
    if hasattr(x, "__jax_array__"):
        return _put(x.__jax_array__(), device, False)
    target = device or default_device_now()
    aval = aval if aval is not None else aval_of(x)
    _check_place(aval, target)
    if guards.on and ambient.trace is None:  # else it becomes part of a program
        guards.passes("host_to_device", aval, target)
    host = np.asarray(x, aval.physical.dtype, order="C").view(aval.stored.dtype)
    made = Array(aval, edge.to_device(host, target), target.free)
    note(None, (), [made])
    return made


def _check_place(aval: ShapedArray, device: Device) -> None:
    if not device.is_addressable:
        raise ValueError(
            f"Cannot copy an array of type {aval} to the non-addressable device {device!r}: it belongs to another "
            "process. Use one of polyax.local_devices(), or a sharding over devices of all processes."
        )
    if reason := questions.why_no_dtype(aval.stored.dtype, device):
        raise TypeError(f"an array of type {aval} can't live on {device}: {reason}")
    if reason := questions.too_large(aval.stored, device):
        raise ValueError(f"an array of type {aval} can't live on {device}: {reason}")


def _moved(x: Array, device: Device) -> Array:
    if x.device is device:
        return x
    _check_place(x.aval, device)
    if guards.on:
        guards.passes("device_to_device", x.aval, x.device, device)
    return Array(x.aval, edge.copy(x.alive(), x.aval.stored, x.device, device), device.free)


def _whole(x: Array, device: Device) -> Array:
    """An array that lies on several devices, put together on ``device``, from the parts there as far as they do."""
    x.alive()
    check_addressable(x)
    nearest: dict[Any, Array] = {}
    for part, index in zip(x.parts, x.sharding.addressable_devices_indices_map(x.shape).values(), strict=True):
        place = bounds(index, x.shape)
        if part.device is device or place not in nearest:
            nearest[place] = part
    with set_trace(None), without_mesh():  # uncommitted, they would be joined on the default device
        return _joined([(place, _moved(part, device).committed_alias()) for place, part in nearest.items()], 0)


def _joined(parts: Sequence[tuple[Any, Array]], axis: int) -> Array:
    """Parts, with their bounds, that lie side by side along ``axis`` and those after it."""
    if len(parts) == 1:
        return parts[0][1]
    rows = groupby(sorted(parts, key=lambda p: p[0]), key=lambda p: p[0][axis])
    return concatenate([_joined(list(row), axis + 1) for _, row in rows], axis)


def beside(x: Array, other: Array) -> Array:
    """``x``, which nobody else has, where ``other`` was put, if it was. As in JAX, what is weakly typed stays where it
    is, and what has another shape, unless all of ``other`` is everywhere."""
    if not other.committed or x.weak_type or not (x.shape == other.shape or other.is_fully_replicated):
        return x
    if other.sharding.num_devices > 1 or isinstance(other.sharding, NamedSharding):
        return device_put(x, other.sharding)
    return on_device(x, other.device).commit()


def part_with(x: Array, index: Any) -> tuple[Array, Any]:
    """The part of an array on several devices that holds ``x[index]``, and the index in it; ``x``, if none does."""
    x.alive()
    row, *rest = index if isinstance(index, tuple) and index else (index,)
    if type(row) is int and x.ndim and -len(x) <= row < len(x):
        row %= len(x)
        indices = x.sharding.addressable_devices_indices_map(x.shape).values()
        for part, place in zip(x.parts, indices, strict=True):
            first, last, _ = place[0].indices(len(x))
            if first <= row < last and part.shape[1:] == x.shape[1:]:
                return part, (row - first, *rest)
    return x, index


def on_mesh_in_force(x: Any) -> Any:
    """What has just come from the host, outside of programs: on all devices of the mesh in force, as all else that is
    computed there."""
    mesh = mesh_in_force()
    if mesh is None or ambient.trace is not None or not is_concrete(x) or x.committed:
        return x
    return device_put(x, NamedSharding(mesh, PartitionSpec()))


def everywhere(x: Array, layout: NamedSharding) -> Array:
    """``x``, which nobody else has, on all devices of ``layout``."""
    layout = layout.update(spec=PartitionSpec())
    return Array.of_parts(told(x.aval, layout), on_devices(x, x.aval, layout), layout)


# --- to several -------------------------------------------------------------------------------------------------------


def on_devices(x: Any, block: ShapedArray, layout: Sharding) -> Sequence[Array]:
    """The parts of ``x``, of type ``block``, on the devices of ``layout`` in this process: as they are if they lie
    there. What is on one device, or on the host, is taken to be the same in all processes."""
    if type(x) is Array and x._device is None and (x._sharding is layout or x._sharding == layout):
        x.alive()
        return x.parts
    if isinstance(layout, NamedSharding) and layout.spec.unreduced:
        alike = is_concrete(x) and x.sharding.is_equivalent_to(layout, x.ndim)
        return (x if alike else _as_summands(x, layout)).parts
    places = layout.addressable_devices_indices_map(np.shape(x)).items()
    if not is_concrete(x):
        return _blocks(np.asarray(x, block.dtype), block, places)
    if x.shape != block.shape and _at_hand(x):
        return _spread(x, block, layout, places)
    if x._device is None:
        if _same_places(x.sharding, layout, x.shape):
            x.alive()
            return x.parts
        if not (x.is_fully_addressable or x.is_fully_replicated):
            return _relay[-1](x, layout).parts
        if not x.is_fully_replicated:
            x = _whole(x, next(iter(layout.addressable_devices_indices_map(x.shape))))
    here = {part.device: part for part in x.parts}
    with set_trace(None), without_mesh():
        return [_moved(_cut(here.get(d, x.parts[0]), block, i), d) for d, i in places]


def _spread(x: Array, block: ShapedArray, layout: Sharding, places: Iterable[tuple[Device, Index]]) -> list[Array]:
    """Blocks of an array that the host has at hand as well."""
    if guards.on:
        guards.passes("device_to_device", x.aval, x.sharding, layout)
    with guards.embedded():
        return _blocks(x.host_value(), block, places)


def _blocks(host: np.ndarray, block: ShapedArray, places: Iterable[tuple[Device, Index]]) -> list[Array]:
    """Blocks of what is on the host. Devices with the same one get it once, if all of them are in the host's memory."""
    made: dict[Any, Array] = {}
    parts: list[Array] = []
    for device, index in places:
        place = device.backend, bounds(index, host.shape[: len(index)])
        same = made.get(place) if isinstance(device.queue, HostQueue) else None
        part = made[place] = from_host(host[index], device, block) if same is None else _replica(same, device)
        parts.append(part)
    return parts


def _replica(x: Array, device: Device) -> Array:
    """Another part with what has just come from the host."""
    if guards.on:
        guards.passes("host_to_device", x.aval, device)
    return Array(x.aval, edge.copy(x.alive(), x.aval.stored, x.device, device), device.free)


_relay: list[Callable[[Array, Sharding], Array]] = []
"""What brings arrays that span processes to lie otherwise: a program, of which nothing is known here."""


def install_relay(relay: Callable[[Array, Sharding], Array]) -> None:
    _relay[:] = [relay]


def _same_places(one: Sharding, other: Sharding, shape: Sequence[int]) -> bool:
    """Whether all devices have the same of an array of this shape, in the same order."""
    if one.device_list != other.device_list:
        return False
    pairs = zip(one.devices_indices_map(shape).values(), other.devices_indices_map(shape).values(), strict=True)
    return all(bounds(a, shape) == bounds(b, shape) for a, b in pairs)


def _at_hand(x: Array) -> bool:
    """Whether the host sees the contents where they are, without waiting."""
    return x._device is not None and isinstance(x.device.queue, HostQueue) and x.is_ready()


def _cut(x: Array, block: ShapedArray, index: Index) -> Array:
    """A block of an array that may still be in the making: nobody waits for it here."""
    if x.aval.shape == block.shape:
        return x
    return dynamic_slice(x, [np.int32(s.start or 0) for s in index], block.shape)


# --- pickling ---------------------------------------------------------------------------------------------------------


def _reduce(x: Array) -> Any:
    """The contents, which go to the default device of whoever loads them."""
    return _restore, (x.block_until_ready().host_value(), x.shape, x.dtype, x.weak_type)


def _restore(value: np.ndarray, shape: tuple[int, ...], dtype: Any, weak_type: bool) -> Array:
    return from_host(value, aval=ShapedArray(shape, dtype, weak_type))


copyreg.pickle(Array, _reduce)
