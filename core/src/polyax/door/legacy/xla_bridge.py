"""``jax._src.xla_bridge``: the platforms in use."""

from __future__ import annotations

from typing import Any

from polyax.extend.backend import get_backend as get_backend
from polyax.runtime.arrays.devices import default_backend as default_backend
from polyax.runtime.arrays.devices import device_count as device_count
from polyax.runtime.arrays.devices import devices as devices
from polyax.runtime.arrays.devices import local_devices as local_devices
from polyax.runtime.arrays.devices import process_count as process_count
from polyax.runtime.arrays.devices import process_index as process_index
from polyax.runtime.plugins.registry import registry


def __getattr__(name: str) -> Any:
    if name == "_backends":  # those in use, by name: libraries ask whether devices have been made
        return {backend.name: backend for backend in registry.opened()}
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
