"""Devices that meet in loops, branches and callbacks. Run by ``test_meeting.py``, with four devices."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import lax
from polyax.core import eval_jaxpr
from polyax.sharding import Mesh, NamedSharding
from polyax.sharding import PartitionSpec as P

N = len(polyax.devices())
pytestmark = pytest.mark.skipif(N != 4, reason="run by test_meeting.py, with four devices")

if N == 4:
    GRID = Mesh(np.array(polyax.devices()).reshape(2, 2), ("a", "b"))
    LINE = Mesh(np.array(polyax.devices()), ("x",))
X = np.arange(N * 6, dtype=np.float32).reshape(N, 6) / 7
NEXT = [(n, (n + 1) % N) for n in range(N)]


def same(got, expected):
    np.testing.assert_allclose(np.asarray(got), expected, 1e-5, 1e-6)


def on(mesh, f, *specs):
    spec = P(*specs) if specs else P(*mesh.axis_names)
    return polyax.jit(polyax.shard_map(f, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False))


def put(x, mesh, *spec):
    return polyax.device_put(x, NamedSharding(mesh, P(*spec)))


# --- loops and branches that differ along other axes than those of their collectives


@pytest.mark.parametrize("length", [1, 50_000])
def test_loops_of_different_lengths(length):
    x = np.ones((2, 2 * length), np.float32)
    got = on(GRID, lambda v: lax.fori_loop(0, 3 * lax.axis_index("a") + 1, lambda _, c: lax.psum(c, "b"), v))(x)
    same(got, x * np.array([[2], [2**4]]))


def test_tests_of_loops_that_meet():
    def f(v):
        return lax.while_loop(lambda c: lax.psum(c.sum(), "b") < 100, lambda c: c * 2 + lax.axis_index("b"), v)

    x, expected = np.array([[1, 2], [30, 40]], np.float32), []
    for row in x:
        while row.sum() < 100:
            row = row * 2 + np.arange(2)
        expected.append(row)
    same(on(GRID, f)(x), expected)


def test_branches_with_different_collectives():
    def f(v):
        return lax.cond(lax.axis_index("a") == 0, lambda c: lax.psum(c, "b"), lambda c: lax.pmax(c, "b") + 10, v)

    x = np.array([[1, 2], [3, 4]], np.float32)
    same(on(GRID, f)(x), [[3, 3], [14, 14]])


def test_collectives_in_the_turns_of_a_loop():
    def turn(c, i):
        c = c + lax.ppermute(c, "x", NEXT) + lax.all_gather(c, "x").mean(0)
        c = (
            c
            + lax.psum_scatter(jnp.tile(c, (N, 1)), "x")[: len(c)]
            + lax.all_to_all(jnp.tile(c, N), "x", 0, 0, tiled=True)[: len(c)]
        )
        c = lax.cond(i % 2 == 0, lambda c: lax.pmin(c, "x") + c, lambda c: c / (1 + lax.pmax(jnp.abs(c).max(), "x")), c)
        return c, lax.psum(c, "x")

    def scanned(v):
        return sum(lax.scan(turn, v, jnp.arange(5))[1])

    def straight(v):
        total = 0
        for i in range(5):
            v, out = turn(v, i)
            total += out
        return total

    x = X.reshape(-1)
    same(on(LINE, scanned)(x), np.asarray(on(LINE, straight)(x)))


def test_steps_that_last():
    """What lies between two meetings is one native call for all devices, if it takes long."""
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((N * 64, 256)).astype("f4"), rng.standard_normal((256, 256)).astype("f4") / 16

    def turn(c, _):
        c = jnp.tanh(c @ polyax.pure_callback(np.negative, polyax.typeof(w), w)) + lax.axis_index("x")
        return c - lax.pmean(c, "x"), lax.psum(jnp.sin(c).sum(), "x")

    def expected(blocks):
        for _ in range(3):
            blocks = [np.tanh(b @ -w) + n for n, b in enumerate(blocks)]
            total = sum(np.sin(b).sum() for b in blocks)
            blocks = [b - sum(blocks) / N for b in blocks]
        return np.concatenate(blocks), total

    got, totals = on(LINE, lambda v: lax.scan(turn, v, length=3), "x")(x)
    wanted, total = expected(np.split(x, N))
    np.testing.assert_allclose(got, wanted, 1e-3, 1e-4)
    np.testing.assert_allclose(totals[2], total, 1e-3, 1e-2)
    product = polyax.jit(lambda v, w: v @ w)(put(x, LINE, "x"), put(w, LINE))
    np.testing.assert_allclose(product, x @ w, 1e-4, 1e-4)


# --- meetings to which somebody doesn't come


@pytest.mark.parametrize("other", [lambda c: c, lambda c: lax.psum(c + 1, "x")])
def test_a_device_that_does_not_come(other):
    """Also if it meets others somewhere else: that is another collective. The next program runs."""
    f = on(LINE, lambda v: lax.cond(lax.axis_index("x") == 1, other, lambda c: lax.ppermute(c, "x", NEXT), v))
    with pytest.raises(RuntimeError, match=r"waits in p\w+ for device \d, which .* must come to it"):
        np.asarray(f(X))
    same(on(LINE, lambda v: lax.psum(v, "x"))(X), np.tile(X.sum(0), (N, 1)))


def test_an_error_of_one_device_is_that_of_all():
    def fail(x, n):
        if n == 2:
            raise ArithmeticError("of device 2")
        return x

    def turn(c, _):
        c = polyax.pure_callback(fail, polyax.typeof(c), c, lax.axis_index("x"))
        return lax.psum(c, "x") / N, None

    with pytest.raises(polyax.errors.JaxRuntimeError, match="ArithmeticError: of device 2"):
        np.asarray(on(LINE, lambda v: lax.scan(turn, v, length=3)[0])(X))
    same(on(LINE, lambda v: lax.psum(v, "x"))(X), np.tile(X.sum(0), (N, 1)))


def test_an_operand_that_failed_is_the_error_of_all():
    """Those who have theirs would wait for the one that hasn't, and so would all that comes after them."""

    def fail(x, n):
        if n == 2:
            raise ArithmeticError("before device 2")
        return x

    failing = on(LINE, lambda v: polyax.pure_callback(fail, polyax.typeof(v), v, lax.axis_index("x")))(X)
    with pytest.raises(polyax.errors.JaxRuntimeError, match="ArithmeticError: before device 2"):
        np.asarray(on(LINE, lambda v: lax.psum(v, "x"))(failing))
    same(on(LINE, lambda v: lax.psum(v, "x"))(X), np.tile(X.sum(0), (N, 1)))


@pytest.mark.parametrize("which", range(N))
def test_a_program_that_cannot_start_on_one_device(which):
    """Those that have started must not wait for it."""
    x, f = put(X, LINE, "x"), on(LINE, lambda v: lax.psum(v, "x"))
    x.parts[which].delete()
    with pytest.raises(RuntimeError, match="deleted"):
        np.asarray(f(x))
    same(f(X), np.tile(X.sum(0), (N, 1)))


# --- donation, and what tells programs apart


def test_donated_arrays_are_gone_on_every_device():
    f = polyax.jit(lambda v, w: (v + w, w * 2), donate_argnums=0)
    for layout in (("x",), (None, None)):
        x, w = put(X, LINE, *layout), put(X, LINE, *layout)
        parts, kept = list(x.parts), list(w.parts)
        total, double = f(x, w)
        assert x.is_deleted() and all(p.is_deleted() for p in parts)
        assert not w.is_deleted() and not any(p.is_deleted() for p in kept)
        same(total, 2 * X)
        same(double, 2 * X)
        with pytest.raises(RuntimeError, match="deleted"):
            f(x, w)
        same(w, X)
    x = put(X, LINE, "x")
    mapped = on(LINE, lambda v: lax.psum(v, "x"))
    same(polyax.jit(mapped, donate_argnums=0)(x), np.tile(X.sum(0), (N, 1)))
    assert x.is_deleted()


@pytest.mark.parametrize("layout", [("x",), (None, None)])
def test_donated_arrays_that_no_result_can_have_stay(layout):
    for f in (jnp.sum, lambda v: jnp.concatenate([v, v]), lambda v: v > 1, lambda v: jnp.ones(3)):
        x = put(X, LINE, *layout)
        polyax.jit(f, donate_argnums=0)(x)
        assert not x.is_deleted()
        same(x, X)


PROGRAMS = {
    "an operation": lambda x: jnp.log(x),
    "an operation that exchanges": lambda x: jnp.cumsum(jnp.log(x), 0),
    "jit": polyax.jit(lambda x: jnp.log(x).sum()),
    "shard_map": lambda x: _logs(x),
    "pmap": lambda x: _mapped_logs(np.asarray(x)),
}


@polyax.pmap
def _mapped_logs(row):
    return jnp.log(row)


def _logs(x, made={}):  # noqa: B006 one function, so that caches know it
    f = made.setdefault(0, polyax.shard_map(lambda v: jnp.log(v), mesh=LINE, in_specs=P("x"), out_specs=P("x")))
    return f(x)


@pytest.mark.parametrize("name", PROGRAMS)
def test_settings_tell_programs_apart(name):
    """A program that was compiled when nobody wanted to know of NaNs isn't the one that looks for them."""
    f, x = PROGRAMS[name], put(X - 1, LINE, "x")
    for _ in range(2):
        assert np.isnan(np.asarray(f(x))).any()
        with polyax.debug_nans(True), pytest.raises(FloatingPointError):
            np.asarray(f(x))


@pytest.mark.parametrize("name", ["jit", "shard_map"])
def test_settings_tell_runs_of_one_program_apart(name):
    """What was traced once is compiled again for who looks for NaNs."""
    x = put(X - 1, LINE, "x")
    closed = polyax.make_jaxpr(PROGRAMS[name])(x)
    for _ in range(2):
        assert np.isnan(np.asarray(eval_jaxpr(closed.jaxpr, closed.consts, x)[0])).any()
        with polyax.debug_nans(True), pytest.raises(FloatingPointError):
            np.asarray(eval_jaxpr(closed.jaxpr, closed.consts, x)[0])


# --- callbacks that compute on the devices which wait for them


def test_callbacks_that_compute_on_meshes():
    inner = on(LINE, lambda v: lax.scan(lambda c, _: (lax.psum(c, "x"), None), v, length=2)[0])
    on_grid = polyax.jit(lambda v: v @ v.T)
    cut, large = put(X, LINE, "x"), put(np.ones((N, 200_000), np.float32), LINE, "x")

    def ask(x):
        total = np.asarray(inner(put(X, LINE, "x"))) + np.asarray(inner(cut)) + np.asarray(inner(large))[:, :6]
        return x + total + np.asarray(on_grid(put(X, GRID, "a", "b"))).sum()

    expected = 3 * X + 2 * N * X.sum(0) + N * N + (X @ X.T).sum()
    typed = polyax.typeof(jnp.asarray(X))
    same(polyax.jit(lambda v: polyax.pure_callback(ask, typed, v) + 2 * v)(X), expected)
    own = polyax.ShapeDtypeStruct((1, 6), np.float32)
    mapped = on(LINE, lambda v: lax.psum(polyax.pure_callback(lambda x: ask(x)[:1], own, v), "x"), "x")
    assert np.isfinite(np.asarray(mapped(X))).all()


# --- several programs at once


def test_programs_of_several_threads():
    """Each waits for the other's device in some order: they must be started in one."""
    fs = [
        on(LINE, lambda v, k=k: lax.scan(lambda c, _: (lax.psum(c, "x") / N + k, None), v, length=20)[0])
        for k in (1, 2)
    ]
    x, failed = put(X, LINE, "x"), []

    def work(k):
        try:
            for _ in range(20):
                same(fs[k](x), np.tile(X.mean(0), (N, 1)) + 20 * (k + 1))
        except BaseException as e:
            failed.append(e)

    threads = [threading.Thread(target=work, args=(k,)) for k in (0, 1)] + [threading.Thread(target=work, args=(1,))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failed, failed


def test_arrays_that_are_dropped_while_they_are_read():
    f = on(LINE, lambda v: lax.scan(lambda c, _: (lax.psum(c, "x") / N + v, None), v, length=3)[0], "x")
    x = np.ones((N, 300_000), np.float32)
    for _ in range(5):
        outs = [f(put(x, LINE, "x")) for _ in range(3)]
        gc.collect()
        last = outs.pop()
        del outs
        put(x * 0, LINE, "x")  # what takes over memory that was let go
        same(last, x * 4)


# --- arguments that a program doesn't read


@pytest.mark.parametrize(
    ("x", "y", "where"),
    [
        (lambda d: polyax.device_put(1.0, d[3]), lambda d: polyax.device_put(2.0, d[2]), 2),
        (lambda d: polyax.device_put(1.0, d[3]), lambda d: jnp.float32(2), 0),
        (lambda d: put(X, LINE, "x"), lambda d: polyax.device_put(2.0, d[2]), 2),
        (lambda d: put(X, LINE, "x"), lambda d: 2.0, 0),
    ],
)
def test_a_program_runs_where_the_arguments_are_that_it_reads(x, y, where):
    devices = polyax.devices()
    f = polyax.jit(lambda x, y: y * 3)
    for _ in range(2):
        got = f(x(devices), y(devices))
        assert got.devices() == {devices[where]} and got.item() == 6
        assert got.committed == (where != 0)
    assert f(1.0, polyax.device_put(2.0, devices[1])).devices() == {devices[1]}
    assert f(x(devices), y(devices)).devices() == {devices[where]}


def test_arguments_that_are_kept_have_a_say_where_a_program_runs():
    x, y = (polyax.device_put(1.0, d) for d in polyax.devices()[2:])
    with pytest.raises(ValueError, match="Received incompatible devices for jitted computation"):
        polyax.jit(lambda x, y: y, keep_unused=True)(x, y)
    with pytest.raises(ValueError, match="argument y of .* and argument z of "):
        polyax.jit(lambda unread, y, z: y + z)(put(X, LINE, "x"), x, y)
    assert polyax.jit(lambda x: jnp.ones(3), keep_unused=True)(x).devices() == x.devices()
