"""Kernels compiled to functions of the host ABI, one object file each, kept on disk by structural key."""

from __future__ import annotations

from typing import Any

from polyax_cpu import code, jit, pool
from polyax_cpu.emitter import add_kernel
from polyax_cpu.llvm import Module
from polyax_kernels.host import FUNCTION
from polyax_kernels.kernel import Kernel
from polyax_kernels.keys import structural_key
from polyax_kernels.schedule import choose


def source(kernel: Kernel) -> str:
    """The kernel's LLVM IR, as it is before optimisation."""
    module = Module(["kernel"])
    add_kernel(module, kernel, choose(kernel), "kernel")
    return module.text()


class NativeKernel:
    """A compiled kernel: ``address`` is valid as long as this object lives. It can also be called."""

    __slots__ = ("address", "library")

    def __init__(self, kernel: Kernel) -> None:
        compiled = code.cached(f"kernel {structural_key(kernel)}", lambda: jit.compile(source(kernel)))
        self.library = jit.Library(compiled, ["kernel"], pool.symbols())
        self.address = self.library.address("kernel")

    def __call__(self, buffers: Any, scalars: Any, begin: int, end: int) -> None:
        FUNCTION(self.address)(buffers, scalars, begin, end)
