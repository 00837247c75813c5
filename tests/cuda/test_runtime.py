"""What the runtime of a GPU asks of CuPy, as far as that shows without a GPU: its names, and what failures become."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import cupy
import pytest
from cupy.cuda import function, graph

from polyax_cuda import runtime
from polyax_cuda.backend import limits
from polyax_cuda.runtime import CurrentGpu
from polyax_kernels.gpu.runtime import DeviceError, EventMark

USED = {
    cupy.cuda.runtime: "memcpyAsync memcpyPeerAsync memcpyDefault memGetInfo getDeviceProperties CUDARuntimeError",
    cupy.cuda.driver: "CUDADriverError",
    cupy.cuda: "Device MemoryPool Stream Event alloc_pinned_memory using_allocator",
    cupy.cuda.Stream: "record wait_event synchronize begin_capture end_capture __enter__",
    cupy.cuda.Event: "done synchronize",
    cupy.cuda.MemoryPool: "malloc total_bytes",
    cupy.cuda.MemoryPointer: "ptr __add__",
    function.Module: "load get_function",
    graph.Graph: "launch",
}


@pytest.mark.parametrize("owner", USED, ids=lambda owner: owner.__name__)
def test_cupy_has_what_is_used(owner: Any) -> None:
    assert not [name for name in USED[owner].split() if not hasattr(owner, name)]


def test_out_of_memory_is_a_memory_error() -> None:
    assert issubclass(cupy.cuda.memory.OutOfMemoryError, MemoryError)


class Lost(RuntimeError):
    pass


class LostEvent:
    """Of a GPU that fell off the bus."""

    @property
    def done(self) -> bool:
        raise Lost("cudaErrorDevicesUnavailable")

    def synchronize(self) -> None:
        raise Lost("cudaErrorDevicesUnavailable")


class Entered:
    """A device of CuPy."""

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


def test_a_lost_device_is_told_where_results_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "FAILURES", (Lost,))
    gpu: Any = SimpleNamespace(current=lambda: CurrentGpu(Entered(), 3))
    mark = EventMark(gpu, LostEvent(), (Lost,))
    assert mark.done()
    with pytest.raises(DeviceError, match="cuda:3 failed: cudaErrorDevicesUnavailable"):
        mark.wait()


def test_limits() -> None:
    found = limits(48 * 1024, 1024, 132)
    assert (found.local_bytes, found.threads, found.units) == (49152, 1024, 132)
    assert found.group & (found.group - 1) == 0, "trees of reductions need a power of two"
