"""The opencl backend: what the generic GPU path needs to know of OpenCL, and nothing else."""

from __future__ import annotations

from polyax.ir.config import config
from polyax_kernels.gpu.backend import GpuBackend
from polyax_opencl.emitter import OpenCLEmitter
from polyax_opencl.probe import cl, find
from polyax_opencl.runtime import OpenCLRuntime


class OpenCLBackend(GpuBackend):
    """Opened by the registry as platform ``opencl``; devices are numbered over all OpenCL platforms."""

    emitter = OpenCLEmitter

    def __init__(self) -> None:
        super().__init__("opencl", [OpenCLRuntime(d) for d in find().devices for _ in range(copies(d))])


def copies(device: cl.Device) -> int:
    """A processor counts as ``num_cpu_devices`` devices, each with a queue and memory of its own."""
    return config.num_cpu_devices if device.type & cl.device_type.CPU else 1
