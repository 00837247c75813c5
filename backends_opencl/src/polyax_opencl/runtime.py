"""One OpenCL device behind the contract of the generic GPU path: a context, an in-order queue and a pool of memory.

Knows nothing of kernels, plans or arrays.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from polyax_kernels.api.gpu import DeviceError, DeviceOutOfMemory, Mark, Runtime, Stamp
from polyax_kernels.api.lowerings import REALS, Limits
from polyax_opencl import compiler
from polyax_opencl.clock import PROFILED, Clock
from polyax_opencl.probe import cl, title, tools

FLOAT64 = np.dtype("float64")
ARGUMENT_BYTES = 16
"""An operand is a pointer and an offset."""
SCALARS = 8
"""Places for arguments that are no operands."""
SMALLER = "Delete arrays that aren't needed any more, or work in smaller pieces."
LOST = "If it says so again, the device is lost: start the program anew, and see the driver's log."


class OpenCLMark(Mark):
    """An event behind everything that was put into the queue before it."""

    __slots__ = ("device", "event")

    def __init__(self, device: str, event: cl.Event) -> None:
        self.device = device
        self.event = event

    def done(self) -> bool:
        return has_ended(self.event)

    def wait(self) -> None:
        try:
            self.event.wait()
        except cl.Error as e:
            raise failure(self.device, e) from None


def has_ended(event: cl.Event) -> bool:
    """Well or not: errors are negative."""
    return event.command_execution_status <= cl.command_execution_status.COMPLETE


def failure(device: str, error: cl.Error) -> DeviceError:
    if isinstance(error, cl.MemoryError):
        return DeviceOutOfMemory(f"{device} is out of memory: {error}. {SMALLER}")
    return DeviceError(f"{device} failed: {error}. {LOST}")


class OpenCLRuntime(Runtime):
    """One device."""

    def __init__(self, device: cl.Device) -> None:
        self.device = device
        self.kind = title(device)
        self.limits = limits(device)
        self.capacity, self.largest = device.global_mem_size, device.max_mem_alloc_size
        self.context = cl.Context([device])
        self.queue = cl.CommandQueue(self.context, device)
        self.pool = tools.MemoryPool(tools.ImmediateAllocator(self.queue))
        self._lock, self._enqueuing = threading.Lock(), threading.Lock()
        self._keeps_times, self._without = False, self.queue
        self._last: cl.Event | None = None
        """Of the last command, unless that was waited for."""
        self._writes: deque[cl.Event] = deque()
        """An event keeps what is written, and waits when it is deleted: these are still under way."""

    def allocate(self, nbytes: int) -> tools.PooledBuffer:
        if nbytes > self.largest:
            raise MemoryError(f"it gives at most {self.largest:,} bytes at once")
        if self.pool.managed_bytes + nbytes > self.capacity:
            self.pool.free_held()
        if self.pool.managed_bytes + nbytes > self.capacity:
            raise MemoryError(f"it has {self.capacity:,} bytes")
        try:
            return self.pool.allocate(max(1, nbytes))
        except cl.Error as e:
            raise MemoryError(str(e)) from None

    def write(self, target: Any, offset: int, host: np.ndarray) -> None:
        if not host.nbytes:
            return
        event = self._try(cl.enqueue_copy, target, host.copy(), dst_offset=offset, is_blocking=False)
        with self._lock:
            while self._writes and has_ended(self._writes[0]):
                self._writes.popleft()
            self._writes.append(event)

    def read(self, source: Any, offset: int, host: np.ndarray) -> None:
        if not host.nbytes:
            return
        event = self._try(cl.enqueue_copy, host, source, src_offset=offset, is_blocking=False)
        self._last = None  # it holds the array
        try:
            event.wait()
        except cl.Error as e:
            raise failure(self.kind, e) from None

    def copy(self, source: Any, source_offset: int, target: Any, target_offset: int, nbytes: int) -> None:
        if nbytes:
            offsets = {"src_offset": source_offset, "dst_offset": target_offset}
            self._try(cl.enqueue_copy, target, source, byte_count=nbytes, **offsets)

    joins = True
    """Drivers bring a library in the compiler's own form, which each program is joined with."""

    def load(self, source: str, name: str) -> compiler.Function:
        return self.load_all(source, [name])[0]

    def load_all(self, source: str, names: Sequence[str]) -> list[compiler.Function]:
        return compiler.functions(self.context, source, names)

    def launch(
        self,
        function: compiler.Function,
        groups: tuple[int, ...],
        threads: tuple[int, ...],
        operands: Sequence[tuple[Any, int]],
        scalars: Sequence[int],
    ) -> None:
        if 0 in groups:
            return
        kernel, lock = function
        total = tuple(g * t for g, t in zip(groups, threads, strict=True))
        # Not in its types; the public set_arg tries other types first: 9 us instead of 0.1.
        set_bytes: Any = kernel._set_arg_buf  # pyright: ignore[reportAttributeAccessIssue]
        with lock:
            n = 0
            for memory, offset in operands:
                kernel.set_arg(n, memory)
                set_bytes(n + 1, int64(offset))
                n += 2
            for value in scalars:
                set_bytes(n, int64(value))
                n += 1
            self._try(cl.enqueue_nd_range_kernel, kernel, total, threads)

    def mark(self) -> OpenCLMark:
        event = self._try(cl.enqueue_marker)
        self.queue.flush()
        return OpenCLMark(self.kind, event)

    def stamp(self) -> Stamp:
        last = self._last if self._keeps_times is self.timed else None
        return self._clock.stamp(last or self._try(cl.enqueue_marker))

    @cached_property
    def _clock(self) -> Clock:
        return Clock(self.context, self.device)

    def synchronize(self) -> None:
        try:
            self.queue.finish()
        except cl.Error as e:
            raise failure(self.kind, e) from None

    def memory_stats(self) -> dict[str, int]:
        return {"bytes_limit": self.capacity, "bytes_reserved": self.pool.managed_bytes}

    def _try(self, enqueue: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            with self._enqueuing:
                if self._keeps_times is not self.timed:
                    self._change_queues()
                self._last = event = enqueue(self.queue, *args, **kwargs)
        except cl.Error as e:
            raise failure(self.kind, e) from None
        return event

    def _change_queues(self) -> None:
        """To one whose commands keep their times, which makes each slower, or back. What was put into the one has ended
        before anything is put into the other."""
        self.queue.finish()
        self._keeps_times = not self._keeps_times
        if self._keeps_times:
            self._without = self.queue
            self.queue = cl.CommandQueue(self.context, self.device, properties=PROFILED)
        else:
            self.queue = self._without


@lru_cache(4096)
def int64(value: int) -> bytes:
    return np.int64(value).tobytes()


def limits(device: cl.Device) -> Limits:
    """What the driver says about the device. Local memory that is a part of global memory is a processor's: there a
    work-item does best alone with whole rows."""
    fast = device.local_mem_type == cl.device_local_mem_type.LOCAL
    threads = min(device.max_work_group_size, device.max_work_item_sizes[0])
    return Limits(
        dtypes=REALS if device.double_fp_config else REALS - {FLOAT64},  # narrow floats are 16 bits and arithmetic
        operands=min(64, device.max_parameter_size // ARGUMENT_BYTES - SCALARS),
        local_bytes=min(device.local_mem_size // 2, 64 * 1024),
        lanes=1 if fast else 32,
        tile=1,
        threads=threads,
        group=min(256, threads) if fast else 1,
        units=device.max_compute_units,
        vector_bytes=max(16, 4 * device.native_vector_width_float),
    )
