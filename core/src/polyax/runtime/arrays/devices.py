"""Devices and what is on them: listing devices, reading arrays and waiting for them."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.runtime.arrays import guards
from polyax.runtime.arrays.array import Array, all_arrays, is_concrete
from polyax.runtime.contract import effects, processes, questions
from polyax.runtime.contract.backend import Backend, Device
from polyax.runtime.contract.tracebacks import api_boundary
from polyax.runtime.plugins import platforms, topology
from polyax.runtime.plugins.default_device import default_device_now
from polyax.runtime.plugins.registry import registry
from polyax.trace.tracer import Tracer
from polyax.trace.tree import tree_flatten, tree_unflatten


def _backend(backend: str | Backend | None) -> Backend:
    if backend is None:
        return default_device_now().backend
    return platforms.backend(backend) if isinstance(backend, str) else backend


@api_boundary
def devices(backend: str | None = None) -> list[Device]:
    """All devices of a platform, by default of the one that computations run on; those of all processes.

    Args:
      backend: a platform's name, such as ``"cpu"``; it is opened if it isn't yet.

    Raises:
      RuntimeError: the platform is unknown or can't be used; the text says why, and what to do.

    >>> devices("reference")[0].platform
    'reference'
    """
    return list(topology.devices_of(_backend(backend)))


@api_boundary
def local_devices(
    process_index: int | None = None, backend: str | None = None, host_id: int | None = None
) -> list[Device]:
    """The devices of this process, or of another one.

    Args:
      process_index: the process's number; None: this one's. ``host_id`` is its former name.
      backend: a platform's name.

    Raises:
      ValueError: there is no such process.

    >>> local_devices(backend='reference') == devices('reference')
    True
    """
    asked = process_index if process_index is not None else host_id
    index = processes.here().rank if asked is None else asked
    if not 0 <= index < process_count(backend):
        raise ValueError(f"Unknown process_index {index}: process indices are 0 to {process_count(backend) - 1}")
    return [d for d in devices(backend) if d.process_index == index]


def device_count(backend: str | None = None) -> int:
    return len(devices(backend))


def local_device_count(backend: str | None = None) -> int:
    return len(local_devices(backend=backend))


def process_index(backend: str | None = None) -> int:
    """The number of this process; 0 before ``polyax.distributed.initialize``."""
    return processes.here().rank


def process_count(backend: str | None = None) -> int:
    """How many processes compute together; 1 before ``polyax.distributed.initialize``."""
    return processes.here().size


def process_indices(backend: str | None = None) -> list[int]:
    return list(range(process_count(backend)))


def host_id(backend: str | None = None) -> int:
    """The former name of ``process_index``."""
    return process_index(backend)


def host_ids(backend: str | None = None) -> list[int]:
    """The former name of ``process_indices``."""
    return process_indices(backend)


def host_count(backend: str | None = None) -> int:
    """The former name of ``process_count``."""
    return process_count(backend)


def default_backend() -> str:
    """The name of the platform that computations run on by default.

    >>> from polyax import default_device
    >>> with default_device(devices("reference")[0]):
    ...     default_backend()
    'reference'
    """
    return default_device_now().platform


# --- arrays on them


@api_boundary
def device_get(x: Any) -> Any:
    """A pytree of arrays as NumPy arrays; keys, traced values and other leaves are returned as they are. Waits for the
    arrays.

    >>> from polyax import device_put
    >>> device_get(device_put([1, 2.5], devices("reference")[0]))
    [array(1, dtype=int32), array(2.5, dtype=float32)]
    """
    with guards.asked_for():
        if is_concrete(x):
            return _on_host(x)
        leaves, tree = tree_flatten(x)
        copy_to_host_async(x)
        return tree_unflatten(tree, map(_on_host, leaves))


def _on_host(x: Any) -> Any:
    """NumPy has no type for keys: they stay what they are."""
    if isinstance(x, Tracer) or not hasattr(x, "__array__") or (hasattr(x, "dtype") and dtypes.is_extended(x.dtype)):
        return x
    return np.asarray(x)


def block_until_ready(x: Any) -> Any:
    """Waits for every array in the pytree ``x``, and returns ``x``.

    Raises:
      The error of a computation that was to make one of them.

    >>> import polyax
    >>> import polyax.numpy as jnp
    >>> polyax.block_until_ready({'a': jnp.arange(3) + 1})
    {'a': Array([1, 2, 3], dtype=int32)}
    """
    if type(x) is Array and x.buffer is not None:  # on one device
        x._wait(x.buffer)
        return x
    seat, at_hand = None, False
    for leaf in tree_flatten(x)[0]:
        if type(leaf) is Array:
            if leaf._seat is not seat:  # rarely: most trees lie at one place
                seat = leaf._seat
                at_hand = seat is not None and seat.device.backend.in_host_memory
            if at_hand and getattr(leaf.buffer, "task", leaf) is None:
                continue  # it is filled; devices with memory of their own fill it without tasks
        if hasattr(leaf, "block_until_ready"):
            leaf.block_until_ready()
    return x


def copy_to_host_async(x: Any) -> Any:
    """Starts copies to the host of all arrays in ``x``, for ``device_get`` to find done; returns ``x``."""
    for leaf in tree_flatten(x)[0]:
        if not isinstance(leaf, Tracer) and hasattr(leaf, "copy_to_host_async"):
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
            questions.synchronize(device)


def live_arrays(platform: str | None = None) -> list[Array]:
    """All arrays in reach that aren't deleted, on the devices of ``platform`` (the default one, if None).

    >>> from polyax import device_put
    >>> x = device_put(1.0, devices('reference')[0])
    >>> any(y is x for y in live_arrays('reference'))
    True
    """
    wanted = _backend(platform)
    arrays = all_arrays()
    inner = {id(part) for x in arrays for part in x.parts if part is not x}
    living = [x for x in arrays if id(x) not in inner and not x.is_deleted()]
    return [x for x in living if x.sharding.device_list[0].backend is wanted]
