"""One GPU, through CuPy: memory from its pool, none of it ahead of time, one stream, events, and graphs.

Knows no kernels and no plans.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Generator, Sequence
from typing import Any

import cupy
import cupy_backends.cuda.api.runtime as runtime
import numpy as np

from polyax_cuda import compiler
from polyax_cuda.backend import limits
from polyax_kernels.api.gpu import DeviceError, EventMark, Mark, Runtime

FAILURES = (runtime.CUDARuntimeError, cupy.cuda.driver.CUDADriverError)
ANY_COPY = runtime.memcpyDefault  # the driver knows by the addresses where memory is


def array(view: Any) -> Any:
    """The memory of an operand as a CuPy array; bfloat16, with which CuPy doesn't compute, as 16 bits."""
    dtype = "uint16" if view.aval.dtype.name == "bfloat16" else view.aval.dtype
    return cupy.ndarray(view.aval.shape, dtype, view.memory + view.offset)


class Copied:
    """A view's elements in another order of dimensions, as a view; made inside ``working``."""

    def __init__(self, view: Any, order: Sequence[int]) -> None:
        self.memory = cupy.ascontiguousarray(cupy.transpose(array(view), order)).data
        self.offset = 0


class CurrentGpu:
    """While it is entered, a GPU is the thread's current one; failures become ``DeviceError``."""

    __slots__ = ("device", "number")

    def __init__(self, device: Any, number: int) -> None:
        self.device = device
        self.number = number

    def __enter__(self) -> None:
        self.device.__enter__()

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        self.device.__exit__(kind, error, traceback)
        if isinstance(error, FAILURES):
            raise DeviceError(f"cuda:{self.number} failed: {error}") from error


class CudaRuntime(Runtime):
    """``number`` counts the GPUs that CUDA_VISIBLE_DEVICES shows."""

    records = True

    def __init__(self, number: int) -> None:
        self.number = number
        self.device, self.pool = cupy.cuda.Device(number), cupy.cuda.MemoryPool()
        self._current = CurrentGpu(self.device, number)
        self.staged = deque[tuple[Any, Any]]()  # host memory that copies read from, and the event after each
        self.lock, self.thread = threading.Lock(), threading.local()
        with self.current():
            properties = runtime.getDeviceProperties(number)
            self.stream, self.recorder = (cupy.cuda.Stream(non_blocking=True) for _ in range(2))
        self.kind = properties["name"].decode()
        self.target = compiler.target(properties["major"], properties["minor"])
        numbers = (properties[n] for n in ("sharedMemPerBlock", "maxThreadsPerBlock", "multiProcessorCount"))
        self.limits = limits(*numbers)

    def current(self) -> CurrentGpu:
        """This GPU is the thread's current one; failures are raised as ``DeviceError``."""
        return self._current

    @contextlib.contextmanager
    def working(self) -> Generator[None]:
        """What CuPy does inside goes to this GPU's stream and takes memory from its pool."""
        with self.current(), self.stream, cupy.cuda.using_allocator(self.pool.malloc):
            yield

    @property
    def queue(self) -> Any:
        """The stream that launches and copies go to: the recorder's while this thread records."""
        return getattr(self.thread, "queue", self.stream)

    def allocate(self, nbytes: int) -> Any:
        with self.current(), self.stream:
            return self.pool.malloc(nbytes)

    def write(self, target: Any, offset: int, host: np.ndarray) -> None:
        """From pinned memory, which a copy in the background needs; that is kept until it is done."""
        with self.current():
            staged = cupy.cuda.alloc_pinned_memory(host.nbytes)
            np.frombuffer(staged, np.uint8, host.nbytes)[...] = host.reshape(-1).view(np.uint8)
            runtime.memcpyAsync(target.ptr + offset, staged.ptr, host.nbytes, ANY_COPY, self.stream.ptr)
            with self.lock:
                while self.staged and self.staged[0][1].done:
                    self.staged.popleft()
                self.staged.append((staged, self.event()))

    def read(self, source: Any, offset: int, host: np.ndarray) -> None:
        with self.current():
            runtime.memcpyAsync(host.ctypes.data, source.ptr + offset, host.nbytes, ANY_COPY, self.stream.ptr)
            self.stream.synchronize()

    def copy(self, source: Any, source_offset: int, target: Any, target_offset: int, nbytes: int) -> None:
        with self.current():
            target_place, source_place = target.ptr + target_offset, source.ptr + source_offset
            runtime.memcpyAsync(target_place, source_place, nbytes, ANY_COPY, self.queue.ptr)

    def copy_from(self, peer: Runtime, source: Any, target: Any, nbytes: int) -> None:
        """From GPU to GPU, directly where their connection allows it. Each stream waits for what it needs of the
        other: ``source`` must be there, and must not be used anew before it was copied."""
        if not isinstance(peer, CudaRuntime):
            super().copy_from(peer, source, target, nbytes)
            return
        with peer.current():
            filled = peer.event()
        with self.current():
            self.stream.wait_event(filled)
            runtime.memcpyPeerAsync(target.ptr, self.number, source.ptr, peer.number, nbytes, self.stream.ptr)
            copied = self.event()
        with peer.current():
            peer.stream.wait_event(copied)

    def load(self, source: str, name: str) -> Any:
        code = compiler.binary(source, self.target)
        with self.current():
            module = cupy.cuda.function.Module()
            module.load(code)
            return module.get_function(name)

    def launch(
        self,
        function: Any,
        groups: tuple[int, ...],
        threads: tuple[int, ...],
        operands: Sequence[tuple[Any, int]],
        scalars: Sequence[int],
    ) -> None:
        arguments = (*[memory.ptr + offset for memory, offset in operands], *scalars)
        with self.current():
            function(groups, threads, arguments, stream=self.queue)

    def address(self, memory: Any) -> int:
        return memory.ptr

    def record(self, work: Callable[[], None]) -> Any:
        """A CUDA graph, captured on a stream of its own: other threads go on using the device's."""
        with self.lock, self.current():
            self.thread.queue = self.recorder
            self.recorder.begin_capture()
            try:
                work()
            finally:
                del self.thread.queue
                graph = self.recorder.end_capture()
            return graph

    def replay(self, recording: Any) -> None:
        with self.current():
            recording.launch(self.stream)

    def event(self) -> Any:
        """One behind everything in the stream."""
        return self.stream.record(cupy.cuda.Event(disable_timing=True))

    def mark(self) -> Mark:
        with self.current():
            return EventMark(self, self.event(), FAILURES)

    def synchronize(self) -> None:
        with self.current():
            self.stream.synchronize()

    def memory_stats(self) -> dict[str, int]:
        with self.current():
            _, total = runtime.memGetInfo()
        return {"bytes_limit": total, "bytes_reserved": self.pool.total_bytes()}
