"""What backends for devices with memory and a queue of their own are made of."""

from __future__ import annotations

from polyax.runtime.contract.probes import Stamp
from polyax_kernels import settings
from polyax_kernels.gpu import offline, top_k
from polyax_kernels.gpu.backend import GpuBackend
from polyax_kernels.gpu.collectives import lowerings
from polyax_kernels.gpu.collectives.communication import CommunicationLibrary, Communicator
from polyax_kernels.gpu.cuda_like import arrays, pivots
from polyax_kernels.gpu.cuda_like.convolutions import (
    Convolution,
    channels_last,
    describe,
    is_packed,
    packed,
    why_not_forward,
)
from polyax_kernels.gpu.cuda_like.single_source import ATOMIC_SIZES, SingleSourceEmitter
from polyax_kernels.gpu.emitter import NAME, GpuEmitter, parameters
from polyax_kernels.gpu.host import through_host
from polyax_kernels.gpu.runtime import DeviceError, DeviceOutOfMemory, EventMark, KernelRejected, Mark, Runtime
from polyax_kernels.gpu.schedule import GpuSchedule

__all__ = [
    "ATOMIC_SIZES", "NAME", "CommunicationLibrary", "Communicator", "Convolution", "DeviceError", "DeviceOutOfMemory",
    "EventMark", "GpuBackend", "GpuEmitter", "GpuSchedule", "KernelRejected", "Mark", "Runtime", "SingleSourceEmitter",
    "Stamp", "arrays", "channels_last", "describe", "is_packed", "lowerings", "offline", "packed", "parameters",
    "pivots", "settings", "through_host", "top_k", "why_not_forward",
]  # fmt: skip
