"""The opencl backend: what the generic GPU path needs to know of OpenCL, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from polyax.backend import host_device_count
from polyax_kernels.api.gpu import GpuBackend
from polyax_opencl.emitter import OpenCLEmitter
from polyax_opencl.probe import cl, find, on_processor
from polyax_opencl.runtime import OpenCLRuntime


class OpenCLBackend(GpuBackend):
    """Opened by the registry as platform ``opencl``; devices are numbered over all OpenCL platforms."""

    emitter = OpenCLEmitter

    def __init__(self, devices: Sequence[cl.Device] | None = None) -> None:
        """``devices``: those to use instead of all. One that comes several times gets as many queues and memories."""
        super().__init__("opencl", [OpenCLRuntime(d) for d in (all_devices() if devices is None else devices)])

    def close(self) -> None:
        if kept := find().kept:
            kept.leave()


def all_devices() -> list[cl.Device]:
    """Processors count as several virtual devices each."""
    return [d for d in find().devices for _ in range(host_device_count() if on_processor(d) else 1)]
