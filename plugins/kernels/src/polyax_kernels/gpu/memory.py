"""Memory of one device: buffers that know the point in the queue at which they are full, and what is live.

Recycling is the runtime's business.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from polyax.ir.blame import expected
from polyax.ir.errors import PluginError
from polyax.runtime.arrays.array import Array, all_arrays
from polyax.runtime.contract.backend import Buffer, Token
from polyax_kernels.gpu.runtime import DeviceOutOfMemory, Mark, Runtime
from polyax_kernels.run.memory import FREE, SHARED, Seen
from polyax_kernels.run.shortage import allocated, shortage

SCALARS = 256
"""Numbers that stay on a device, at most."""


class GpuBuffer(Buffer):
    """Memory, and what fills it: ``task`` while calls through the host are still to be made, then ``mark``."""

    __slots__ = ("__weakref__", "mark", "memory", "seen", "shelf", "task")
    offset = 0

    def __init__(self, memory: Any, shelf: GpuShelf) -> None:
        self.memory = memory
        self.shelf = shelf
        self.task: Token | None = None
        self.mark: Mark | None = None
        self.seen: Seen = FREE
        shelf.store.live += shelf.nbytes

    @property
    def nbytes(self) -> int:
        return self.shelf.nbytes

    def awaits(self) -> Token | None:
        """Not the mark: work on the device comes after what fills it there, and ``to_host`` waits for both."""
        return self.task

    def ready(self) -> bool:
        return (self.task is None or self.task.done) and (self.mark is None or self.mark.done())

    def wait(self) -> None:
        if self.task is not None:
            self.task.wait()
            self.task = None
        if self.mark is not None:
            self.mark.wait()
            self.mark = None

    def share(self) -> None:
        self.seen = SHARED

    def address(self) -> int:
        return int(self.memory.ptr if hasattr(self.memory, "ptr") else self.memory.int_ptr)

    def __del__(self) -> None:
        self.shelf.store.live -= self.shelf.nbytes


class GpuWindow:
    """A part of a buffer, as a buffer for the steps of inner programs. Its memory is somebody else's."""

    __slots__ = ("mark", "memory", "offset")

    def __init__(self, base: GpuBuffer | GpuWindow, offset: int) -> None:
        self.memory = base.memory
        self.offset = base.offset + offset

    def advance(self, nbytes: int) -> None:
        """From now on it shows what is ``nbytes`` further in the buffer; what was put into the queue isn't touched."""
        self.offset += nbytes


class GpuShelf:
    """Where buffers of one size come from."""

    __slots__ = ("nbytes", "store")

    def __init__(self, store: GpuStore, nbytes: int) -> None:
        self.store = store
        self.nbytes = nbytes

    def take(self) -> GpuBuffer:
        """Memory with any contents.

        Raises:
          DeviceOutOfMemory: there is none.
        """
        return GpuBuffer(self.store.allocate(self.nbytes), self)


class GpuStore:
    """All memory of a device. ``name`` is the device's, for errors."""

    def __init__(self, runtime: Runtime, name: str) -> None:
        self.runtime = runtime
        self.name = name
        self._scalars: dict[tuple[np.dtype, bytes], GpuBuffer] = {}
        self.live = 0
        self.peak = 0

    def shelf(self, nbytes: int) -> GpuShelf:
        return GpuShelf(self, nbytes)

    def allocate(self, nbytes: int) -> Any:
        self.peak = max(self.peak, self.live + nbytes)
        memory = allocated(
            lambda: self.runtime.allocate(max(1, nbytes)),
            lambda reason: DeviceOutOfMemory(shortage(self.name, nbytes, self.live, self.arrays(), reason)),
        )
        if memory is None:
            raise PluginError(f"allocate gave None for {nbytes} bytes, not memory; where there is none it raises")
        return memory

    def scalar(self, number: np.ndarray) -> GpuBuffer:
        """Memory with ``number`` in it, the same for all who ask, as eager operations do for their constants."""
        key = number.dtype, number.tobytes()
        found = self._scalars.get(key)
        if found is None:
            found = self.shelf(number.nbytes).take()
            self.runtime.write(found.memory, 0, number)
            found.share()
            if len(self._scalars) >= SCALARS:
                self._scalars.clear()
            self._scalars[key] = found
        return found

    def arrays(self) -> Iterator[Array]:
        """Every array that lives here."""
        for x in all_arrays():
            if isinstance(x.buffer, GpuBuffer) and x.buffer.shelf.store is self:
                yield x

    def stats(self) -> dict[str, int]:
        """Under JAX's names."""
        return {
            "bytes_in_use": self.live,
            "peak_bytes_in_use": max(self.peak, self.live),
            **expected(self.runtime.memory_stats(), dict, "memory_stats gave", "a dict of numbers"),
        }
