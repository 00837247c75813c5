"""The cpu backend end to end: what only a program on its devices can show."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import polyax
from polyax import numpy as jnp
from polyax_cpu import compiler, kernels, machine_code, pool
from polyax_cpu.executable import Table
from polyax_cpu.llvm import Module
from support.process import output


@pytest.fixture(autouse=True)
def on_cpu():
    with polyax.default_device(polyax.devices("cpu")[0]):
        yield


def test_chain_of_sines_is_one_kernel_and_right() -> None:
    def f(x):
        for _ in range(10):
            x = 0.5 * x + 0.1 * jnp.sin(x)
        return x

    x = np.random.default_rng(0).standard_normal((130, 70)).astype(np.float32)
    expected = x.astype(float)
    for _ in range(10):
        expected = 0.5 * expected + 0.1 * np.sin(expected)
    np.testing.assert_allclose(polyax.jit(f)(x), expected, atol=3e-7)


def test_eager_operations_compile_once_for_all_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    jnp.sin(jnp.ones(3)).block_until_ready()
    made: list[object] = []
    real = kernels.NativeKernel.__init__
    monkeypatch.setattr(kernels.NativeKernel, "__init__", lambda self, k: (made.append(k), real(self, k))[1])
    for n in (7, 8, 1001):
        np.testing.assert_allclose(jnp.sin(jnp.full(n, 0.3)), np.full(n, np.sin(0.3)), rtol=1e-6)
    assert not [k for k in made if "sin" in k.primitives]  # type: ignore[attr-defined]


def _texts_compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Fills with the texts that are compiled from now on, none of which is taken from disk."""
    texts: list[str] = []
    real = compiler.compile
    monkeypatch.setattr(machine_code, "kept", lambda key: None)
    monkeypatch.setattr(compiler, "compile", lambda *code: (texts.append(code[0]), real(*code))[1])
    return texts


def test_kernels_of_one_text_are_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = _texts_compiled(monkeypatch)
    f = polyax.jit(lambda x: x * 3.8125)
    assert [np.asarray(f(np.ones(n, np.float32)))[-1] for n in (37, 41, 43)] == [3.8125] * 3
    assert len(texts) == 1


@pytest.mark.parametrize("threads", [1, 3])
def test_kernels_of_a_program_are_compiled_on_all_threads(monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    monkeypatch.setattr(pool, "thread_count", lambda: threads)
    texts = _texts_compiled(monkeypatch)
    compile_text, names = compiler.compile, set[str]()
    here = lambda *code, **how: (names.add(threading.current_thread().name), compile_text(*code, **how))[1]
    monkeypatch.setattr(compiler, "compile", here)
    expected = x = np.random.default_rng(0).standard_normal((30, 30)).astype(np.float32) / 10
    for function in (np.sin, np.tanh, np.arctan, np.cos):
        expected = function(expected @ expected * (threads + 0.3125))
    found = polyax.jit(
        lambda x: [x := g(x @ x * (threads + 0.3125)) for g in (jnp.sin, jnp.tanh, jnp.arctan, jnp.cos)][-1]
    )(x)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)
    assert len(texts) == len(set(texts)) > 2
    assert (len(names) == 1) == (threads == 1)


def test_loops_do_not_wait_for_the_kernels_of_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels are many, and a loop takes longest: its code is begun while none of them is ready."""
    monkeypatch.setattr(pool, "thread_count", lambda: 2)
    _texts_compiled(monkeypatch)
    real, begun, met = compiler.compile, threading.Event(), list[bool]()

    def compile(text: str, *how: Any) -> bytes:
        if "@control(" in text:
            begun.set()
        else:
            met.append(begun.wait(60))
        return real(text, *how)

    monkeypatch.setattr(compiler, "compile", compile)
    x = np.linspace(0, 1, 30, dtype=np.float32)
    f = lambda x: polyax.lax.fori_loop(
        0, 5, lambda _, y: jnp.sin(y) * 0.71875, jnp.cos(x @ jnp.ones((30, 30))) * 0.6171875
    )
    want = np.cos(x @ np.ones((30, 30))) * 0.6171875  # numbers that no kernel of another test has
    for _ in range(5):
        want = np.sin(want) * 0.71875
    np.testing.assert_allclose(polyax.jit(f)(x), want, rtol=1e-4)
    assert met and all(met)


def test_what_does_not_compile_says_so_in_the_calling_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "thread_count", lambda: 3)
    monkeypatch.setattr(machine_code, "kept", lambda key: None)
    monkeypatch.setattr(compiler, "compile", lambda *code: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        polyax.jit(lambda x: [x * 0.71875, jnp.sum(x, axis=0) * 0.71875, jnp.tanh(x) @ x])(np.ones((9, 9), np.float32))


def test_a_native_program_is_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    real = Table.__call__
    monkeypatch.setattr(Table, "__call__", lambda self, bases: (calls.append(self.steps.count), real(self, bases))[1])
    w, x = jnp.ones((30, 20)), jnp.ones((40, 30))
    f = polyax.jit(lambda w, x: jnp.sum(jnp.tanh(x @ w), axis=0))
    calls.clear()
    np.testing.assert_allclose(f(w, x), np.full(20, 40.0), rtol=1e-6)
    assert len(calls) == 1 and calls[0] >= 2


def test_results_do_not_depend_on_the_number_of_threads() -> None:
    program = """
        import hashlib, numpy as np, polyax, polyax.numpy as jnp
        x = jnp.asarray(np.random.default_rng(0).standard_normal((700, 900)), dtype=jnp.float32)
        f = polyax.jit(lambda x: (jnp.sum(x), jnp.sum(jnp.exp(x), 0), jnp.sin(x) - x.mean(1, keepdims=True)))
        print(hashlib.sha256(b"".join(np.asarray(y).tobytes() for y in f(x))).hexdigest())
    """
    found = {output(program, POLYAX_PLATFORMS="cpu", POLYAX_NUM_THREADS=n) for n in ("1", "2", "5")}
    assert len(found) == 1


def test_eight_devices_compute_at_the_same_time() -> None:
    program = """
        import numpy as np, polyax, polyax.numpy as jnp
        devices = polyax.devices()
        assert len(devices) == 8
        x = np.random.default_rng(0).standard_normal((400, 400)).astype(np.float32)
        f = polyax.jit(lambda x: jnp.tanh(x @ x / 20))
        xs = [polyax.device_put(x, d) for d in devices]
        for _ in range(20):
            xs = [f(x) for x in xs]
        results = [np.asarray(x) for x in xs]
        assert all(np.array_equal(results[0], r) for r in results)
        print([str(x.device) for x in xs][-1])
    """
    assert output(program, POLYAX_PLATFORMS="cpu", POLYAX_NUM_CPU_DEVICES="8") == "cpu:7"


def test_code_is_kept_between_processes(tmp_path) -> None:
    program = """
        import polyax, polyax.numpy as jnp
        from polyax_cpu import machine_code
        print(float(polyax.jit(lambda x: jnp.exp(x) * 3)(jnp.ones(5))[0]))
        print(machine_code._disk.stats().writes)
    """
    first = output(program, POLYAX_PLATFORMS="cpu", POLYAX_CACHE_DIR=str(tmp_path)).split()
    second = output(program, POLYAX_PLATFORMS="cpu", POLYAX_CACHE_DIR=str(tmp_path)).split()
    assert first[0] == second[0] and int(first[1]) > 0 and int(second[1]) == 0


def test_a_long_program_returns_before_it_is_done() -> None:
    x = jnp.ones((600, 600)) / 600
    f = polyax.jit(lambda x: x @ x @ x @ x @ x @ x @ x @ x)
    f(x).block_until_ready()
    y = f(x)
    assert y.buffer.task is not None, "the device's queue has it"
    np.testing.assert_allclose(y, np.full((600, 600), 1 / 600), rtol=1e-4)


def test_a_program_of_microseconds_runs_in_the_thread_that_asks() -> None:
    """Handing it over would take as long as it does."""
    x = jnp.ones(200_000)
    y = polyax.jit(jnp.exp)(x)
    assert y.buffer.task is None
    np.testing.assert_allclose(y, np.full(200_000, np.e), rtol=1e-6)


def test_products_of_integers_and_halves() -> None:
    x = np.arange(6).reshape(2, 3)
    np.testing.assert_array_equal(jnp.asarray(x) @ jnp.asarray(x.T), x @ x.T)
    half = jnp.asarray(x, dtype=jnp.bfloat16)
    np.testing.assert_array_equal(np.asarray(half @ half.T, np.float32), x @ x.T)


@pytest.mark.parametrize("straight", [False, True])
def test_code_without_loops_becomes_vectors_if_asked(straight: bool) -> None:
    module = Module(["f"])
    b = module.function("void", "f", [("ptr noalias", "x"), ("ptr noalias", "y")])
    for n in range(4):
        b.store(b.load(b.at(b.args[0], n, "float"), "float") * 3.0, b.at(b.args[1], n, "float"))
    b.ret()
    assert ("<4 x float>" in str(compiler.optimize(module.text(), straight=straight))) == straight
