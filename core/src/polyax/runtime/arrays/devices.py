"""Devices and what is on them: listing devices, and moving arrays from place to place."""

from __future__ import annotations

import copyreg
from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.ir.aval import ShapedArray, aval_of
from polyax.runtime.arrays.array import Array, all_arrays
from polyax.runtime.contract import effects
from polyax.runtime.contract.backend import Backend, Device
from polyax.runtime.contract.tracebacks import api_boundary
from polyax.runtime.plugins import platforms
from polyax.runtime.plugins.default_device import default_device, default_device_now
from polyax.runtime.plugins.registry import registry
from polyax.trace.tracer import Tracer
from polyax.trace.tree import tree_flatten, tree_unflatten

__all__ = [
    "block_until_ready",
    "copy_to_host_async",
    "default_backend",
    "default_device",
    "default_device_now",
    "device_count",
    "device_get",
    "device_put",
    "devices",
    "effects_barrier",
    "from_host",
    "live_arrays",
    "local_device_count",
    "local_devices",
    "process_count",
    "process_index",
    "process_indices",
]


def _backend(backend: str | Backend | None) -> Backend:
    if backend is None:
        return default_device_now().backend
    return platforms.backend(backend) if isinstance(backend, str) else backend


@api_boundary
def devices(backend: str | None = None) -> list[Device]:
    """All devices of a platform, by default of the one that computations run on.

    Args:
      backend: a platform's name, such as ``"cpu"``; it is opened if it isn't yet.

    Raises:
      RuntimeError: the platform is unknown or can't be used; the text says why, and what to do.

    >>> devices("reference")[0].platform
    'reference'
    """
    return list(_backend(backend).devices())


@api_boundary
def local_devices(
    process_index: int | None = None, backend: str | None = None, host_id: int | None = None
) -> list[Device]:
    """The devices of this process; all devices, as long as there is one process."""
    index = process_index if process_index is not None else host_id
    if index not in (None, 0):
        raise ValueError(f"Unknown process_index {index}: there is one process, with index 0")
    return devices(backend)


def device_count(backend: str | None = None) -> int:
    return len(devices(backend))


def local_device_count(backend: str | None = None) -> int:
    return len(devices(backend))


def process_index(backend: str | None = None) -> int:
    return 0


def process_count(backend: str | None = None) -> int:
    return 1


def process_indices(backend: str | None = None) -> list[int]:
    return list(range(process_count(backend)))


def default_backend() -> str:
    """The name of the platform that computations run on by default.

    >>> with default_device(devices("reference")[0]):
    ...     default_backend()
    'reference'
    """
    return default_device_now().platform


# --- moving arrays


@api_boundary
def device_put(
    x: Any, device: Any = None, *, src: Any = None, donate: bool = False, may_alias: bool | None = None
) -> Any:
    """Copies a pytree of arrays to ``device``; arrays that are there already are returned as they are.

    Args:
      x: arrays, NumPy arrays and scalars, in any pytree.
      device: a ``Device``, a sharding of one device, or a pytree of those that ``x`` begins with; None: the default.
      donate: delete the arrays that were copied.

    Raises:
      TypeError: a leaf is no array, or the device lacks its dtype.

    >>> device_put({"a": 1.5}, devices("reference")[0])
    {'a': Array(1.5, dtype=float32, weak_type=True)}
    """
    if isinstance(device, (list, tuple, dict)):
        spec_leaves, spec = tree_flatten(device)
        parts = [device_put(part, d, donate=donate) for part, d in zip(spec.flatten_up_to(x), spec_leaves)]
        return tree_unflatten(spec, parts)
    target = _single(device)
    leaves, tree = tree_flatten(x)
    return tree_unflatten(tree, [_put(leaf, target, donate) for leaf in leaves])


def _single(device: Any) -> Device | None:
    """The one device that ``device`` (a device, or a sharding) stands for."""
    if device is None or isinstance(device, Device):
        return device
    places = getattr(device, "device_set", None)
    if places is None:
        raise ValueError(f"device_put needs a Device or a sharding, got {device!r} of type {type(device)}")
    if len(places) != 1:
        raise NotImplementedError(f"device_put to several devices at once isn't built; got {device!r}")
    return next(iter(places))


def _put(x: Any, device: Device | None, donate: bool) -> Any:
    if isinstance(x, Tracer):
        return _put_traced(x, device)
    if type(x) is not Array:
        x = from_host(x, device)
    if device is None:
        return x
    return (x if x.device is device else _move(x, device, donate)).commit()


def _put_traced(x: Tracer, device: Device | None) -> Tracer:
    if device is None or device is default_device_now():
        return x  # a traced program runs on one device: there is nothing to move
    raise NotImplementedError(
        f"device_put to {device} inside a transformed function isn't built: a program runs on one device. "
        "Move the arguments before the call, or give jit a device."
    )


def _move(x: Array, device: Device, donate: bool) -> Array:
    if reason := device.backend.why_no_dtype(x.aval.dtype):
        raise TypeError(f"an array of type {x.aval} can't live on {device}: {reason}")
    moved = Array(x.aval, device.backend.copy(x.buffer, x.aval, x.device, device), device)
    if donate:
        moved.block_until_ready()
        x.delete()
    return moved


def from_host(x: Any, device: Device | None = None, aval: ShapedArray | None = None) -> Array:
    """The array with the contents of a NumPy array or scalar, on ``device`` (the default one, if None).

    Raises:
      TypeError: ``x`` is no array, or the device lacks its dtype.
    """
    if hasattr(x, "__jax_array__"):
        return _put(x.__jax_array__(), device, False)
    target = device or default_device_now()
    aval = aval if aval is not None else _host_aval(x)
    if reason := target.backend.why_no_dtype(aval.dtype):
        raise TypeError(f"an array of type {aval} can't live on {target}: {reason}")
    physical = aval.dtype.physical if dtypes.is_extended(aval.dtype) else aval.dtype
    host = np.asarray(x, physical, order="C")
    return Array(aval, target.backend.to_device(host, target), target)


def reduce_array(x: Array) -> Any:
    """For pickling: the contents, which go to the default device of whoever loads them."""
    return _restore, (x.block_until_ready().host_value(), x.shape, x.dtype, x.weak_type)


def _restore(value: np.ndarray, shape: tuple[int, ...], dtype: Any, weak_type: bool) -> Array:
    return from_host(value, aval=ShapedArray(shape, dtype, weak_type))


copyreg.pickle(Array, reduce_array)  # pyright: ignore[reportArgumentType]


def _host_aval(x: Any) -> ShapedArray:
    try:
        return aval_of(x)
    except TypeError:
        if hasattr(x, "dtype"):  # an array, of a dtype that isn't supported: the text says so
            raise
        raise TypeError(f"Argument '{x}' of type {type(x)} is not a valid JAX type") from None


@api_boundary
def device_get(x: Any) -> Any:
    """A pytree of arrays as NumPy arrays; other leaves are returned as they are. Waits for the arrays.

    >>> device_get(device_put([1, 2.5], devices("reference")[0]))
    [array(1, dtype=int32), array(2.5, dtype=float32)]
    """
    if type(x) is Array:
        return np.asarray(x)
    leaves, tree = tree_flatten(x)
    copy_to_host_async(x)
    return tree_unflatten(tree, [np.asarray(leaf) if hasattr(leaf, "__array__") else leaf for leaf in leaves])


def block_until_ready(x: Any) -> Any:
    """Waits for every array in the pytree ``x``, and returns ``x``.

    Raises:
      The error of a computation that was to make one of them.
    """
    if type(x) is Array:
        x.buffer.wait()
        return x
    for leaf in tree_flatten(x)[0]:
        wait = getattr(leaf, "block_until_ready", None)
        if wait is not None:
            wait()
    return x


def copy_to_host_async(x: Any) -> Any:
    """Starts copies to the host of all arrays in ``x``, for ``device_get`` to find done; returns ``x``."""
    for leaf in tree_flatten(x)[0]:
        if type(leaf) is Array:
            leaf.copy_to_host_async()
    return x


@api_boundary
def effects_barrier() -> None:
    """Waits for everything that was started on any device of any platform in use, its prints and callbacks included.

    Raises:
      The error of a callback in a program that nobody asked for a result since.
    """
    effects.barrier()
    for backend in registry.opened():
        for device in backend.devices():
            backend.synchronize(device)


def live_arrays(platform: str | None = None) -> list[Array]:
    """All arrays in reach that aren't deleted, on the devices of ``platform`` (the default one, if None)."""
    wanted = _backend(platform)
    return [x for x in all_arrays() if x.device.backend is wanted and not x.is_deleted()]
