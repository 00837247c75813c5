"""``jax._src.xla_bridge``: the platforms in use."""

from __future__ import annotations

from typing import Any

from polyax.runtime.arrays.devices import default_backend as default_backend
from polyax.runtime.arrays.devices import device_count as device_count
from polyax.runtime.arrays.devices import devices as devices
from polyax.runtime.arrays.devices import local_devices as local_devices
from polyax.runtime.arrays.devices import process_count as process_count
from polyax.runtime.arrays.devices import process_index as process_index

_backends: dict[str, Any] = {}
"""JAX's open backends by name; those of polyax are in its registry of plugins."""
