"""The backend: what the generic path for devices needs to know of this one."""

from __future__ import annotations

from polyax.backend import host_device_count
from polyax_kernels.api.gpu import GpuBackend

from polyax_newcomer.emitter import NewcomerEmitter
from polyax_newcomer.runtime import NewcomerRuntime


class NewcomerBackend(GpuBackend):
    """The devices of this machine, each with a runtime of its own."""

    emitter = NewcomerEmitter

    def __init__(self) -> None:
        numbers = range(host_device_count())
        super().__init__("newcomer", [NewcomerRuntime(n) for n in numbers])
