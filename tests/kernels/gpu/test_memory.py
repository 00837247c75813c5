"""Memory, errors and donation of the generic GPU path, on a runtime whose memory is NumPy's and whose kernels fail."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from kernels.gpu.host_runtime import HostRuntime

from polyax.ir.aval import ShapedArray
from polyax.runtime.arrays.array import Array
from polyax_kernels.gpu.memory import GpuBuffer, GpuStore
from polyax_kernels.gpu.queue import GpuQueue
from polyax_kernels.gpu.runtime import DeviceError, DeviceOutOfMemory
from polyax_kernels.gpu.schedule import GpuSchedule, choose
from polyax_kernels.ir.limits import Limits
from support.process import output


class Small(HostRuntime):
    """At most ``capacity`` bytes at once."""

    kind = "memory of the host"
    limits = Limits()

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity

    def allocate(self, nbytes: int) -> np.ndarray:
        if nbytes > self.capacity:
            raise MemoryError("full")
        return super().allocate(nbytes)

    def load(self, source: str, name: str) -> Any:
        return name

    def launch(self, *_: Any) -> None:
        raise DeviceError("the device was lost")


def test_live_bytes() -> None:
    store = GpuStore(Small(1000), "fake:0")
    first, second = store.shelf(100).take(), store.shelf(24).take()
    assert store.stats()["bytes_in_use"] == 124
    del first
    assert (store.stats()["bytes_in_use"], store.stats()["peak_bytes_in_use"]) == (24, 124)
    assert second.ready()


def test_out_of_memory_names_what_is_live() -> None:
    store = GpuStore(Small(1000), "fake:0")
    somewhere: Any = object()
    array = Array(ShapedArray((5, 8), np.dtype("float32")), store.shelf(160).take(), somewhere)
    with pytest.raises(DeviceOutOfMemory, match=r"fake:0 .* 2,000 bytes .* 160 are live.*float32\[5,8\].*full"):
        store.shelf(2000).take()
    assert array.shape == (5, 8)


def test_a_failed_launch_surfaces_at_its_results() -> None:
    runtime = Small(1000)
    queue, store = GpuQueue("fake:0", runtime), GpuStore(runtime, "fake:0")
    result: GpuBuffer = store.shelf(4).take()
    result.task = queue.run(runtime.launch, [], 0)
    assert result.ready()
    after = store.shelf(4).take()
    after.task = queue.run(lambda: None, [result], 0)
    for buffer in (result, after):
        with pytest.raises(DeviceError, match="was lost"):
            buffer.wait()


def test_what_waits_runs_in_order_on_a_thread_of_its_own() -> None:
    queue = GpuQueue("fake:0", Small(1))
    order: list[int] = []
    tasks = [queue.run(lambda n=n: order.append(n), [], int(n == 0)) for n in range(3)]
    queue.synchronize()
    assert order == [0, 1, 2]
    assert tasks[0] is not None and tasks[0].done


def test_copies_between_devices_go_through_the_host() -> None:
    one, other = Small(100), Small(100)
    source, target = one.allocate(12), other.allocate(12)
    one.write(source, 0, np.arange(3, dtype=np.int32))
    other.copy_from(one, source, target, 12)
    assert target.view(np.int32).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("schedule", "sizes", "groups"),
    [
        (GpuSchedule("points", (256, 1)), (3, 1000), (4, 3)),
        (GpuSchedule("points", (4, 64)), (1000, 3), (1, 16)),
        (GpuSchedule("groups", (64, 1)), (3, 5), (15,)),
        (GpuSchedule("ranges", groups=16), (5, 9), (5,)),
    ],
)
def test_geometry(schedule: GpuSchedule, sizes: tuple[int, ...], groups: tuple[int, ...]) -> None:
    from kernels.building import axes, one_store

    from polyax_kernels.ir.expr import consing, const

    with consing():
        kernel = one_store(axes(*sizes), const(1.0, "float32"), [])
        assert schedule.geometry(kernel, ())[0] == groups
        assert choose(kernel, Limits()).mode == "ranges"
        assert choose(kernel, replace(Limits(), group=64, threads=256)).mode == "points"


def test_the_interpreter_waits_for_kernels_before_it_ends() -> None:
    """Those of its own, all of them: a process that forks leaves what runs to its parent."""
    printed = output("""
        import os, sys
        from types import SimpleNamespace
        from polyax_kernels.gpu.queue import GpuQueue

        def waits(name):
            print("waited for", name, flush=True)

        queues = [GpuQueue(n, SimpleNamespace(synchronize=lambda n=n: waits(n))) for n in ("one", "other")]
        if child := os.fork():
            os.waitpid(child, 0)
    """)
    assert sorted(printed.splitlines()) == ["waited for one", "waited for other"]


@pytest.mark.parametrize(
    ("rows", "length", "threads"),
    [(1_000_000, 300, 64), (1_000_000, 1024, 64), (1_000_000, 40, 64), (500, 300, 256), (10, 4096, 1024)],
)
def test_threads_that_share_a_row(rows: int, length: int, threads: int) -> None:
    from kernels.building import F32, axes, indices, one_store

    from polyax_kernels.ir.expr import Axis, consing, const, fold, index, load

    limits = replace(Limits(), lanes=1, group=256, threads=1024, units=132)
    with consing():
        (i,), k = indices(grid := axes(rows)), Axis(length)
        x = fold("add", (k,), (const(0.0, F32),), (load(0, F32, (i, index(k))),))
        kernel = one_store(grid, x, [np.broadcast_to(np.float32(0), (rows, length))])
        assert choose(kernel, limits) == GpuSchedule("groups", (threads, 1))


def test_only_one_warp_goes_on_without_a_barrier_of_all() -> None:
    from kernels.building import F32, axes, indices, one_store

    from polyax_kernels.gpu.cooperate import LOCKSTEP, cooperate
    from polyax_kernels.ir.expr import Axis, consing, const, fold, index, load

    with consing():
        (i,), k = indices(grid := axes(10)), Axis(1000)
        x = fold("add", (k,), (const(0.0, F32),), (load(0, F32, (i, index(k))),))
        stages = cooperate(one_store(grid, x, [np.zeros((10, 1000), np.float32)]), 256).stages
    extents = [[a.extent for a in stage.axes] for stage in stages]
    assert extents == [[256], [128], [64], [32], [16], [8], [4], [2], [1], []]
    assert [stage.lockstep for stage in stages] == [False] * 3 + [True] * 5 + [False] * 2
    assert max(n for stage, (n, *_) in zip(stages, extents[:-1], strict=False) if stage.lockstep) == LOCKSTEP
