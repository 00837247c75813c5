"""The backend: kernels become functions. Everything else (lowering, fusion, plans, memory, queues) is inherited."""

from __future__ import annotations

from typing import Any

from polyax_kernels.api.emitters import Kernel
from polyax_kernels.api.host import Function, HostKernelBackend
from polyax_kernels.api.lowerings import REALS, Limits

from polyax_newcomer.emitter import source
from polyax_newcomer.language import load


class NewcomerBackend(HostKernelBackend):
    """Virtual devices of the host, programmed in text."""

    limits = Limits(dtypes=REALS)
    """What kernels may compute and how large they may be; users are told which dtypes there are. A language without
    integers of 64 bits adds ``index_dtype=np.dtype("int32")``, and leaves them and float64 out of ``dtypes``."""

    def compile_function(self, kernel: Kernel) -> Function:
        """``function(buffers, scalars, begin, end)``; called once for each distinct kernel."""
        return load(self.source(kernel))

    def source(self, kernel: Kernel) -> str:
        """The program text, which reports show as well."""
        return source(kernel, self.limits)

    def why_no_dtype(self, dtype: Any) -> str | None:
        return self.limits.why_not(dtype)
