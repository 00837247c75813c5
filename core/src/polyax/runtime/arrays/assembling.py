"""Arrays on several devices, made of what callers have: a function, arrays on each device, a process's part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.ir.aval import ShapedArray
from polyax.ir.errors import UnexpectedTracerError
from polyax.meshes.current import named_sharding
from polyax.meshes.explicit import told
from polyax.meshes.formats import Auto, Format
from polyax.meshes.sharding import Index, Sharding, SingleDeviceSharding, bounds
from polyax.meshes.spec import PartitionSpec
from polyax.runtime.arrays.array import Array, is_concrete
from polyax.runtime.arrays.local import of_local_part, whole_shape
from polyax.runtime.arrays.placing import on_device
from polyax.runtime.contract.backend import Device
from polyax.runtime.contract.tracebacks import api_boundary
from polyax.trace.tracer import Tracer
from polyax.trace.tree import tree_flatten, tree_unflatten


@api_boundary
def make_array_from_callback(
    shape: Sequence[int], sharding: Sharding | Format, data_callback: Callable[[Index], Any], dtype: Any = None
) -> Array:
    """An array of ``shape`` whose part at ``index`` is ``data_callback(index)``, asked once for each part that this
    process has.

    Args:
      sharding: which part each device has; or a ``Format`` that says so.
      dtype: that of the parts; needed where this process has none.

    Raises:
      TypeError: ``sharding`` is none.
      UnexpectedTracerError: a part is traced.
      ValueError: a part hasn't the shape that the sharding says, or not ``dtype``, or ``shape`` doesn't divide.

    >>> import polyax
    >>> where = polyax.sharding.SingleDeviceSharding(polyax.devices()[0])
    >>> make_array_from_callback((3,), where, lambda index: np.arange(3)[index])
    Array([0, 1, 2], dtype=int32)
    """
    if isinstance(sharding, Format):
        sharding = _where(sharding, shape)
    if not isinstance(sharding, Sharding):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"sharding should be an instance of `polyax.sharding`. Got {sharding} of type {type(sharding)}")
    shape = tuple(int(n) for n in shape)
    made: dict[Any, Any] = {}
    parts: list[Array] = []
    for device, index in sharding.addressable_devices_indices_map(shape).items():
        place = bounds(index, shape)
        if place not in made:
            made[place] = data_callback(index)
            if isinstance(made[place], Tracer):
                raise UnexpectedTracerError("polyax.make_array_from_callback cannot be called within a traced context.")
        parts.append(on_device(made[place], device))
    if dtype is not None and parts and dtypes.canonicalize(dtype) != parts[0].dtype:
        raise ValueError(
            "If `dtype` is provided to `polyax.make_array_from_callback`, it must match the dtype of the addressable "
            f"shards. Got dtype={dtypes.full_name(dtypes.canonicalize(dtype))} and shard dtype={parts[0].dtype}."
        )
    return _assembled(shape, sharding, parts, dtype)


def _where(given: Format, shape: Sequence[int]) -> Any:
    if isinstance(given.layout, Auto):
        raise TypeError(
            "`Layout.AUTO` cannot be used in place of a device-local layout when calling "
            f"`polyax.make_array_from_callback`. Got {given}"
        )
    return given.place_of(shape)


@api_boundary
def make_array_from_single_device_arrays(
    shape: Sequence[int], sharding: Sharding, arrays: Sequence[Any], *, dtype: Any = None
) -> Array:
    """The array whose parts are ``arrays``: one on each device of this process that ``sharding`` names, in any order.

    No part is copied; they must not be deleted while the array is in use.

    Raises:
      TypeError: ``arrays`` is no list or tuple, or an element isn't an array of one device.
      ValueError: there are more or fewer arrays than devices, or one hasn't the shape that the sharding says, or is
        traced.
    """
    _check_parts(arrays)
    shape = tuple(int(n) for n in shape)
    devices = list(sharding.addressable_devices_indices_map(shape))
    return _assembled(shape, sharding, _on_each(devices, arrays, sharding), dtype)


def _check_parts(arrays: Any) -> None:
    """Each is to be an array of one device."""
    if not isinstance(arrays, (list, tuple)):
        raise TypeError(
            "polyax.make_array_from_single_device_arrays `arrays` argument must be a list or tuple, but got "
            f"{type(arrays)}."
        )
    if any(isinstance(x, Tracer) for x in arrays):
        raise ValueError(
            "polyax.make_array_from_single_device_arrays requires a list of concrete arrays as input, but got types "
            f"{set(map(type, arrays))}"
        )
    for x in arrays:
        if not is_concrete(x):
            raise TypeError(f"Unsupported type for elements in `arrays`: {type(x)}; each must be on one device")
        if x._device is None:
            raise ValueError(
                "When making an array from single-device arrays the input arrays must have one shard each. An argument "
                f"array had {len(x.parts)} shard(s)."
            )


def _on_each(devices: Sequence[Device], arrays: Sequence[Array], sharding: Sharding) -> list[Array]:
    """The array of each device."""
    if len(arrays) != len(devices):
        raise ValueError(
            f"Expected {len(devices)} per-device arrays (this is how many devices are addressable by the sharding), "
            f"but got {len(arrays)}"
        )
    found = {x.device: x for x in arrays}
    if len(found) < len(arrays):
        raise ValueError(
            "When making an array from single-device arrays, the input arrays must be from distinct devices, but got "
            f"device IDs {[x.device.id for x in arrays]}"
        )
    if missing := {d.id for d in devices if d not in found}:
        others = {d.id for d in found if d not in devices}
        raise ValueError(
            "Addressable devices and per-device arrays devices do not match. Sharding contains devices "
            f"{missing} that are not present in per-device arrays. Per-device arrays contain devices {others} that are "
            f"not present in the sharding {sharding}."
        )
    return [found[d] for d in devices]


def _assembled(shape: tuple[int, ...], sharding: Sharding, parts: Sequence[Array], dtype: Any) -> Array:
    if not parts and dtype is None:
        raise ValueError("this process has no part of the array, so dtype has to be given")
    if parts and dtype is not None and parts[0].dtype != dtypes.as_dtype(dtype):
        raise ValueError(
            "If `dtype` is provided to `polyax.make_array_from_single_device_arrays`, it must match the dtype of the "
            f"addressable shards. Got dtype={dtypes.as_dtype(dtype)} and shard dtype={parts[0].dtype}"
        )
    block = sharding.shard_shape(shape)
    like = parts[0].aval if parts else ShapedArray((), dtypes.canonicalize(dtype))
    whole = like.with_shape(shape).update(weak_type=False)
    for x in parts:
        if x.shape != block:
            raise ValueError(
                f"Expected shard shape {block} doesn't match the single device array shape {x.shape}. "
                f"Shape of Array is {told(whole, sharding)} with sharding {sharding}"
            )
        if x.dtype != whole.dtype:
            raise ValueError(
                f"Input buffers to `Array` must have matching dtypes. Got {x.dtype}, expected {whole.dtype} for "
                f"buffer: {x}"
            )
    return Array.of_parts(told(whole, sharding), list(parts), sharding)


@api_boundary
def make_array_from_process_local_data(
    sharding: Any, local_data: Any, global_shape: Sequence[int] | None = None
) -> Any:
    """Arrays on the devices of all processes, of which each process brings its part.

    Args:
      sharding: one, or a pytree of them with the structure of ``local_data``; a ``PartitionSpec`` is one of the mesh in
        force, a device that of a single part.
      local_data: NumPy arrays, in any pytree; in a single process the whole.
      global_shape: the shape of the whole; by default what the parts of all processes add up to.

    Raises:
      ValueError: ``global_shape`` doesn't fit the data.
    """
    leaves, tree = tree_flatten(local_data)
    one = isinstance(sharding, (Sharding, PartitionSpec, Device))
    layouts = [_layout(s) for s in ([sharding] * len(leaves) if one else tree.flatten_up_to(sharding))]
    return tree_unflatten(
        tree, [_from_local(where, np.asarray(x), global_shape) for where, x in zip(layouts, leaves, strict=True)]
    )


def _layout(where: Any) -> Sharding:
    if isinstance(where, Device):
        return SingleDeviceSharding(where)
    return named_sharding(where, "make_array_from_process_local_data") if isinstance(where, PartitionSpec) else where


def _from_local(sharding: Sharding, data: np.ndarray, global_shape: Any) -> Array:
    if sharding.is_fully_addressable:
        if global_shape is not None and tuple(global_shape) != data.shape:
            raise ValueError(
                "When calling `make_array_from_process_local_data` on a single process, global_shape should be None or "
                f"equal to local_data.shape. Got global_shape={tuple(global_shape)} and local_data.shape={data.shape}."
            )
        return make_array_from_callback(data.shape, sharding, lambda index: data[index])
    shape = tuple(global_shape) if global_shape is not None else whole_shape(sharding, data.shape)
    if data.shape == shape:  # every process has all of it
        return make_array_from_callback(shape, sharding, lambda index: data[index])
    return of_local_part(data, shape, sharding)
