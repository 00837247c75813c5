"""Memory of host devices: aligned, and recycled, since fresh pages cost more than filling them.

Taking and giving back is on the path of every launch: it does nothing that can be done elsewhere.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
from collections.abc import Iterator
from enum import IntEnum
from typing import Any

import numpy as np

from polyax.ir.config import config
from polyax.runtime.arrays.array import Array, all_arrays
from polyax.runtime.contract.queue import HostBuffer
from polyax_kernels.plan.plan import ALIGNMENT
from polyax_kernels.run.shortage import OutOfMemory, allocated, shortage

SMALL = 4096
RETAINED = 1 << 28
"""Free bytes that a shelf keeps at most."""
GUARD, UNTOUCHED = 256, 0xA5
"""Bytes on either side of a block that is guarded, and what is in them."""
MOST = 1024
"""Blocks that it keeps at most."""


class Seen(IntEnum):
    """Who else sees a block: nobody, other results, or NumPy arrays. Shared ones are not written to,
    exported ones not even recycled."""

    FREE, SHARED, EXPORTED = range(3)


FREE, SHARED, EXPORTED = Seen


class Memory(HostBuffer):
    """A buffer whose memory goes back to its shelf when nobody holds it any more. ``data`` is raw bytes."""

    __slots__ = ("pointer", "seen", "shelf")

    def __init__(self, data: np.ndarray, pointer: int, shelf: Shelf) -> None:
        self.data = data
        self.task = None
        self.pointer = pointer
        self.shelf = shelf
        self.seen: Seen = FREE

    @property
    def nbytes(self) -> int:
        return self.shelf.size

    def array(self, shape: tuple[int, ...], dtype: Any, offset: int = 0) -> np.ndarray:
        """The contents, seen as an array."""
        return np.ndarray(shape, dtype, self.data, offset)

    def share(self) -> None:
        self.seen = max(self.seen, SHARED)

    def __del__(self) -> None:
        shelf = self.shelf
        if self.seen != EXPORTED and len(shelf.free) < shelf.keep:
            shelf.free.append((self.data, self.pointer))
        else:
            shelf.made -= 1


class Promised(Memory):
    """Memory of a result whose program is still to run, behind others that give back what they no longer need.

    It takes a block when its program first asks where it is. A host that runs ahead of its device would else fill
    fresh pages with each result of a long row of short-lived ones.
    """

    __slots__ = ()

    def __init__(self, shelf: Shelf) -> None:
        self.task = None
        self.shelf = shelf
        self.seen: Seen = FREE

    def __getattr__(self, name: str) -> Any:
        if name not in ("data", "pointer"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        self.data, self.pointer = self.shelf.block()
        self.__class__ = Memory  # pyright: ignore[reportAttributeAccessIssue]  # which gives the block back
        return getattr(self, name)

    def __del__(self) -> None:
        """It had no block: its program never ran."""


class Window:
    """A part of a buffer, as a buffer for the steps of inner programs. Its memory is somebody else's."""

    __slots__ = ("base", "offset", "pointer")

    def __init__(self, base: Any, offset: int) -> None:
        self.base = base
        self.offset = offset
        self.pointer = base.pointer + offset

    def advance(self, nbytes: int) -> None:
        """From now on it shows what is ``nbytes`` further in the buffer."""
        self.offset += nbytes
        self.pointer += nbytes

    @property
    def data(self) -> np.ndarray:
        return self.base.data[self.offset :]

    def array(self, shape: tuple[int, ...], dtype: Any, offset: int = 0) -> np.ndarray:
        return self.base.array(shape, dtype, self.offset + offset)


def whole(buffer: Memory | Window) -> Memory:
    """The block that a buffer is, or is a part of."""
    while isinstance(buffer, Window):
        buffer = buffer.base
    return buffer


class Shelf:
    """Free blocks of one size."""

    __slots__ = ("free", "keep", "made", "pool", "size")

    def __init__(self, size: int, pool: Pool) -> None:
        self.size = size
        self.pool = pool
        self.free: list[tuple[np.ndarray, int]] = []
        self.keep = min(MOST, max(1, RETAINED // size))
        self.made = 0

    def take(self) -> Memory:
        """Memory with any contents.

        Raises:
          OutOfMemory: there is none.
        """
        data, pointer = self.block()
        return Memory(data, pointer, self)

    def block(self) -> tuple[np.ndarray, int]:
        """One that nobody has, and where it is."""
        try:
            return self.free.pop()
        except IndexError:
            return self._make()

    def _make(self) -> tuple[np.ndarray, int]:
        raw = self.pool.allocate(self.size + ALIGNMENT)
        self.made += 1
        skip = -raw.ctypes.data % ALIGNMENT
        return raw[skip : skip + self.size], raw.ctypes.data + skip


class GuardedShelf(Shelf):
    """Free blocks with bytes around them that nobody writes to: who does so is found."""

    __slots__ = ()

    def _make(self) -> tuple[np.ndarray, int]:
        raw = self.pool.allocate(self.size + ALIGNMENT + 2 * GUARD)
        raw[...] = UNTOUCHED
        self.made += 1
        skip = GUARD + -(raw.ctypes.data + GUARD) % ALIGNMENT
        return raw[skip : skip + self.size], raw.ctypes.data + skip

    def trespass(self, pointer: int) -> str | None:
        """Where somebody wrote beside a block, if so; from now on that is forgotten."""
        for place, begin in (("before", pointer - GUARD), ("behind", pointer + self.size)):
            around = np.frombuffer(memoryview((ctypes.c_ubyte * GUARD).from_address(begin)), np.uint8)
            if count := np.count_nonzero(around != UNTOUCHED):
                around[...] = UNTOUCHED
                return f"{count} of the {GUARD} bytes {place} a block of {self.size}"
        return None


class Pool:
    """The shelves of a backend. ``name`` is for errors."""

    def __init__(self, name: str = "the host") -> None:
        self.name = name
        self._shelves: dict[tuple[int, type[Shelf]], Shelf] = {}
        self._peak = 0

    def shelf(self, nbytes: int) -> Shelf:
        """Where memory of ``nbytes`` comes from; guarded, where there are checks."""
        key = size, kind = size_class(nbytes), GuardedShelf if config.checks else Shelf
        found = self._shelves.get(key)
        return found if found is not None else self._shelves.setdefault(key, kind(size, self))

    def empty(self, nbytes: int) -> Memory:
        """Memory with any contents."""
        return self.shelf(nbytes).take()

    def allocate(self, nbytes: int) -> np.ndarray:
        """What ``fresh`` gives, if need be after others have given back theirs."""
        error = lambda reason: OutOfMemory(shortage(self.name, nbytes, self._in_use(), self.arrays(), reason))
        return allocated(lambda: self.fresh(nbytes), error, self.release)

    def fresh(self, nbytes: int) -> np.ndarray:
        """Bytes that nobody has. Pools of memory of another kind give theirs.

        Raises:
          MemoryError: there are none.
        """
        return np.empty(nbytes, np.uint8)

    def release(self) -> None:
        """Gives back what nobody holds."""
        gc.collect()
        for shelf in list(self._shelves.values()):
            with contextlib.suppress(IndexError):  # until it is empty: others take meanwhile
                while True:
                    shelf.free.pop()
                    shelf.made -= 1

    def arrays(self) -> Iterator[Array]:
        """Every array that lives here."""
        for x in all_arrays():
            if isinstance(x.buffer, Memory) and x.buffer.shelf.pool is self:
                yield x

    def stats(self) -> dict[str, int]:
        """Under JAX's names. The peak is the highest value that was seen in a call of this function."""
        in_use, free = self._in_use(), sum(s.size * len(s.free) for s in list(self._shelves.values()))
        self._peak = max(self._peak, in_use)
        return {"bytes_in_use": in_use, "peak_bytes_in_use": self._peak, "bytes_reserved": in_use + free}

    def _in_use(self) -> int:
        return sum(s.size * (s.made - len(s.free)) for s in list(self._shelves.values()))


def foreign(host: np.ndarray, pool: Pool) -> Memory | None:
    """Somebody else's memory as a buffer, on a shelf of its own, which takes nothing back; None if it isn't aligned."""
    pointer = host.ctypes.data
    if not host.nbytes or pointer % ALIGNMENT:
        return None
    shelf = Shelf(host.nbytes, pool)
    shelf.made = 1
    memory = Memory(host.reshape(-1).view(np.uint8), pointer, shelf)
    memory.seen = EXPORTED
    return memory


def size_class(nbytes: int) -> int:
    """``nbytes`` rounded up: to the alignment if small, else to four steps per power of two.

    >>> size_class(1), size_class(100), size_class(1_000_000)
    (64, 128, 1048576)
    """
    if nbytes <= SMALL:
        return max(ALIGNMENT, (nbytes + ALIGNMENT - 1) & -ALIGNMENT)
    step = 1 << ((nbytes - 1).bit_length() - 3)
    return (nbytes + step - 1) & -step
