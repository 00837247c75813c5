"""What native code notes while a trace is taken: calls stay native, and their steps are told all the same."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polyax as jax
import polyax.numpy as jnp
from polyax import profiler
from polyax_cpu.notes import reading

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


def test_what_has_no_room_is_not_told_but_runs(tmp_path: Path, cpu: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    double = jax.jit(lambda x: x * 2)
    x = jax.device_put(np.ones(5, np.float32), cpu)
    for _ in range(100):
        double(x)
    monkeypatch.setattr(reading, "CAPACITY", 12)  # a note of one step takes five
    for folder in (tmp_path / "first", tmp_path / "second"):
        with profiler.trace(folder):
            made = [double(x) for _ in range(ROUNDS)]
        assert np.asarray(made).tolist() == [[2.0] * 5] * ROUNDS
        assert [kind for kind, _, _ in events_of(folder, "cpu:0")] == ["run", "kernel"] * 2


def test_nothing_is_noted_without_a_trace(tmp_path: Path, cpu: Any) -> None:
    double = jax.jit(lambda x: x * 2)
    x = jax.device_put(np.ones(5, np.float32), cpu)
    with profiler.trace(tmp_path):
        double(x)
        assert reading.noting is not None
        record = reading.noting.record
    used = record.used
    double(x)
    assert reading.noting is None and record.used == used > 0
