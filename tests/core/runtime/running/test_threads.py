"""Public calls from several threads: each program is compiled once, and no cache is changed under a reader."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import polyax as jax
import polyax.numpy as jnp
from polyax import lax
from polyax.ir.config import Config
from polyax.ops.cumulative import cumsum_p
from polyax.runtime.running import compiling
from polyax.trace.traces import Traces
from support.threads import together


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The names of the programs that are compiled, which takes a while."""
    names: list[str] = []
    original = compiling.build

    def slow(closed: Any, device: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        names.append(name)
        time.sleep(0.02)
        return original(closed, device, name, *args, **kwargs)

    monkeypatch.setattr(compiling, "build", slow)
    yield names


def fresh(name: str) -> Callable[[Any], Any]:
    def fun(x: Any) -> Any:
        return jnp.sum(x * 2)

    fun.__name__ = name
    return fun


def test_jit(compiled: list[str]) -> None:
    f, x = jax.jit(fresh("mine")), jnp.ones(3)
    compiled.clear()
    assert together(lambda: float(f(x))) == [6.0] * 8
    assert compiled == ["mine"]


def test_operations(compiled: list[str]) -> None:
    x = jnp.ones((3, 5, 2))
    compiled.clear()
    assert together(lambda: float(lax.reduce_max(x, (0, 1, 2)))) == [1.0] * 8
    assert compiled == ["reduce_max"]


def test_loops(compiled: list[str]) -> None:
    def below(c: Any) -> Any:
        return c < 5

    def triple(c: Any) -> Any:
        return c * 3

    x = jnp.float32(1)
    compiled.clear()
    assert together(lambda: float(lax.while_loop(below, triple, x))) == [9.0] * 8
    assert compiled == ["while"]


def test_several_devices(compiled: list[str]) -> None:
    f, x = jax.pmap(fresh("spread")), jnp.ones((1, 3))
    compiled.clear()
    assert together(lambda: float(f(x)[0]), 4) == [6.0] * 4
    assert compiled.count("pmap(spread)") == 1


def test_derivatives(compiled: list[str]) -> None:
    f, x = jax.jit(jax.grad(jax.jit(fresh("derived")))), jnp.float32(3)
    compiled.clear()
    assert together(lambda: float(f(x))) == [2.0] * 8
    assert len(compiled) == 1


def test_functions_made_while_caches_are_cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    functions = [jax.jit(lambda x: x) for _ in range(3)]
    monkeypatch.setattr(Traces, "clear", lambda _: functions.append(jax.jit(lambda x: x)))
    jax.clear_caches()
    assert len(functions) > 3


def test_settings_of_two_threads_are_told_apart() -> None:
    config, keys = Config(), []

    class Interrupted(str):
        """A value during whose comparison another thread sets another one."""

        def __hash__(self) -> int:
            if not keys:
                keys.append(0)
                with config.override(default_matmul_precision="highest"):
                    keys.append(config.trace_key())
            return super().__hash__()

        __eq__ = str.__eq__

    with config.override(default_matmul_precision=Interrupted("high")):
        keys.append(config.trace_key())
    assert keys[1] != keys[2]


def test_the_order_of_parameters_means_nothing(compiled: list[str]) -> None:
    x = jnp.ones((3, 5, 7))
    compiled.clear()
    for _ in range(2):
        cumsum_p.bind_all(x, axis=1, reverse=True)
        cumsum_p.bind_all(x, reverse=True, axis=1)
    assert compiled == ["cumsum"]
