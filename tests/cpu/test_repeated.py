"""Eager calls that come again: they don't reach Python any more, give the same bits, and notice all that may change."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Generator
from typing import Any

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax.runtime.contract.backend import Device
from polyax.runtime.running import repeated
from polyax.runtime.running.dispatch import EvalTrace
from polyax_cpu import pool

pytestmark = pytest.mark.skipif(
    not getattr(sys, "_is_gil_enabled", lambda: True)(), reason="calls go through Python without the interpreter's lock"
)
ENOUGH = repeated.BEFORE + 2
"""Of calls, until the next one is repeated."""


@pytest.fixture(autouse=True)
def cpu() -> Generator[Device]:
    device = polyax.devices("cpu")[0]
    pool.native_calls.symbols()  # there before the first call asks for it
    repeated.clear()
    with polyax.default_device(device):
        yield device
    repeated.clear()


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The primitives that were applied from Python."""
    names: list[str] = []
    real = EvalTrace.process
    record = lambda self, primitive, *rest: (names.append(primitive.name), real(self, primitive, *rest))[1]
    monkeypatch.setattr(EvalTrace, "process", record)
    return names


def vector() -> Any:
    return polyax.device_put(np.linspace(-1.5, 3, 10, dtype=np.float32))


def matrix() -> Any:
    return polyax.device_put(np.random.default_rng(0).standard_normal((4, 4)).astype(np.float32))


def learned(call: Callable[..., Any], *args: Any) -> Any:
    """The result of the first call, after enough of them."""
    first = call(*args)
    for _ in range(ENOUGH):
        call(*args)
    return first


def same(x: Any, y: Any) -> None:
    (xs, tree), (ys, other) = polyax.tree.flatten(x), polyax.tree.flatten(y)
    assert tree == other
    for a, b in zip(xs, ys, strict=True):
        assert a.aval == b.aval and a.weak_type == b.weak_type and a.device == b.device
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "operator": lambda x, m: x + x,
    "number": lambda x, m: x * 2.5,
    "reflected number": lambda x, m: 1 - x,
    "product": lambda x, m: m @ m,
    "reduction": lambda x, m: jnp.sum(m, axis=0, keepdims=True),
    "two programs": lambda x, m: jnp.mean(m, 1),
    "method": lambda x, m: x.argmax(),
    "position": lambda x, m: x[2],
    "slices": lambda x, m: m[1:, ::2],
    "new axis": lambda x, m: x[:, None],
    "index arrays": lambda x, m: jnp.take(x, m[0].astype(int)),
    "property": lambda x, m: m.T,
    "dtype": lambda x, m: x.astype(jnp.int32),
    "list": lambda x, m: jnp.concatenate([x, m[0]]),
    "several results": lambda x, m: jnp.split(x, 2),
    "no arrays": lambda x, m: jnp.arange(3, dtype=jnp.float32),
    "constants": lambda x, m: jnp.linspace(0, 1, 7),
    "compiled within": lambda x, m: jnp.where(x > 0, x, 0.0),
    "compiled, and more": lambda x, m: jnp.std(m, axis=0),
    "universal": lambda x, m: jnp.add(x, x),
    "linear algebra": lambda x, m: jnp.linalg.norm(m),
    "activation": lambda x, m: polyax.nn.one_hot(x[:3].astype(int), 4),
    "lax": lambda x, m: polyax.lax.dynamic_slice(x, (2,), (3,)),
}


@pytest.mark.parametrize("name", CALLS)
def test_same_bits_without_python(name: str, ran: list[str]) -> None:
    x, m = vector(), matrix()
    first = learned(CALLS[name], x, m)
    ran.clear()
    again = CALLS[name](x, m)
    assert not ran
    same(first, again)
    with polyax.disable_jit(False):
        same(CALLS[name](x + 0.25, m * 3), _anew(CALLS[name], x + 0.25, m * 3))


def _anew(call: Callable[..., Any], *args: Any) -> Any:
    repeated.clear()
    return call(*args)


def test_one_array_twice_is_not_two() -> None:
    x, y = vector(), vector() + 1
    learned(lambda a, b: a - b, x, x)
    np.testing.assert_array_equal(x - y, np.asarray(x) - np.asarray(y))
    np.testing.assert_array_equal(y - x, np.asarray(y) - np.asarray(x))


def test_numbers_are_told_apart() -> None:
    n = jnp.arange(3)
    for one in (1, 1.0, True):
        learned(lambda v: n * v, one)
    assert [(n * v).dtype for v in (1, 1.0, True)] == [jnp.int32, jnp.float32, jnp.int32]
    for zero in (0.0, -0.0, float("nan"), 0.0, -0.0):
        learned(lambda v: jnp.full(2, v), zero)
        made = np.asarray(jnp.full(2, zero))
        assert made.tobytes() == np.full(2, zero, np.float32).tobytes()


def test_types_are_told_apart() -> None:
    x = vector()
    learned(lambda v: v + v, x)
    narrow, weak = x.astype(jnp.float16), jnp.asarray(1.5)
    assert (narrow + narrow).dtype == jnp.float16 and (weak + weak).weak_type
    assert (x[:3] + x[:3]).shape == (3,)


def test_settings_are_noticed() -> None:
    x = vector()
    ints = learned(lambda: jnp.arange(3))
    learned(lambda: x / 0.0)
    assert ints.dtype == jnp.int32
    with polyax.enable_x64(True):
        assert jnp.arange(3).dtype == jnp.int64
    with polyax.debug_nans(True), pytest.raises(FloatingPointError):
        (x * 0.0) / 0.0
    with pytest.raises(ValueError, match="rank"), polyax.numpy_rank_promotion("raise"):
        matrix() + learned(lambda: x[:4] + 0.0)


def test_guards_are_noticed() -> None:
    x = vector()
    learned(lambda: x + np.float32(1))
    learned(lambda: jnp.ones(3))
    with polyax.transfer_guard("disallow"), pytest.raises(Exception, match="Disallowed host-to-device"):
        x + np.float32(1)
    np.testing.assert_array_equal(jnp.ones(3), np.ones(3))


def test_transformations_are_noticed() -> None:
    x = vector()
    learned(jnp.sin, x)
    assert "sin" in str(polyax.make_jaxpr(jnp.sin)(x))
    np.testing.assert_allclose(polyax.vmap(polyax.grad(jnp.sin))(x), np.cos(x), rtol=1e-6)


def test_deleted_arrays_are_refused() -> None:
    x = vector()
    learned(jnp.sin, x)
    x.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        jnp.sin(x)


def test_errors_come_each_time() -> None:
    for _ in range(2 * ENOUGH):
        with pytest.raises(ValueError, match="Incompatible shapes"):
            vector() + matrix()[:, :3]


def test_warnings_come_each_time() -> None:
    for _ in range(2 * ENOUGH):
        with pytest.warns(UserWarning, match="float64") as caught:
            jnp.zeros(3, "float64")
        assert caught[0].filename == __file__


def test_values_that_are_read_are_read_again() -> None:
    for n in range(2 * ENOUGH):
        x = polyax.device_put(np.arange(4) == n % 4)
        assert jnp.nonzero(x)[0].tolist() == [n % 4]
        assert jnp.array_equal(x, x) and (n % 2 in jnp.asarray([n % 2, 7]))


def test_functions_of_users_are_called_each_time() -> None:
    calls: list[int] = []
    for n in range(2 * ENOUGH):
        jnp.apply_along_axis(lambda row, n=n: (calls.append(n), row.sum())[1], 0, matrix())
    assert sorted(set(calls)) == list(range(2 * ENOUGH))


def test_what_is_put_on_a_device_stays_committed(cpu: Device) -> None:
    x = polyax.device_put(np.ones(3, np.float32), cpu)
    expected = (x + x).committed
    learned(lambda: x + x)
    assert x.committed and (x + x).committed == expected


def test_memory_is_not_shared_with_what_may_change() -> None:
    x = vector()
    flat = lambda v: v.reshape(2, 5)
    learned(flat, x)
    y = flat(x)
    double = polyax.jit(lambda v: v * 2, donate_argnums=0)
    kept = np.array(x)
    double(y)
    np.testing.assert_array_equal(x, kept)


def test_what_never_comes_again_is_given_up(ran: list[str]) -> None:
    x = vector()
    calls = repeated.EagerCalls(lambda v, k: v * k)
    for n in range(3 * repeated.PATIENCE):
        if calls.patience > 0:
            calls.usual((x, float(n)), {})
    assert calls.patience <= 0 and not calls.quick.own


def test_what_is_known_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeated, "KEPT", 4)
    calls = repeated.EagerCalls(lambda v, k: v * k)
    for n in range(20):
        calls.usual((vector(), n), {})
    assert len(calls._known) <= 4


def test_clear_caches_forgets(ran: list[str]) -> None:
    x = vector()
    learned(jnp.cos, x)
    polyax.clear_caches()
    ran.clear()
    jnp.cos(x)
    assert ran == ["cos"]


def test_nothing_is_noted_outside_of_calls() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learned(lambda v: jnp.mean(v), vector())
    assert repeated.ambient.applied is None
    with pytest.raises(TypeError):
        for _ in range(ENOUGH):
            jnp.reshape(vector(), (3, 5))
    assert repeated.ambient.applied is None
