"""The runtime's contract: order, what may change when, memory that is used again, code kept on disk."""

from __future__ import annotations

import threading
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polyax
from polyax import profiler
from polyax_kernels.gpu.runtime import KernelRejected
from polyax_opencl import compiler
from polyax_opencl.probe import cl, find
from polyax_opencl.runtime import OpenCLRuntime
from support.process import output

ADD = "__kernel void add(__global float *x, long o, long n) { x[o / 4 + get_global_id(0)] += n; }"
SPIN = (
    "__kernel void spin(__global float *x, long o, long n) { for (long i = 0; i < n; i++) x[0] = x[0] * 0.999f + 1; }"
)
LONG = 100_000_000
"""Iterations that take some tenths of a second."""


def test_work_runs_in_order(runtime: OpenCLRuntime) -> None:
    memory, other = runtime.allocate(400), runtime.allocate(400)
    host = np.arange(100, dtype=np.float32)
    runtime.write(memory, 0, host)
    host[:] = -1  # it may change once the call is back
    runtime.launch(runtime.load(ADD, "add"), (10,), (5,), [(memory, 200)], (7,))
    runtime.copy(memory, 160, other, 0, 80)
    found = np.empty(20, np.float32)
    runtime.read(other, 0, found)
    np.testing.assert_array_equal(found, np.arange(40, 60) + 7 * (np.arange(40, 60) >= 50))


def test_only_reads_and_waits_block(runtime: OpenCLRuntime) -> None:
    memory = runtime.allocate(1 << 20)
    runtime.write(memory, 0, np.ones(1 << 18, np.float32))
    spin = runtime.load(SPIN, "spin")
    runtime.launch(spin, (1,), (1,), [(memory, 0)], (10,))
    runtime.synchronize()
    runtime.launch(spin, (1,), (1,), [(memory, 0)], (LONG,))
    early = runtime.mark()
    fresh = runtime.allocate(3 << 20)
    runtime.write(fresh, 0, np.zeros(3 << 18, np.float32))
    runtime.copy(fresh, 0, memory, 4, 400)
    late = runtime.mark()
    assert not early.done() and not late.done()
    early.wait()
    assert early.done()
    late.wait()


def test_stamps_say_afterwards_when_the_device_came_to_them(
    runtime: OpenCLRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OpenCLRuntime, "timed", True)
    memory, spin = runtime.allocate(4), runtime.load(SPIN, "spin")
    before = time.perf_counter_ns()
    stamps = [runtime.stamp()]
    for rounds in (10, LONG):
        runtime.launch(spin, (1,), (1,), [(memory, 0)], (rounds,))
        stamps.append(runtime.stamp())
    first, second, third = (stamp() for stamp in stamps)
    after = time.perf_counter_ns()
    late = 10**8  # nanoseconds, on a machine that does much else
    assert before - late < first < second < third < after + late
    assert third - second > 10**7, "the long one is told apart"


def test_queues_change_in_order(runtime: OpenCLRuntime, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a trace finds under way has ended before anything else begins, and the other way round."""
    add, spin, memory = runtime.load(ADD, "add"), runtime.load(SPIN, "spin"), runtime.allocate(4)
    runtime.write(memory, 0, np.zeros(1, np.float32))
    found, plain = np.empty(1, np.float32), runtime.queue
    for timed in (False, True, False, True, False):
        monkeypatch.setattr(OpenCLRuntime, "timed", timed)
        runtime.launch(spin, (1,), (1,), [(memory, 0)], (LONG // 100,))
        runtime.launch(add, (1,), (1,), [(memory, 0)], (1000,))
        assert (runtime.queue is plain) is not timed
    runtime.read(memory, 0, found)
    assert found[0] == pytest.approx(2000, rel=1e-4), "a long turn comes back to 1000, and then 1000 are added"


def test_traces_do_not_wait_for_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    device = polyax.devices("opencl")[0]
    soft = polyax.jit(lambda x: polyax.nn.softmax(x @ x), device=device)
    soft(np.ones((9, 9), np.float32)).block_until_ready()
    with profiler.trace(tmp_path):
        with monkeypatch.context() as patch:
            patch.setattr(OpenCLRuntime, "synchronize", lambda _: pytest.fail("a trace waits"))
            result = soft(np.ones((9, 9), np.float32))
        result.block_until_ready()
    (file,) = tmp_path.rglob("*.trace.json.gz")
    (plane,) = profiler.ProfileData.from_file(str(file)).planes
    (line,) = [line for line in plane.lines if line.name == str(device)]
    run, *steps = line.events
    assert run.name == "<lambda>" and steps
    assert all(run.start_ns <= s.start_ns and s.end_ns <= run.end_ns + 1 for s in steps)


def test_kernels_may_be_launched_from_several_threads(runtime: OpenCLRuntime) -> None:
    """A kernel's arguments are state of the kernel."""
    add = runtime.load(ADD, "add")
    memory = [runtime.allocate(40) for _ in range(8)]
    for m in memory:
        runtime.write(m, 0, np.zeros(10, np.float32))

    def work(n: int) -> None:
        for _ in range(50):
            runtime.launch(add, (2,), (5,), [(memory[n], 0)], (n,))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for n, m in enumerate(memory):
        found = np.empty(10, np.float32)
        runtime.read(m, 0, found)
        np.testing.assert_array_equal(found, 50 * n)


def test_memory_is_used_again(runtime: OpenCLRuntime) -> None:
    del_me = runtime.allocate(1_000_000)
    reserved = runtime.memory_stats()["bytes_reserved"]
    del del_me
    again = runtime.allocate(999_000)
    assert runtime.memory_stats()["bytes_reserved"] == reserved
    del again


def test_more_memory_than_there_is(runtime: OpenCLRuntime) -> None:
    with pytest.raises(MemoryError, match="at most .* bytes at once"):
        runtime.allocate(1 << 60)
    held = runtime.capacity
    runtime.capacity = 1000
    try:
        with pytest.raises(MemoryError, match="it has 1,000 bytes"):
            runtime.allocate(5000)
    finally:
        runtime.capacity = held


def test_a_rejected_program_is_shown_with_line_numbers(runtime: OpenCLRuntime) -> None:
    with pytest.raises(KernelRejected) as e:
        runtime.load("__kernel void f(__global float *x) {\n  x[0] = nothing;\n}", "f")
    text = str(e.value)
    assert runtime.kind in text and "use of undeclared identifier 'nothing'" in text
    assert "2    x[0] = nothing;" in text
    assert "nothing" in e.value.log


@pytest.mark.parametrize("failures", [2, 3])
def test_builds_that_fail_now_and_then(runtime: OpenCLRuntime, monkeypatch: pytest.MonkeyPatch, failures: int) -> None:
    """As PoCL's do where several processes compile the same source at once."""
    built, left = compiler.built, [compiler.cl.RuntimeError("clBuildProgram failed")] * failures

    def build(*args: Any) -> Any:
        if left:
            raise left.pop()
        return built(*args)

    monkeypatch.setattr(compiler, "is_kept", lambda _: True)
    monkeypatch.setattr(compiler, "built", build)
    source = "kernel void retried(global int *x) { x[0] = 1; }"
    if failures < compiler.ATTEMPTS:
        assert compiler.functions(runtime.context, source, ["retried"])[0].kernel.function_name == "retried"
    else:
        with pytest.raises(KernelRejected, match="clBuildProgram failed"):
            compiler.functions(runtime.context, source, ["retried"])


def test_compilers_are_quiet(runtime: OpenCLRuntime) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        runtime.load("#warning hello\n__kernel void f(__global float *x) { int unused; }", "f")


def test_binaries_are_kept(runtime: OpenCLRuntime, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not by name of the source alone: device, driver and options are part of the key."""
    monkeypatch.setattr(compiler, "is_kept", lambda device: False)
    source = "__kernel void kept(__global float *x, long o) { x[0] = 42; }"
    before = compiler._cache.stats()
    compiler.functions(runtime.context, source, ["kept"])
    compiler.functions(runtime.context, source, ["kept"])
    after = compiler._cache.stats()
    assert (after.misses - before.misses, after.hits - before.hits, after.writes - before.writes) == (1, 1, 1)
    monkeypatch.setattr(compiler, "identity", lambda device: "another driver")
    compiler.functions(runtime.context, source, ["kept"])
    assert compiler._cache.stats().misses == after.misses + 1


def test_a_binary_that_the_driver_refuses_is_compiled_again(runtime: OpenCLRuntime) -> None:
    assert compiler.from_binary(runtime.context, b"no program") is None
    assert compiler.from_binary(runtime.context, None) is None


def test_caches_of_others_are_off_or_ours(tmp_path: Path) -> None:
    program = """
        import os, polyax
        (polyax.numpy.ones(3) * 2).block_until_ready()
        print(os.environ["PYOPENCL_NO_CACHE"], "POCL_CACHE_DIR" in os.environ)
    """
    assert output(program, POLYAX_PLATFORMS="opencl", POLYAX_CACHE_DIR=str(tmp_path)) == "1 False"
    if compiler.is_kept(find().devices[0]):
        assert list((tmp_path / "pocl").glob("*/*/program.bc"))


def test_without_a_cache_nothing_is_kept(tmp_path: Path) -> None:
    program = "import polyax; (polyax.numpy.ones(3) * 2).block_until_ready()"
    off = {"POLYAX_COMPILATION_CACHE": "0", "POLYAX_CACHE_DIR": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    output(program, POLYAX_PLATFORMS="opencl", **off)
    assert not list(tmp_path.rglob("program.bc"))


def test_failures_name_the_device(runtime: OpenCLRuntime) -> None:
    function = runtime.load(ADD, "add")
    with pytest.raises(Exception, match="failed: clEnqueueNDRangeKernel.*the device is lost"):
        runtime.launch(function, (1,), (runtime.limits.threads * 1000,), [(runtime.allocate(4), 0)], (1,))
    assert issubclass(cl.LogicError, cl.Error)
