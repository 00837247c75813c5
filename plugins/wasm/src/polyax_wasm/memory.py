"""Arrays in the linear memory: blocks of it, which are free again when nobody refers to them any more.

NumPy sees these blocks where they are, so that library calls and transfers need no addresses.
"""

from __future__ import annotations

import collections
import ctypes
import weakref

import numpy as np

from polyax_kernels.api.host import Pool
from polyax_wasm.emitter import FRAME
from polyax_wasm.machine import WasmMachine

GRAIN = 64
Extent = tuple[int, int]
"""Begin and end, in bytes."""


class LinearPool(Pool):
    """The blocks of one machine's memory."""

    def __init__(self, name: str, machine: WasmMachine) -> None:
        super().__init__(name)
        self.machine = machine
        self.end = FRAME
        """Where the memory ends."""
        self.free: list[Extent] = []
        """What nobody has, in order; no two of them touch."""
        self.returned: collections.deque[Extent] = collections.deque()
        """What was let go since: by whichever thread, at any time."""

    def fresh(self, nbytes: int) -> np.ndarray:
        with self.machine.lock:
            self._collect()
            begin, end = extent = self._taken((nbytes + GRAIN - 1) & -GRAIN)
        block = (ctypes.c_ubyte * (end - begin)).from_address(self.machine.base + begin)
        weakref.finalize(block, self.returned.append, extent).atexit = False
        return np.frombuffer(memoryview(block), np.uint8, nbytes)

    def _taken(self, nbytes: int) -> Extent:
        """The first extent that is large enough, or the end of the memory, which grows by what is missing there."""
        fits = (n for n, (begin, end) in enumerate(self.free) if end - begin >= nbytes)
        n = next(fits, None)
        begin, end = self._at_the_end(nbytes) if n is None else self.free.pop(n)
        if end - begin > nbytes:
            self.free.insert(len(self.free) if n is None else n, (begin + nbytes, end))
        return begin, begin + nbytes

    def _at_the_end(self, nbytes: int) -> Extent:
        begin = self.free[-1][0] if self.free and self.free[-1][1] == self.end else self.end
        self.end += self.machine.grow(begin + nbytes - self.end)
        if self.free and self.free[-1][0] == begin:
            self.free.pop()
        return begin, self.end

    def _collect(self) -> None:
        """Puts what was returned back in order, and joins what touches."""
        if not self.returned:
            return
        extents = self.free
        while self.returned:
            extents.append(self.returned.popleft())
        self.free = []
        for begin, end in sorted(extents):
            if self.free and self.free[-1][1] == begin:
                self.free[-1] = self.free[-1][0], end
            else:
                self.free.append((begin, end))
