"""What native code notes while a trace is taken: calls stay native, and their steps are told all the same."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polyax as jax
import polyax.numpy as jnp
from polyax import profiler
from polyax_cpu import machine_code, native, processors
from polyax_cpu.calls import running
from polyax_cpu.notes import calls, clock, notebook, reading
from polyax_cpu.notes import native as notes

ROUNDS = 40


def events_of(folder: Path, line: str) -> list[tuple[str, Any, Any]]:
    """Kind, the event, and what else is told, of a thread or a device."""
    (file,) = folder.rglob("*.trace.json.gz")
    (plane,) = profiler.ProfileData.from_file(str(file)).planes
    told = [(e, dict(e.stats)) for found in plane.lines if found.name == line for e in found.events]
    return [(stats["kind"], e, stats) for e, stats in sorted(told, key=lambda pair: round(pair[0].start_ns))]


@pytest.fixture
def cpu() -> Any:
    return jax.devices("cpu")[0]


def test_native_calls_are_told_with_their_steps(tmp_path: Path, cpu: Any) -> None:
    step = jax.jit(lambda x: jnp.tanh(x @ x))
    x = jax.device_put(np.full((8, 8), 0.1, np.float32), cpu)
    for _ in range(100):
        step(x)  # from now on it is one native call
    with profiler.trace(tmp_path):
        made = [step(x) for _ in range(ROUNDS)]
    assert all((np.asarray(y) == np.asarray(step(x))).all() for y in made)
    told = events_of(tmp_path, "cpu:0")
    assert [kind for kind, _, _ in told] == ["run", "call", "kernel"] * ROUNDS
    calls = [e for kind, e, _ in events_of(tmp_path, "MainThread") if kind == "call"]
    for call, n in zip(calls, range(0, len(told), 3), strict=True):
        run, product, kernel = (e for _, e, _ in told[n : n + 3])
        times = [call.start_ns, run.start_ns, product.end_ns, kernel.end_ns, call.end_ns]
        assert times == sorted(times)
        ends = [product.start_ns, kernel.start_ns, run.end_ns]
        assert ends == pytest.approx([run.start_ns, product.end_ns, kernel.end_ns], abs=1)  # they were microseconds
        assert (run.name, product.name, kernel.name) == ("<lambda>", "dot_general", "tanh")
        assert __file__ in told[n][2]["lines"]


def test_operations_that_run_natively_know_their_lines(tmp_path: Path, cpu: Any) -> None:
    x = jax.device_put(np.ones(5, np.float32), cpu)
    for _ in range(100):
        jnp.sin(x)
    with profiler.trace(tmp_path):
        for _ in range(ROUNDS):
            jnp.sin(x)
    code = test_operations_that_run_natively_know_their_lines.__code__
    line = f"{__file__}:{code.co_firstlineno + 6} ({code.co_name})"
    for thread, kind in (("MainThread", "operation"), ("cpu:0", "run")):
        told = [(e.name, stats["lines"]) for found, e, stats in events_of(tmp_path, thread) if found == kind]
        assert told == [("sin", line)] * ROUNDS
    kernels = [e.name for kind, e, _ in events_of(tmp_path, "cpu:0") if kind == "kernel"]
    assert kernels == ["sin"] * ROUNDS


def test_programs_of_queues_are_told_once(tmp_path: Path, cpu: Any) -> None:
    wide = jax.jit(lambda x: jnp.sin(x @ x).sum())
    x = jax.device_put(np.ones((300, 300), np.float32), cpu)
    wide(x).block_until_ready()
    with profiler.trace(tmp_path):
        for _ in range(5):
            wide(x)
        wide(x).block_until_ready()
    told = [(kind, e.name) for kind, e, _ in events_of(tmp_path, "cpu:0")]
    assert told.count(("run", "<lambda>")) == 6 and told.count(("call", "dot_general")) == 6


def test_each_thread_has_its_own_calls(tmp_path: Path, cpu: Any) -> None:
    x = jax.device_put(np.ones(5, np.float32), cpu)
    functions = [jax.jit(lambda x: x * 2), jax.jit(lambda x: jnp.exp(x))]
    for f in functions * 100:
        f(x)

    both = threading.Barrier(2)  # a thread that begins when another has ended may get its number

    def work(f: Any) -> None:
        both.wait()
        for _ in range(200):
            f(x)
        both.wait()

    with profiler.trace(tmp_path):
        threads = [threading.Thread(target=work, args=(f,), name=f"worker {n}") for n, f in enumerate(functions)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    kernels = [e.name for kind, e, _ in events_of(tmp_path, "cpu:0") if kind == "kernel"]
    assert sorted(set(kernels)) == ["exp", "mul"] and len(kernels) == 400
    for n in range(2):
        assert len([e for kind, e, _ in events_of(tmp_path, f"worker {n}") if kind == "call"]) == 200


def known_natively(f: Any, *args: Any) -> Any:
    """``f``, whose calls with such arguments are native from now on."""
    for _ in range(100):
        f(*args)
    assert f._quick.own
    return f


def ones(cpu: Any) -> Any:
    return jax.device_put(np.ones(5, np.float32), cpu)


def test_what_has_no_room_is_not_told_but_runs(tmp_path: Path, cpu: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x = ones(cpu)
    double = known_natively(jax.jit(lambda x: x * 2), x)
    one = notes.HEAD + 1 + calls.SIZE  # a run of one step, and its call
    monkeypatch.setattr(reading, "CAPACITY", 3 * one + notes.HEAD)
    for folder in (tmp_path / "first", tmp_path / "second"):
        with pytest.warns(UserWarning, match=f"no room for {2 * (ROUNDS - 3)} notes"), profiler.trace(folder):
            made = [double(x) for _ in range(ROUNDS)]
        assert np.asarray(made).tolist() == [[2.0] * 5] * ROUNDS
        assert [kind for kind, _, _ in events_of(folder, "cpu:0")] == ["run", "kernel"] * 3
        assert [kind for kind, _, _ in events_of(folder, "MainThread")].count("call") == 3


def test_each_call_is_told_once(tmp_path: Path, cpu: Any) -> None:
    """Whether native code takes it or not, and for every trace anew."""
    x = ones(cpu)
    double = known_natively(jax.jit(lambda x: x * 2), x)
    many = 30_000 // ROUNDS
    for folder, rounds in ((tmp_path / "first", many), (tmp_path / "second", 1)):
        with profiler.trace(folder):
            for _ in range(ROUNDS * rounds):
                double(x)
            double(np.ones(7))
            double(x)
            with jax.disable_jit():
                double(x)
        kinds = [kind for kind, _, _ in events_of(folder, "MainThread")]
        assert kinds.count("call") == ROUNDS * rounds + 3
        assert [kind for kind, _, _ in events_of(folder, "cpu:0")].count("run") == ROUNDS * rounds + 3


def test_memory_that_was_given_back_is_empty(tmp_path: Path, cpu: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x = ones(cpu)
    double = known_natively(jax.jit(lambda x: x * 2), x)
    monkeypatch.setattr(notebook, "KEPT", 512)
    for folder in (tmp_path / "first", tmp_path / "second"):
        with profiler.trace(folder):
            for _ in range(ROUNDS):
                double(x)
            assert reading.noting is not None
            record = reading.noting.book
        assert not record.array[: record.used].any()
        assert [kind for kind, _, _ in events_of(folder, "cpu:0")] == ["run", "kernel"] * ROUNDS


def test_memory_is_less_where_a_process_may_not_have_as_much(monkeypatch: pytest.MonkeyPatch) -> None:
    real = notebook.mmap.mmap

    def limited(where: int, size: int, flags: int) -> Any:
        if size > 1 << 24:
            raise OSError("no memory")
        return real(where, size, flags)

    monkeypatch.setattr(notebook.mmap, "mmap", limited)
    assert notebook.Notebook(1 << 26).record.capacity == 1 << 20
    monkeypatch.setattr(notebook, "KEPT", 1 << 24)
    with pytest.raises(OSError, match="no memory"):
        notebook.Notebook(1 << 26)


def checked_loop(check: Any) -> Any:
    """A program that asks Python in the midst of native code."""
    asked = lambda _, c: jax.pure_callback(check, c, c) + 1
    return jax.jit(lambda x: jax.lax.fori_loop(0, 2, asked, x))


def test_a_call_that_fails_ends_as_well(tmp_path: Path, cpu: Any) -> None:
    wrong: list[bool] = []

    def check(x: Any) -> Any:
        if wrong:
            raise ArithmeticError("wrong")
        return x

    x = ones(cpu)
    loop = known_natively(checked_loop(check), x)
    wrong.append(True)
    with profiler.trace(tmp_path), pytest.raises(Exception, match="wrong"):
        loop(x)
    ((_, call, _),) = [e for e in events_of(tmp_path, "MainThread") if e[0] == "call"]
    ((_, run, _),) = [e for e in events_of(tmp_path, "cpu:0") if e[0] == "run"]
    assert call.start_ns <= run.start_ns < run.end_ns <= call.end_ns


def test_work_that_a_native_call_asks_for_is_its_own(tmp_path: Path, cpu: Any) -> None:
    wide = jax.jit(lambda x: jnp.sin(x @ x).sum())
    large = jax.device_put(np.ones((300, 300), np.float32), cpu)

    def check(x: Any) -> Any:
        return x + float(wide(large)) * 0

    x = ones(cpu)
    loop = known_natively(checked_loop(check), x)
    with profiler.trace(tmp_path):
        loop(x)
    calls = [e for kind, e, _ in events_of(tmp_path, "MainThread") if kind == "call"]
    assert len(calls) == 3 and all(calls[0].start_ns <= e.start_ns and e.end_ns <= calls[0].end_ns for e in calls)
    lines = {stats["lines"] for kind, _, stats in events_of(tmp_path, "cpu:0") if kind == "run"}
    code = test_work_that_a_native_call_asks_for_is_its_own.__code__
    assert lines == {f"{__file__}:{code.co_firstlineno + 10} ({code.co_name})"}


def test_a_run_that_outlives_its_trace_is_in_none(tmp_path: Path, cpu: Any) -> None:
    """It still writes where its note is, which nobody else gets before it has ended."""
    entered, go_on = threading.Event(), threading.Event()
    waiting: list[bool] = []

    def check(x: Any) -> Any:
        if waiting:
            entered.set()
            go_on.wait()
        return x

    x = ones(cpu)
    loop, double = known_natively(checked_loop(check), x), known_natively(jax.jit(lambda x: x * 2), x)
    waiting.append(True)
    thread = threading.Thread(target=loop, args=(x,))
    with profiler.trace(tmp_path / "first"):
        thread.start()
        entered.wait()
    starts = []
    for name in ("second", "third"):
        with profiler.trace(tmp_path / name):
            assert reading.noting is not None
            starts.append(reading.noting.book.record.used)
            double(x)
            go_on.set()
            thread.join()
    assert starts[0] > starts[1] == 0
    assert not [kind for kind, _, _ in events_of(tmp_path / "first", "MainThread") if kind == "call"]
    for name in ("second", "third"):
        assert [kind for kind, _, _ in events_of(tmp_path / name, "cpu:0")] == ["run", "kernel"]


def test_threads_are_told_by_their_names(tmp_path: Path, cpu: Any) -> None:
    x = ones(cpu)
    double = known_natively(jax.jit(lambda x: x * 2), x)
    count = 20
    together = threading.Barrier(count)

    def work() -> None:
        together.wait()
        for _ in range(ROUNDS):
            double(x)
        together.wait()

    for folder in (tmp_path / "first", tmp_path / "second"):
        with profiler.trace(folder):
            threads = [threading.Thread(target=work, name=f"worker {n}") for n in range(count)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
        for n in range(count):
            # a thread whose allocation sets off garbage collection tells of that too
            kinds = [kind for kind, _, _ in events_of(folder, f"worker {n}") if kind != "collection"]
            assert kinds == ["call"] * ROUNDS


def test_what_is_raised_while_a_call_is_noted_is_raised(
    tmp_path: Path, cpu: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    x = ones(cpu)
    double = known_natively(jax.jit(lambda x: x * 2), x)
    with profiler.trace(tmp_path):
        with monkeypatch.context() as patch:
            patch.setattr(notebook, "_meet", [interrupted])
            with pytest.raises(KeyboardInterrupt):
                double(x)
        assert double(x).tolist() == [2] * 5
    assert [kind for kind, _, _ in events_of(tmp_path, "MainThread")].count("call") == 1


@pytest.mark.parametrize("counts", [False, True])
def test_times_are_those_of_the_systems_clock(monkeypatch: pytest.MonkeyPatch, counts: bool) -> None:
    """By whichever clock notes are written."""
    if counts and not clock.counts():
        pytest.skip("the system doesn't trust the processor's counter")
    with monkeypatch.context() as patch:
        patch.setattr(clock, "counts", lambda: counts)
        source = native.source(processors.host().triple)
        runtime = machine_code.library(source, native.EXPORTS, notes.imports(), level=0)
        made = {name: runtime.address(name) for name in native.EXPORTS}
        machine_code.library(running.source(), [running.ENTER], made | notes.imports(), level=0).address(running.ENTER)
    known = clock.anchors(made)
    before = time.perf_counter_ns()
    during = clock.anchors(made)
    after = time.perf_counter_ns()
    known += clock.anchors(made)
    ticks = np.array([x for first, _, last in during for x in (first, last)])
    times = clock.NoteClock(known).times(ticks)
    assert (np.diff(times) >= 0).all()
    slack = 10_000_000  # a thread may lose its core between two looks
    assert before - slack <= times[0] <= times[-1] <= after + slack


def test_comparisons_of_clocks_that_were_interrupted_are_left_out() -> None:
    found = clock.NoteClock([(0, 1000, 2), (50, 900, 5000), (100, 1200, 102)])
    assert found.times(np.array([-5, 1, 51, 101, 200])).tolist() == [1000, 1000, 1100, 1200, 1200]


def test_nothing_is_noted_without_a_trace(tmp_path: Path, cpu: Any) -> None:
    x = ones(cpu)
    double = known_natively(jax.jit(lambda x: x * 2), x)
    with profiler.trace(tmp_path):
        double(x)
        assert reading.noting is not None
        record = reading.noting.book.record
    used = record.used
    double(x)
    assert reading.noting is None and record.used == used > 0
