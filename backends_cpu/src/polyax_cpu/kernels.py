"""Kernels compiled to functions of the host ABI, one object file each, kept on disk by structural key."""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from polyax_cpu import compiler, machine_code, pool
from polyax_cpu.emit.emitter import add_kernel
from polyax_cpu.llvm import Module
from polyax_kernels.emit.schedule import choose
from polyax_kernels.host.backend import FUNCTION
from polyax_kernels.ir.kernel import Kernel
from polyax_kernels.ir.keys import structural_key


def source(kernel: Kernel) -> str:
    """The kernel's LLVM IR, as it is before optimisation."""
    return module_of(kernel).text()


def module_of(kernel: Kernel) -> Module:
    """The module that holds the kernel alone."""
    module = Module(["kernel"])
    add_kernel(module, kernel, choose(kernel), "kernel")
    return module


class NativeKernel:
    """A compiled kernel: ``address`` is valid as long as this object lives. It can also be called.

    What is not on disk is compiled by whoever first asks for the address, on any thread.
    """

    __slots__ = ("_address", "code", "key")

    def __init__(self, kernel: Kernel) -> None:
        self.key = f"kernel {structural_key(kernel)}"
        found = machine_code.kept(self.key)
        self.code = _of_module(module_of(kernel)) if found is None else _Code(lambda: found, {self.key})
        self._address = None if found is None else self.code.address(self.key)

    @property
    def made(self) -> bool:
        return self._address is not None

    @property
    def address(self) -> int:
        if self._address is None:
            self._address = self.code.address(self.key)
        return self._address

    def __call__(self, buffers: Any, scalars: Any, begin: int, end: int) -> None:
        FUNCTION(self.address)(buffers, scalars, begin, end)


class _Code:
    """Code that several kernels may share: made and loaded once."""

    def __init__(self, make: Callable[[], bytes], keys: Iterable[str] = ()) -> None:
        self._make = make
        self._keys = set(keys)
        self._lock = threading.Lock()
        self._loaded: tuple[bytes, compiler.LoadedCode] | None = None

    def address(self, key: str) -> int:
        """The address of the function, whose code is kept on disk under ``key``; waits for the thread that makes it."""
        with self._lock:
            if self._loaded is None:
                code = self._make()
                self._loaded = code, compiler.LoadedCode(code, ["kernel"], pool.symbols_for(code))
            code, loaded = self._loaded
            if key not in self._keys:
                self._keys.add(key)
                machine_code.keep(key, code)
            return loaded.address("kernel")


_known: dict[str, _Code] = {}
"""By the digest of the text: kernels for arrays of other shapes are other kernels, and often have the same text."""


def _of_module(module: Module) -> _Code:
    text, level = module.text(), module.level
    digest = hashlib.sha256(text.encode()).hexdigest()
    return _known.setdefault(digest, _Code(lambda: compiler.compile(text, level)))


@contextlib.contextmanager
def compiling(kernels: Iterable[NativeKernel], busy: bool = False) -> Generator[machine_code.Started]:
    """Kernels are compiled on all threads while the calling one goes on; the first is left to it, unless it is
    ``busy`` with more. What that one asks for, which takes long, doesn't wait for them."""
    if pool.thread_count() == 1:
        yield lambda make: make
        return
    seen: set[_Code] = set()
    threads = lambda: ThreadPoolExecutor(pool.thread_count(), "polyax-compile")
    with threads() as workers, threads() as asked:
        for kernel in kernels:
            if not kernel.made and kernel.code not in seen:
                if seen or busy:
                    workers.submit(kernel.code.address, kernel.key)
                seen.add(kernel.code)
        yield lambda make: asked.submit(make).result
