"""The backend: kernels become C functions. Everything else (lowering, fusion, plans, memory, queues) is inherited.

A backend for another kind of device derives from ``KernelBackend`` and also says how memory is made and kernels start.
"""

from __future__ import annotations

from typing import Any

from polyax_hello_c.compiler import load
from polyax_kernels.api.emitters import Kernel, c_source, choose
from polyax_kernels.api.host import FUNCTION, Function, HostKernelBackend
from polyax_kernels.api.lowerings import NATIVE, Limits


class HelloCBackend(HostKernelBackend):
    """Devices of the host, programmed in C99.

    A kernel is ``void kernel(void **buffers, const int64_t *scalars, int64_t begin, int64_t end)``: the loops of a
    range of the first grid axis. It is called with disjoint ranges from several threads.
    """

    limits = Limits(dtypes=NATIVE)

    def compile_function(self, kernel: Kernel) -> Function:
        """Called once for each distinct kernel."""
        return FUNCTION(("kernel", load(self.source(kernel))))

    def source(self, kernel: Kernel) -> str:
        """The program text, which reports show as well."""
        return c_source(kernel, choose(kernel, self.limits), "kernel")

    def why_no_dtype(self, dtype: Any) -> str | None:
        return self.limits.why_not(dtype)
