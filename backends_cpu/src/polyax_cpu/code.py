"""Compiled code by its source: kept on disk between processes. Knows no kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from polyax.runtime.cache import DiskCache

from polyax_cpu import jit

VERSION = 1
"""Changes whenever equal keys would mean different code."""
_disk = DiskCache("cpu")


def cached(key: str, make: Callable[[], bytes]) -> bytes:
    """Object code under ``key`` (which says all that it depends on besides the processor), made if need be."""
    full = f"{VERSION} {jit.host().identity} {key}"
    found = _disk.get(full)
    if found is None:
        found = make()
        _disk.put(full, found)
    return found


def library(text: str, exports: Iterable[str], imports: Mapping[str, int], level: int = 3) -> jit.Library:
    """A module's text, compiled and loaded."""
    return jit.Library(cached(f"{level} {text}", lambda: jit.compile(text, level)), exports, imports)
