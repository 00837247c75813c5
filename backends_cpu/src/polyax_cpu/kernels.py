"""Kernels compiled to functions of the host ABI, one object file each, kept on disk by structural key."""

from __future__ import annotations

import contextlib
import functools
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

ENTRY = "kernel"
"""What a kernel's function is called in its text."""


def source(kernel: Kernel) -> str:
    """The kernel's LLVM IR, as it is before optimisation."""
    return module_of(kernel).text()


def module_of(kernel: Kernel, schedule: Schedule | None = None) -> Module:
    """The module that holds the kernel alone."""
    module = Module([ENTRY])
    add_kernel(module, kernel, schedule or choose(kernel), ENTRY)
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
            self.cuts, self.code = found

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


def _kept(key: str) -> tuple[Cuts, _Code] | None:
    """What is on disk of a kernel; None if that is nothing that ``_keep`` wrote."""
    head, _, made = (machine_code.kept(key) or b"").partition(b"\n")
    *numbers, name = head.split() or [b""]
    if len(numbers) != len(Cuts._fields) or not all(map(bytes.isdigit, numbers)) or not name.isascii():
        return None
    several, strips, grain = map(int, numbers)
    return Cuts(several > 0, strips > 0, grain), _Code(name.decode(), lambda: made, {key})


def _keep(key: str, cuts: Cuts, code: _Code) -> None:
    machine_code.keep(key, b"%d %d %d %b\n" % (*cuts, code.name.encode()) + code.made())


class _Code:
    """Code that several kernels may share, one function: made and loaded once. ``keys``: what it is on disk under."""

    def __init__(self, name: str, make: Callable[[], bytes], keys: Iterable[str] = ()) -> None:
        self.name = name
        self.made = functools.cache(make)
        self._keys = set(keys)
        self._lock = threading.Lock()
        self._loaded: compiler.LoadedCode | None = None

    @property
    def waits(self) -> bool:
        """Whether it is on disk, and not loaded."""
        return bool(self._keys) and self._loaded is None

    def address(self, key: str, cuts: Cuts) -> int:
        """The address of the function, kept on disk under ``key``; waits for the thread that makes it."""
        with self._lock:
            if self._loaded is None:
                self._loaded = _linked([self])
            if key not in self._keys:
                self._keys.add(key)
                _keep(key, cuts, self)
            return self._loaded.address(self.name)

    def adopt(self, loaded: compiler.LoadedCode) -> None:
        """It was loaded with others."""
        with self._lock:
            self._loaded = self._loaded or loaded


def _linked(codes: Iterable[_Code]) -> compiler.LoadedCode:
    made = {code.name: code.made() for code in codes}
    return compiler.LoadedCode(made.values(), made, pool.symbols_for(b"".join(made.values())))


def _link(kernels: Iterable[NativeKernel]) -> None:
    """What waits for the linker is loaded together, which takes a third of the time that it takes one by one."""
    waiting = [kernel.code for kernel in kernels if kernel.code.waits]
    if waiting:
        loaded = _linked(waiting)
        for code in waiting:
            code.adopt(loaded)


_known: dict[str, _Code] = {}
"""By the name: kernels for arrays of other shapes are other kernels, and often have the same text."""


def named(module: Module) -> tuple[str, str]:
    """The function's name and the text to compile: functions are named by their texts, so that any objects may be
    loaded together."""
    text = module.text()
    name = f"{ENTRY}_{hashlib.sha256(text.encode()).hexdigest()}"
    return name, text.replace(f"@{ENTRY}(", f"@{name}(", 1)


def _of_module(module: Module) -> _Code:
    name, text = named(module)
    return _known.setdefault(name, _Code(name, lambda: machine_code.made(text, module.level)))


@contextlib.contextmanager
def compiling(kernels: Iterable[NativeKernel], busy: bool = False) -> Generator[machine_code.Started]:
    """Kernels are compiled on all threads while the calling one goes on; the first is left to it, unless it is
    ``busy`` with more. What that one asks for, which takes long, doesn't wait for them."""
    if pool.thread_count() == 1:
        _link(kernels)
        yield lambda make: make
        return
    seen, made = set[_Code](), list[NativeKernel]()
    threads = lambda: ThreadPoolExecutor(pool.thread_count(), "polyax-compile")
    with threads() as workers, threads() as asked:
        for kernel in kernels:
            if kernel.code.waits:
                made.append(kernel)
            elif not kernel.made and kernel.code not in seen:
                if seen or busy:
                    workers.submit(kernel.find)
                seen.add(kernel.code)
        _link(made)
        yield lambda make: asked.submit(make).result
