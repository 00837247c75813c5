"""The cpu backend: virtual devices of the host, kernels through LLVM, products through BLAS."""

from __future__ import annotations

from dataclasses import replace

from polyax.runtime.contract.backend import CompileOptions, Executable
from polyax_cpu import kernels
from polyax_cpu.executable import CpuExecutable
from polyax_cpu.kernels import NativeKernel
from polyax_kernels.host.backend import HostKernelBackend
from polyax_kernels.ir.kernel import Kernel
from polyax_kernels.ir.limits import REALS, Limits
from polyax_kernels.plan.journal import Journal
from polyax_kernels.plan.plan import Plan


class CpuBackend(HostKernelBackend):
    """Opened by the registry as platform ``cpu``."""

    def __init__(self) -> None:
        super().__init__("cpu")
        self.limits = replace(Limits(), dtypes=REALS, operands=64, kernel_nodes=250)

    def compile_function(self, kernel: Kernel) -> NativeKernel:
        return NativeKernel(kernel)

    def source(self, kernel: Kernel) -> str:
        return kernels.source(kernel)

    def compile_plan(self, plan: Plan, options: CompileOptions, journal: Journal) -> Executable:
        return CpuExecutable(self, plan, options, journal)
