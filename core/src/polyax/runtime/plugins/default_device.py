"""The device that computations run on if nothing else says: the thread's, the process's, or the default platform's."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from typing import Any

from polyax.ir.config import config
from polyax.runtime.contract.backend import Device
from polyax.runtime.contract.queue import HostQueue
from polyax.runtime.plugins import platforms

_resolved: dict[Any, Device] = {}  # value of the setting -> device


def default_device_now() -> Device:
    """The device that computations without arrays on a device run on: the thread's (``default_device(...)``), that of
    ``POLYAX_DEVICE``, or the first one of the default platform."""
    choice = config.get("device")
    return _resolved.get(choice) or _resolve(choice)


def _resolve(choice: Any) -> Device:
    if choice is None:
        _resolved[choice] = platforms.default_backend().devices()[0]
    else:
        _resolved[choice] = choice if isinstance(choice, Device) else _named(choice)
    return _resolved[choice]


def _named(text: str) -> Device:
    """The device of a text such as ``cpu``, ``cpu:1`` or ``1``."""
    platform, _, number = text.rpartition(":") if ":" in text or text.isdigit() else (text, "", "0")
    if not number.isdigit():
        raise ValueError(f"{text!r} names no device; write it as platform:number, such as cpu:1")
    found = (platforms.backend(platform) if platform else platforms.default_backend()).devices()
    if int(number) >= len(found):
        hint = "; POLYAX_NUM_CPU_DEVICES makes more" if isinstance(found[0].queue, HostQueue) else ""
        raise RuntimeError(f"Unknown device {text!r}: there are {', '.join(map(str, found))}{hint}")
    return found[int(number)]


@contextlib.contextmanager
def default_device(new_val: Device | str | None) -> Generator[None]:
    """Makes a device the default one inside the block, in this thread.

    Args:
      new_val: a device, a name such as ``"cpu"`` or ``"cpu:1"``, or None for the first one of the default platform.

    Raises:
      ValueError: it is neither.
      RuntimeError: there is no such device.

    >>> import polyax
    >>> with default_device('reference'):
    ...     x = polyax.numpy.arange(3) + 1
    >>> x.device.platform
    'reference'
    """
    with config.override(device=_checked(new_val)):
        yield


def _checked(device: Any) -> Device | None:
    if isinstance(device, str):
        return _named(device)
    if device is not None and not isinstance(device, Device):
        raise ValueError(
            "jax.default_device must be passed either a Device object (e.g. `jax.devices('cpu')[0]`) or a platform "
            f"name string like 'cpu', got: {device!r}"
        )
    return device


def _forget(flag: str) -> None:
    if flag in ("platforms", "device", "plugins", "disable_plugins"):
        _resolved.clear()


config.on_update(_forget)
