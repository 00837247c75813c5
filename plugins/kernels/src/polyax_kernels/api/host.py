"""What backends on the host's memory are made of."""

from __future__ import annotations

from polyax_kernels import settings
from polyax_kernels.backend import KernelBackend
from polyax_kernels.host.backend import FUNCTION, Function, HostExecutable, HostKernelBackend
from polyax_kernels.host.threads import num_threads, parallel_for
from polyax_kernels.run.memory import Memory, Pool, Shelf

__all__ = [
    "FUNCTION", "Function", "HostExecutable", "HostKernelBackend", "KernelBackend", "Memory", "Pool", "Shelf",
    "num_threads", "parallel_for", "settings",
]  # fmt: skip
