"""Loops and branches in which a step needs Python: what is called how often, and what becomes of its errors."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import polyax
from polyax import lax
from polyax import numpy as jnp
from polyax.errors import JaxRuntimeError
from polyax.experimental import io_callback
from polyax_cpu import loops
from polyax_cpu.libraries import callouts

pytestmark = pytest.mark.usefixtures("native")
SCALAR = polyax.ShapeDtypeStruct((), np.float32)
X = np.arange(5, dtype=np.float32)


@pytest.fixture(autouse=True)
def on_cpu() -> Iterator[None]:
    with polyax.default_device(polyax.devices("cpu")[0]):
        yield


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often native code called out for which primitive."""
    counts: Counter[str] = Counter()
    real = callouts._on_addresses

    def counting(step: Any, context: Any) -> Any:
        run = real(step, context)

        def counted(address: int) -> None:
            counts[step.primitive.name] += 1
            run(address)

        return counted

    monkeypatch.setattr(callouts, "_on_addresses", counting)
    return counts


def halved(x: Any) -> Any:
    return (x / 2).astype(x.dtype)


def host(x: Any) -> Any:
    return polyax.pure_callback(halved, polyax.ShapeDtypeStruct(x.shape, x.dtype), x, vmap_method="sequential")


@pytest.mark.parametrize("size", [1, 5, 100])
def test_only_the_step_itself_is_python(size: int, called: Counter[str]) -> None:
    """Small operands are locals, large ones memory."""
    x = np.linspace(1, 2, size, dtype=np.float32)
    found = polyax.jit(lambda x: lax.fori_loop(0, 7, lambda i, x: jnp.sin(host(x)) + i, x))(x)
    want = x
    for i in range(7):
        want = np.sin(want / 2) + i
    np.testing.assert_allclose(np.asarray(found), want, rtol=1e-6)
    assert called == {"pure_callback": 7}


def test_branches_that_are_not_taken_call_nothing(called: Counter[str]) -> None:
    def body(c: Any, i: Any) -> Any:
        return lax.cond(i == 3, lambda: host(c), lambda: c + 1), c

    last, every = polyax.jit(lambda c: lax.scan(body, c, jnp.arange(6)))(np.float32(1))
    assert every.tolist() == [1, 2, 3, 4, 2, 3] and last.item() == 4
    assert called == {"pure_callback": 1}


@pytest.mark.parametrize("long", [1, 300])
def test_errors_end_the_loop_at_once(long: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where loops within loops are functions of their own."""
    monkeypatch.setattr(loops, "LONG", long)
    seen: list[float] = []

    def check(x: Any) -> Any:
        seen.append(float(x))
        if x > 3:
            raise ArithmeticError(f"{x} is too much")
        return x

    def inner(_: Any, x: Any) -> Any:
        return io_callback(check, SCALAR, x, ordered=True) + 1

    f = polyax.jit(lambda x: lax.fori_loop(0, 10, lambda _, x: lax.fori_loop(0, 3, inner, x), x))
    for _ in range(2):  # the program is as good as before
        seen.clear()
        with pytest.raises(JaxRuntimeError, match=r": 4\.0 is too much") as caught:
            polyax.block_until_ready(f(np.float32(0)))
        assert seen == [0, 1, 2, 3, 4]
        assert any("in the callback check, asked for at" in note for note in caught.value.__notes__)


def test_effects_keep_their_order(called: Counter[str]) -> None:
    seen: list[float] = []

    def body(i: Any, x: Any) -> Any:
        io_callback(seen.append, None, x, ordered=True)
        lax.cond(i % 2 == 0, lambda: io_callback(seen.append, None, -x, ordered=True), lambda: None)
        return x + 1

    polyax.jit(lambda x: lax.fori_loop(0, 4, body, x))(np.float32(1)).block_until_ready()
    polyax.effects_barrier()
    assert list(map(float, seen)) == [1, -1, 2, 3, -3, 4]
    assert called == {"io_callback": 6}


def test_mapped_and_with_results_of_no_elements() -> None:
    def one(x: Any) -> Any:
        return lax.fori_loop(0, 3, lambda _, x: host(x) + host(jnp.zeros((0, 2), np.float32)).sum(), x)

    assert polyax.jit(polyax.vmap(one))(X).tolist() == (X / 8).tolist()


def test_callbacks_may_run_programs_with_callbacks() -> None:
    inner = polyax.jit(lambda x: lax.fori_loop(0, 2, lambda _, x: host(x), x))

    def outer(x: Any) -> Any:
        return np.asarray(inner(x))

    body = lambda _, x: polyax.pure_callback(outer, SCALAR, x)
    assert polyax.jit(lambda x: lax.fori_loop(0, 2, body, x))(np.float32(16)).item() == 1


def test_threads_run_the_same_loop_at_a_time() -> None:
    """Each gets its own error, or its own results."""

    def check(x: Any) -> Any:
        if x < 0:
            raise ValueError(f"{x}")
        return x

    f = polyax.jit(lambda x: lax.fori_loop(0, 50, lambda _, x: polyax.pure_callback(check, SCALAR, x) * 1, x))
    told: dict[int, Any] = {}

    def run(n: int) -> None:
        try:
            told[n] = f(np.float32(n)).item()
        except JaxRuntimeError as e:
            told[n] = str(e.__cause__)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(-4, 4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert told == {n: n if n >= 0 else f"{n}.0" for n in range(-4, 4)}


def test_libraries_without_native_functions(called: Counter[str]) -> None:
    x = np.linspace(0, 1, 8, dtype=np.float32)
    found = polyax.jit(lambda x: lax.fori_loop(0, 3, lambda _, x: jnp.fft.fft(x * (1 + 0j)).real, x))(x)
    want = x
    for _ in range(3):
        want = np.fft.fft(want).real
    np.testing.assert_allclose(np.asarray(found), want, rtol=1e-5, atol=1e-4)
    assert called == {"fft": 3}
