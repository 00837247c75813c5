"""Host devices: recycled memory, threads that share rows, errors that wait with their arrays."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from kernels.numpy_backend import NumpyKernelBackend
from kernels.programs import compiled, launched, traced

from polyax.ir.aval import ShapedArray
from polyax.ir.config import config
from polyax.ir.primitive import Primitive
from polyax.ops import elementwise
from polyax_kernels.host.threads import parallel_for
from polyax_kernels.lower.lowering import Call
from polyax_kernels.plan.plan import ALIGNMENT
from polyax_kernels.run.memory import Pool, size_class
from polyax_kernels.run.shortage import OutOfMemory
from support.offers import offered
from support.process import output

X = np.linspace(-1, 1, 12, dtype="f4").reshape(3, 4)


def test_memory_is_aligned_and_recycled() -> None:
    pool = Pool()
    first = pool.empty(1000)
    pointer = first.pointer
    assert pointer % ALIGNMENT == 0
    assert first.array((250,), "f4").ctypes.data == pointer
    del first
    assert pool.empty(1000).pointer == pointer


def test_memory_that_numpy_sees_is_not_recycled() -> None:
    backend = NumpyKernelBackend()
    device = backend.devices()[0]
    buffer = backend.to_device(X, device)
    seen, pointer = backend.to_host(buffer, ShapedArray(X.shape, X.dtype)), buffer.pointer
    del buffer
    others = [backend.empty(X.nbytes, device) for _ in range(4)]
    assert pointer not in {b.pointer for b in others}
    np.testing.assert_array_equal(seen, X)
    with pytest.raises(ValueError, match="read-only"):
        seen[0] = 1


def test_size_classes_waste_at_most_a_quarter() -> None:
    for nbytes in (1, 63, 64, 65, 4096, 4097, 5000, 123_457, 10**8):
        assert nbytes <= size_class(nbytes) <= max(ALIGNMENT, nbytes * 1.25 + ALIGNMENT)


def test_memory_statistics() -> None:
    backend = NumpyKernelBackend()
    device = backend.devices()[0]
    kept = backend.empty(10_000, device)
    stats = backend.memory_stats(device)
    assert stats is not None
    assert stats["bytes_in_use"] == size_class(10_000) == stats["peak_bytes_in_use"]
    del kept
    assert backend.memory_stats(device) == stats | {"bytes_in_use": 0}


@pytest.mark.parametrize("extent", [0, 1, 2, 7, 1000])
def test_parallel_for_covers_each_row_once(extent: int) -> None:
    seen: list[int] = []
    parallel_for(extent, lambda begin, end: seen.extend(range(begin, end)))
    assert sorted(seen) == list(range(extent))


@pytest.mark.parametrize("bad", [0, 99])
def test_parallel_for_raises_what_any_part_raises(bad: int) -> None:
    def run(begin: int, end: int) -> None:
        if begin <= bad < end:
            raise OverflowError("a row")

    with config.override(num_threads=4), pytest.raises(OverflowError, match="a row"):
        parallel_for(100, run)


def test_parallel_for_raises_what_a_part_raises() -> None:
    def run(begin: int, end: int) -> None:
        raise ArithmeticError("rows")

    with config.override(num_threads=2), pytest.raises(ArithmeticError, match="rows"):
        parallel_for(100, run)


def test_an_error_waits_with_the_result() -> None:
    p = Primitive("test_failing")
    p.abstract_eval = lambda x: [x]

    def fail(*_: object) -> None:
        raise ArithmeticError("failed on the device")

    class Backend(NumpyKernelBackend):
        def lowerings(self):
            return offered({p: Call(fail)})

    backend = Backend()
    large = np.zeros(100_000, "f4")
    closed = traced(lambda x: p.bind1(x), [large])
    device = backend.devices()[0]
    (out,), _ = compiled(backend, closed).launch([backend.to_device(large, device)], device.queue)
    with pytest.raises(ArithmeticError, match="failed on the device"):
        out.wait()


def test_programs_that_wait_share_the_memory_of_what_nobody_needs() -> None:
    backend, held = NumpyKernelBackend(), threading.Event()
    device = backend.devices()[0]
    large = np.full(100_000, 2.0, "f4")
    program = compiled(backend, traced(elementwise.neg, [large]))
    value = backend.to_device(large, device)
    ahead = device.queue.run(held.wait, [], 10**9)
    for _ in range(10):
        (value,), _ = program.launch([value], device.queue)
    held.set()
    np.testing.assert_array_equal(backend.to_host(value, ShapedArray(large.shape, large.dtype)), large)
    assert ahead is not None and ahead.done
    assert backend.pool.shelf(large.nbytes).made == 2  # what is read, and what is written


def test_a_program_that_never_runs_takes_no_memory() -> None:
    backend, held = NumpyKernelBackend(), threading.Event()
    device = backend.devices()[0]
    large = np.zeros(100_000, "f4")
    program = compiled(backend, traced(elementwise.neg, [large]))

    def fail() -> None:
        held.wait()
        raise ArithmeticError("failed before")

    given = backend.to_device(large, device)
    given.task = device.queue.run(fail, [], 10**9)
    (value,), _ = program.launch([given], device.queue)
    held.set()
    with pytest.raises(ArithmeticError, match="failed before"):
        value.wait()
    assert backend.pool.shelf(large.nbytes).made == 1  # the argument


def test_several_threads_compile_and_launch() -> None:
    backend = NumpyKernelBackend()
    closed = traced(elementwise.sin, [X])
    results: list[np.ndarray] = []

    def work() -> None:
        for _ in range(5):
            results.extend(launched(backend, compiled(backend, closed), closed, [X]))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(results) == 20
    assert all(np.array_equal(r, np.sin(X)) for r in results)
    assert backend.compilations == 1


def test_virtual_devices() -> None:
    with config.override(num_cpu_devices=8):
        devices = NumpyKernelBackend().devices()
    assert [d.id for d in devices] == list(range(8))
    assert len({id(d.queue) for d in devices}) == 8


def test_a_process_that_was_forked_has_threads_of_its_own() -> None:
    assert (
        output(
            """
        import os, signal
        from polyax_kernels.host.threads import parallel_for

        parallel_for(4, lambda begin, end: None)
        child = os.fork()
        if not child:
            signal.alarm(60)  # ends it if it waits for threads of the other process
            rows = []
            parallel_for(4, lambda begin, end: rows.extend(range(begin, end)))
            os._exit(sorted(rows) != [0, 1, 2, 3])
        print(os.waitpid(child, 0)[1])
        """,
            POLYAX_NUM_THREADS="2",
        )
        == "0"
    )


def test_free_memory_is_given_back_before_any_is_refused() -> None:
    pool = Pool("here")
    blocks = [pool.empty(1 << 20) for _ in range(3)]
    del blocks
    assert pool.stats()["bytes_reserved"] >= 3 << 20
    with pytest.raises(OutOfMemory, match=r"here is out of memory: [0-9,]+ bytes were asked for while 0 are live"):
        pool.empty(1 << 60)
    assert pool.stats()["bytes_in_use"] == pool.stats()["bytes_reserved"] == 0
