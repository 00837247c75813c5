"""The backend: kernels become modules of WebAssembly, arrays lie in the linear memory of one machine.

Everything else (lowering, fusion, plans, queues, library calls) is inherited: NumPy sees the linear memory as well.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polyax.backend import Buffer, Device, ShapedArray
from polyax_kernels.api.emitters import Kernel
from polyax_kernels.api.host import Function, HostKernelBackend, Memory
from polyax_kernels.api.lowerings import REALS, Limits
from polyax_wasm.emitter import source
from polyax_wasm.machine import WasmMachine
from polyax_wasm.memory import LinearPool


class WasmBackend(HostKernelBackend):
    """Virtual devices that share one machine, which runs one kernel at a time."""

    limits = Limits(dtypes=REALS, index_dtype=np.dtype("int32"))
    in_host_memory = False

    def __init__(self, name: str) -> None:
        super().__init__(name, kind="wasm32")
        self.machine = WasmMachine()
        self.pool = LinearPool(name, self.machine)

    def adopt(self, host: np.ndarray, device: Device) -> Memory | None:
        """The host's arrays lie elsewhere."""
        return None

    def to_host(self, buffer: Buffer, aval: ShapedArray) -> np.ndarray:
        assert isinstance(buffer, Memory)
        buffer.wait()
        host = buffer.array(aval.shape, aval.dtype).copy()
        host.flags.writeable = False
        return host

    def compile_function(self, kernel: Kernel) -> Function:
        """Called once for each distinct kernel."""
        return self.machine.function(self.source(kernel))

    def source(self, kernel: Kernel) -> str:
        """The program text, which reports show as well."""
        return source(kernel, self.limits)

    def why_no_dtype(self, dtype: Any) -> str | None:
        return self.limits.why_not(dtype)
