"""Compiled code by its source: kept on disk between processes. Knows no kernels."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import polyax_kernels
from polyax.ir.forks import UncutLock
from polyax.runtime.contract.cache import DiskCache
from polyax_cpu import compiler, processors, shipped

_disk = DiskCache("cpu")

Started = Callable[[Callable[[], bytes]], Callable[[], bytes]]
"""Begins to make code, on another thread if there is one, and gives the function that waits for it."""


@dataclass
class _Generators:
    """Which code generators these are: kernels that are equal get other code from another version of them."""

    digest: str = ""
    lock: UncutLock = field(default_factory=UncutLock)

    def __str__(self) -> str:
        """Looked at once, by whoever asks first: that is a thread of the platform and the first program together."""
        if not self.digest:
            with self.lock:
                self.digest = self.digest or self._look()
        return self.digest

    def _look(self) -> str:
        folders = (os.path.dirname(str(file)) for file in (__file__, polyax_kernels.__file__))
        found = sorted(line for folder in folders for line in _sources(folder))
        return hashlib.sha256("\n".join(found).encode()).hexdigest()


_generators = _Generators()


def _sources(folder: str) -> Iterator[str]:
    """The files of a package, with what changes when they do."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                status = entry.stat()
                yield f"{entry.path} {status.st_size} {status.st_mtime_ns}"
            elif entry.name != "__pycache__" and entry.is_dir():
                yield from _sources(entry.path)


def kept(key: str) -> bytes | None:
    """Object code that is kept under ``key``, which says all that it depends on besides processor and versions."""
    return _disk.get(_full(key))


def keep(key: str, code: bytes) -> None:
    _disk.put(_full(key), code)


def _full(key: str) -> str:
    return f"{_generators} {processors.host().identity} {key}"


def cached(key: str, make: Callable[[], bytes]) -> bytes:
    """Object code under ``key``, made if need be."""
    found = kept(key)
    if found is None:
        found = make()
        keep(key, found)
    return found


def made(text: str, level: int = 2, straight: bool = True) -> bytes:
    """A module's text as object code: what came with the package, else compiled."""
    return shipped.code(text, level, straight) or compiler.compile(text, level, straight)


def object_code(text: str, level: int = 2, straight: bool = True, key: str = "") -> bytes:
    """A module's text, compiled; kept under ``key`` if there is one, which tells it from all others."""
    return cached(key or f"{level} {straight} {text}", lambda: made(text, level, straight))


def library(
    text: str, exports: Iterable[str], imports: Mapping[str, int], level: int = 2, straight: bool = True
) -> compiler.LoadedCode:
    """A module's text, compiled and loaded."""
    return compiler.LoadedCode([object_code(text, level, straight)], exports, imports)


def written(
    key: str, write: Callable[[], str], exports: Iterable[str], imports: Mapping[str, int], level: int = 1
) -> compiler.LoadedCode:
    """The module whose text ``write`` writes, compiled and loaded; ``key`` says all that the text depends on besides
    processor and versions, so that none is written of what is on disk."""
    return compiler.LoadedCode([cached(key, lambda: made(write(), level))], exports, imports)


class Part:
    """A module that the backend itself is made of: compiled and loaded once, when it is first needed, without
    optimisation, which takes a tenth of the time.

    ``source`` writes its text, ``imports`` gives the addresses of what it calls of other parts.
    """

    def __init__(
        self,
        name: str,
        source: Callable[[], str],
        exports: Sequence[str],
        imports: Callable[[], Mapping[str, int]] = dict,
    ) -> None:
        self.name = name
        self.exports = exports
        self.source = source
        self._imports = imports
        self._lock = UncutLock()
        self._thread: threading.Thread | None = None
        self._code: compiler.LoadedCode | None = None
        self._symbols: dict[str, int] | None = None

    @property
    def ready(self) -> bool:
        return self._symbols is not None

    def symbols(self) -> dict[str, int]:
        """The addresses of what it exports, by name."""
        if self._symbols is None:
            with self._lock:
                if self._symbols is None:
                    self._symbols = self._load()
        return self._symbols

    def _load(self) -> dict[str, int]:
        imports = self._imports()
        code = cached(self.name, lambda: made(self.source(), level=0))
        self._code = compiler.LoadedCode([code], self.exports, imports)
        return {name: self._code.address(name) for name in self.exports}

    def prepare(self) -> None:
        """Makes it on a thread of its own, which a child process starts anew."""
        if not self.ready and (self._thread is None or not self._thread.is_alive()):
            self._thread = threading.Thread(target=self.symbols, name=f"polyax-cpu {self.name}", daemon=True)
            self._thread.start()
