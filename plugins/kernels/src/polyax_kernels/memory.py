"""Memory of host devices: aligned, and recycled, since fresh pages cost more than filling them."""

from __future__ import annotations

from typing import Any

import numpy as np
from polyax.runtime.queue import HostBuffer, Task

from polyax_kernels.plan import ALIGNMENT

SMALL = 4096
RETAINED = 1 << 30
"""Bytes that are kept for reuse at most."""


class Memory(HostBuffer):
    """A buffer of ``HostBuffer`` whose memory goes back to its pool when nobody holds it any more.

    ``data`` is raw bytes, at least ``nbytes`` of them.
    """

    __slots__ = ("exported", "nbytes", "pointer", "pool", "shared")

    def __init__(self, data: np.ndarray, pointer: int, nbytes: int, pool: Pool) -> None:
        self.data = data
        self.task: Task | None = None
        self.pointer = pointer
        self.nbytes = nbytes
        self.pool = pool
        self.exported = False
        """A NumPy array shares the memory: it is neither recycled nor written to."""
        self.shared = False
        """It holds several results, so it must not be written to."""

    def array(self, shape: tuple[int, ...], dtype: Any, offset: int = 0) -> np.ndarray:
        """The contents, seen as an array."""
        return np.ndarray(shape, dtype, self.data, offset)

    def __del__(self) -> None:
        self.pool.release(self)


class Pool:
    """Free memory by size class."""

    def __init__(self) -> None:
        self._free: dict[int, list[tuple[np.ndarray, int]]] = {}
        self.retained = 0
        self.live = 0
        self.peak = 0
        self.allocations = 0

    def empty(self, nbytes: int) -> Memory:
        """Memory with any contents."""
        size = size_class(nbytes)
        self.live += size
        if self.live > self.peak:
            self.peak = self.live
        try:
            data, pointer = self._free[size].pop()
            self.retained -= size
        except (KeyError, IndexError):
            data, pointer = self._new(size)
        return Memory(data, pointer, nbytes, self)

    def _new(self, size: int) -> tuple[np.ndarray, int]:
        self.allocations += 1
        raw = np.empty(size + ALIGNMENT, np.uint8)
        skip = -raw.ctypes.data % ALIGNMENT
        return raw[skip : skip + size], raw.ctypes.data + skip

    def release(self, memory: Memory) -> None:
        size = memory.data.size
        self.live -= size
        if not memory.exported and self.retained + size <= RETAINED:
            self.retained += size
            self._free.setdefault(size, []).append((memory.data, memory.pointer))

    def stats(self) -> dict[str, int]:
        """Under JAX's names; approximate while several threads allocate."""
        return {
            "bytes_in_use": self.live,
            "peak_bytes_in_use": self.peak,
            "num_allocs": self.allocations,
            "bytes_reserved": self.retained,
        }


def size_class(nbytes: int) -> int:
    """``nbytes`` rounded up: to the alignment if small, else to four steps per power of two."""
    if nbytes <= SMALL:
        return max(ALIGNMENT, (nbytes + ALIGNMENT - 1) & -ALIGNMENT)
    step = 1 << ((nbytes - 1).bit_length() - 3)
    return (nbytes + step - 1) & -step
