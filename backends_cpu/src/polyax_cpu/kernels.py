"""Kernels compiled to functions of the host ABI, one object file each, kept on disk by structural key."""

from __future__ import annotations

from typing import Any

from polyax_cpu import compiler, machine_code, pool
from polyax_cpu.emitter import add_kernel
from polyax_cpu.llvm import Module
from polyax_kernels.emit.schedule import choose
from polyax_kernels.host.backend import FUNCTION
from polyax_kernels.ir.kernel import Kernel
from polyax_kernels.ir.keys import structural_key


def source(kernel: Kernel) -> str:
    """The kernel's LLVM IR, as it is before optimisation."""
    module = Module(["kernel"])
    add_kernel(module, kernel, choose(kernel), "kernel")
    return module.text()


class NativeKernel:
    """A compiled kernel: ``address`` is valid as long as this object lives. It can also be called."""

    __slots__ = ("address", "library")

    def __init__(self, kernel: Kernel) -> None:
        compiled = machine_code.cached(f"kernel {structural_key(kernel)}", lambda: compiler.compile(source(kernel)))
        self.library = compiler.LoadedCode(compiled, ["kernel"], pool.symbols())
        self.address = self.library.address("kernel")

    def __call__(self, buffers: Any, scalars: Any, begin: int, end: int) -> None:
        FUNCTION(self.address)(buffers, scalars, begin, end)
