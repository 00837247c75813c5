"""The devices of backends that compute on the host."""

from __future__ import annotations

import os
import re

from polyax.ir.config import config
from polyax.runtime.contract.backend import Backend, Device
from polyax.runtime.contract.queue import HostQueue

_XLA_COUNT = re.compile(r"--xla_force_host_platform_device_count=(\d+)")


def host_devices(backend: Backend, kind: str) -> tuple[Device, ...]:
    """The virtual devices of a backend that computes on the host, with one queue each."""
    return tuple(
        Device(backend, n, kind=kind, queue=HostQueue(f"{backend.name}:{n}")) for n in range(host_device_count())
    )


def host_device_count() -> int:
    """As many as ``config.num_cpu_devices`` says or, where nobody has set it, XLA's flag that JAX's programs use."""
    if config.num_cpu_devices >= 0:
        return config.num_cpu_devices
    asked = _XLA_COUNT.search(os.environ.get("XLA_FLAGS", ""))
    return int(asked[1]) if asked else 1
