"""Programs that run side by side on several devices, meet in collectives, fail, and are asked for at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import lax


@pytest.fixture
def devices(platform: str) -> list[Any]:
    """All devices of the platform; a test that needs several is left out where there is one."""
    found = polyax.devices(platform)
    if len(found) < 2:
        pytest.skip(f"{platform} has one device")
    return found


def parts(devices: list[Any]) -> np.ndarray:
    """Rows for each device."""
    return np.arange(len(devices) * 6, dtype=np.float32).reshape(-1, 2, 3) / 7


def on(devices: list[Any], fun: Callable[..., Any], axis_name: str | None = None, **how: Any) -> Callable[..., Any]:
    return polyax.pmap(fun, axis_name, devices=devices, **how)


def close(got: Any, want: Any, tolerance: float = 1e-5) -> None:
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), tolerance, 1e-5)


def slow(x: Any, turns: int = 2000) -> Any:
    return lax.fori_loop(0, turns, lambda _, v: jnp.sin(v @ v) + 0.1, x)


def test_programs_with_loops_and_branches_around_collectives(devices: list[Any]):
    n_devices = len(devices)
    rows = parts(devices)

    def f(x):
        def step(carry, row):
            carry = lax.cond(carry.sum() > 0, lambda c: c + lax.psum(row, "i"), lambda c: c - row, carry)
            return carry, lax.pmax(carry, "i")

        last, rows = lax.scan(step, jnp.zeros(3) - 1, x)
        n = lax.while_loop(lambda n: lax.psum(n, "i") < 20 * n_devices, lambda n: n + 1 + lax.axis_index("i"), 0)
        return last, rows, n

    got, expected = on(devices, f, "i")(rows), polyax.vmap(f, axis_name="i")(rows)
    for a, b in zip(got, expected, strict=True):
        close(a, b, 1e-4)


def test_training_in_parallel_is_training_on_everything(devices: list[Any]):
    n_devices = len(devices)
    rng = np.random.default_rng(0)
    w, x, y = (rng.normal(size=s).astype(np.float32) for s in ((4, 2), (n_devices, 5, 4), (n_devices, 5, 2)))

    def loss(w, x, y):
        return jnp.mean((jnp.tanh(x @ w) - y) ** 2)

    step = on(devices, lambda w, x, y: w - 0.1 * lax.pmean(polyax.grad(loss)(w, x, y), "i"), "i", in_axes=(0, 0, 0))
    many = np.broadcast_to(w, (n_devices, 4, 2))
    for _ in range(3):
        many = step(many, x, y)
        w = w - 0.1 * np.asarray(polyax.grad(loss)(w, x.reshape(-1, 4), y.reshape(-1, 2)))
    for row in np.asarray(many):
        close(row, w, 1e-4)


def test_a_call_returns_before_a_long_computation_ends(devices: list[Any]):
    n_devices = len(devices)
    f, again = on(devices, slow), on(devices, lambda x: x + 1)
    x = np.ones((n_devices, 30, 30), np.float32)
    again(f(x)).block_until_ready()
    y = again(f(x))
    assert not y.is_ready()
    y.block_until_ready()
    assert y.is_ready()


def test_an_error_on_one_device_reaches_all_results_and_stops_nobody(devices: list[Any]):
    rows = parts(devices)

    def f(x):
        n = polyax.pure_callback(fail_on_second, polyax.ShapeDtypeStruct((), np.int32), lax.axis_index("i"))
        return lax.psum(x + n, "i"), x

    y, _ = on(devices, f, "i")(rows)
    with pytest.raises(polyax.errors.JaxRuntimeError, match="ArithmeticError: the second device fails"):
        y.block_until_ready()
    close(on(devices, lambda x: lax.psum(x, "i"), "i")(rows)[0], rows.sum(0), 1e-4)
    with pytest.raises(polyax.errors.JaxRuntimeError):
        np.asarray(on(devices, lambda x: lax.psum(x, "i"), "i")(y))  # of a failed operand
    close(on(devices, lambda x: lax.psum(x, "i"), "i")(rows)[0], rows.sum(0), 1e-4)


def test_several_threads_at_the_same_time(devices: list[Any]):
    n_devices = len(devices)
    rows = parts(devices)
    f = on(devices, lambda x, k: lax.psum(lax.psum(x, "i") * k, "i"), "i", in_axes=(0, None))
    results = {}

    def work(k):
        for _ in range(10):
            results[k] = np.asarray(f(rows, np.float32(k)))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    for k in range(4):
        close(results[k][0], rows.sum(0) * n_devices * k, 1e-4)


def test_what_callbacks_ask_for_runs_though_all_devices_wait(devices: list[Any]):
    rows = parts(devices)

    def ask(x):
        mapped = on(devices, lambda v: lax.psum(v, "k"), "k")
        inner, within = mapped(np.stack([x, x])), polyax.jit(lambda v: mapped(v) * 2)(np.stack([x, x]))
        return np.asarray(inner[0] + within[1] + jnp.cumsum(jnp.asarray(x)))

    def f(x):
        y = polyax.pure_callback(ask, polyax.ShapeDtypeStruct((3,), np.float32), x)
        return lax.psum(y, "i")

    x = rows[:, 0]
    close(on(devices, f, "i")(x)[0], (6 * x + np.cumsum(x, 1)).sum(0), 1e-4)


def fail_on_second(n):
    if n == 1:
        raise ArithmeticError("the second device fails")
    return n
