"""Compiled code by its source: kept on disk between processes. Knows no kernels."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import polyax_kernels
from polyax.runtime.contract.cache import DiskCache
from polyax_cpu import compiler

_disk = DiskCache("cpu")


@functools.cache
def _generators() -> str:
    """Which code generators these are: kernels that are equal get other code from another version of them."""
    packages = (Path(str(file)).parent for file in (__file__, polyax_kernels.__file__))
    files = {path: path.stat() for package in packages for path in package.rglob("*.py")}
    found = sorted(f"{path} {status.st_size} {status.st_mtime_ns}" for path, status in files.items())
    return hashlib.sha256("\n".join(found).encode()).hexdigest()


def kept(key: str) -> bytes | None:
    """Object code that is kept under ``key``, which says all that it depends on besides processor and versions."""
    return _disk.get(_full(key))


def keep(key: str, code: bytes) -> None:
    _disk.put(_full(key), code)


def _full(key: str) -> str:
    return f"{_generators()} {compiler.host().identity} {key}"


def cached(key: str, make: Callable[[], bytes]) -> bytes:
    """Object code under ``key``, made if need be."""
    found = kept(key)
    if found is None:
        found = make()
        keep(key, found)
    return found


def library(
    text: str, exports: Iterable[str], imports: Mapping[str, int], level: int = 2, straight: bool = True
) -> compiler.LoadedCode:
    """A module's text, compiled and loaded."""
    code = cached(f"{level} {straight} {text}", lambda: compiler.compile(text, level, straight))
    return compiler.LoadedCode(code, exports, imports)
