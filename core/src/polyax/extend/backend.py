"""``polyax.extend.backend``: the platforms that are in use."""

from __future__ import annotations

from typing import Any

from polyax import late as _late
from polyax.api.jit import clear_caches
from polyax.runtime.arrays import devices as _places
from polyax.runtime.contract.backend import Backend, Device
from polyax.runtime.plugins.registry import registry

__all__ = ["backends", "clear_backends", "clear_in_memory_compilation_cache", "get_backend", "get_default_device"]


def get_backend(platform: str | Backend | None = None) -> Backend:
    """The backend of a platform, by default that of the default device.

    Raises:
      RuntimeError: it can't be used; the text says why.

    >>> get_backend("reference").platform
    'reference'
    """
    if isinstance(platform, Backend):
        return platform
    return get_default_device().client if platform is None else _places.devices(platform)[0].client


def backends() -> dict[str, Backend]:
    """Those in use, by name."""
    get_backend()
    return {b.name: b for b in registry.opened()}


def get_default_device() -> Device:
    """The device that computes what isn't put anywhere."""
    return _places.default_device_now()


def clear_in_memory_compilation_cache() -> None:
    """Forgets every compiled program."""
    clear_caches()


def clear_backends(_crash: bool = False) -> None:
    """Forgets every compiled program. Devices, and arrays on them, stay; so ``_crash`` has nothing to choose."""
    clear_caches()


def __getattr__(name: str) -> Any:
    return _late.load(__name__, {}, name)
