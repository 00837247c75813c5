"""The opencl backend: what the generic GPU path needs to know of OpenCL, and nothing else."""

from __future__ import annotations

from polyax_kernels.gpu.backend import GpuBackend
from polyax_opencl.emitter import OpenCLEmitter
from polyax_opencl.probe import find
from polyax_opencl.runtime import OpenCLRuntime


class OpenCLBackend(GpuBackend):
    """Opened by the registry as platform ``opencl``; devices are numbered over all OpenCL platforms."""

    emitter = OpenCLEmitter

    def __init__(self) -> None:
        super().__init__("opencl", [OpenCLRuntime(device) for device in find().devices])
