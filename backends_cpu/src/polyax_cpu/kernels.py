"""Kernels compiled to functions of the host ABI, one object file each, kept on disk by structural key."""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from polyax_cpu import compiler, machine_code, pool
from polyax_cpu.emit.emitter import add_kernel
from polyax_cpu.llvm import Module
from polyax_kernels.emit.schedule import choose
from polyax_kernels.host.backend import FUNCTION
from polyax_kernels.ir.kernel import Kernel, Schedule
from polyax_kernels.ir.keys import structural_key


def source(kernel: Kernel) -> str:
    """The kernel's LLVM IR, as it is before optimisation."""
    return module_of(kernel).text()


def module_of(kernel: Kernel, schedule: Schedule | None = None) -> Module:
    """The module that holds the kernel alone."""
    module = Module(["kernel"])
    add_kernel(module, kernel, schedule or choose(kernel), "kernel")
    return module


class Cuts(NamedTuple):
    """How the rows of a kernel may be cut into pieces: all that launches ask of its schedule."""

    several: bool
    """Whether they may be at all."""
    strips: bool
    """Whether rows lie beside each other in memory, and are read in strips."""
    grain: int
    """Pieces are multiples of so many."""


def _cuts(kernel: Kernel, schedule: Schedule) -> Cuts:
    return Cuts(schedule.parallel > 0, schedule.lanes > 1 and len(kernel.grid) == 1, schedule.grain)


class NativeKernel:
    """A compiled kernel: ``address`` is valid as long as this object lives. It can also be called.

    What is not on disk is compiled by whoever first asks for the address, on any thread. On disk its ``cuts`` are
    beside its code: to choose a schedule takes longer than to read both.
    """

    __slots__ = ("_address", "code", "cuts", "key")

    def __init__(self, kernel: Kernel) -> None:
        self.key = f"kernel {structural_key(kernel)}"
        self._address = None
        found = _kept(self.key)
        if found is None:
            schedule = choose(kernel)
            self.cuts = _cuts(kernel, schedule)
            self.code = _of_module(module_of(kernel, schedule))
        else:
            self.cuts, code = found
            self.code = _Code(lambda: code, {self.key})
            self.find()

    @property
    def made(self) -> bool:
        return self._address is not None

    @property
    def address(self) -> int:
        return self.find() if self._address is None else self._address

    def find(self) -> int:
        """The address; waits for the thread that makes the code, if there is one."""
        self._address = self.code.address(self.key, self.cuts)
        return self._address

    def __call__(self, buffers: Any, scalars: Any, begin: int, end: int) -> None:
        FUNCTION(self.address)(buffers, scalars, begin, end)


def _kept(key: str) -> tuple[Cuts, bytes] | None:
    """What is on disk of a kernel; None if that is nothing that ``_keep`` wrote."""
    head, _, code = (machine_code.kept(key) or b"").partition(b"\n")
    numbers = head.split()
    if len(numbers) != len(Cuts._fields) or not all(map(bytes.isdigit, numbers)):
        return None
    several, strips, grain = map(int, numbers)
    return Cuts(several > 0, strips > 0, grain), code


def _keep(key: str, cuts: Cuts, code: bytes) -> None:
    machine_code.keep(key, b"%d %d %d\n" % cuts + code)


class _Code:
    """Code that several kernels may share: made and loaded once."""

    def __init__(self, make: Callable[[], bytes], keys: Iterable[str] = ()) -> None:
        self._make = make
        self._keys = set(keys)
        self._lock = threading.Lock()
        self._loaded: tuple[bytes, compiler.LoadedCode] | None = None

    def address(self, key: str, cuts: Cuts) -> int:
        """The address of the function, kept on disk under ``key``; waits for the thread that makes it."""
        with self._lock:
            if self._loaded is None:
                code = self._make()
                self._loaded = code, compiler.LoadedCode(code, ["kernel"], pool.symbols_for(code))
            code, loaded = self._loaded
            if key not in self._keys:
                self._keys.add(key)
                _keep(key, cuts, code)
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
                    workers.submit(kernel.find)
                seen.add(kernel.code)
        yield lambda make: asked.submit(make).result
