"""The kinds of memory that devices address. Arrays are in that of their device, unless they were put elsewhere."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

DEFAULT = "device"
KINDS = (DEFAULT, "pinned_host", "unpinned_host")


class MemorySpace(enum.Enum):
    """Where values are put by ``polyax.device_put(x, polyax.memory.Space.Host)``, whatever device they are on."""

    Device = "device"
    Host = "pinned_host"
    Any = "any"

    def __repr__(self) -> str:
        return f"MemorySpace.{self.name}"


class DeviceMemory:
    """One of the memories that a device can address; ``id`` is its number among those of all devices."""

    def __init__(self, device: Any, kind: str, id: int) -> None:
        self.device = device
        self.kind = kind
        self.id = id

    @property
    def platform(self) -> str:
        return self.device.platform

    @property
    def process_index(self) -> int:
        return self.device.process_index

    def addressable_by_devices(self) -> list[Any]:
        return [self.device]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceMemory) and (self.device, self.kind) == (other.device, other.kind)

    def __hash__(self) -> int:
        return hash((self.device, self.kind))

    def __repr__(self) -> str:
        owner = f"{self.platform}_" if self.kind == DEFAULT else ""
        return f"{owner}{self.kind}_{self.id}".upper()


def memories(device: Any) -> list[DeviceMemory]:
    """Those of a device, its own first."""
    kinds = kinds_of(device)
    return [DeviceMemory(device, kind, device.id * len(kinds) + n) for n, kind in enumerate(kinds)]


def kinds_of(device: Any) -> Sequence[str]:
    """What the backend says, else by where arrays are: devices that compute on the host's memory have all of it."""
    backend = getattr(device, "backend", None)
    if backend is None:
        return (DEFAULT,)
    return backend.memory_kinds or (KINDS if backend.in_host_memory else (DEFAULT,))


def checked_kind(device: Any, kind: str | None) -> str:
    """``kind``, or the default one.

    Raises:
      ValueError: the device has no such memory; None stands for no device in particular.
    """
    if kind is None or kind == DEFAULT:
        return DEFAULT
    if device is None and kind not in KINDS:
        raise ValueError(f"Got invalid memory kind: {kind}. Valid memory kinds are: {', '.join(KINDS)}")
    if device is not None and kind not in kinds_of(device):
        name = getattr(device, "platform", device)
        raise ValueError(
            f"Could not find memory addressable by device {name}. Device {name} can address the following memory "
            f"kinds: {', '.join(kinds_of(device))}. Got memory kind: {kind}"
        )
    return kind
