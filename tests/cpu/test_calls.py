"""Whole calls in native code: which they are, that they do what the usual way does, and what they leave to it."""

from __future__ import annotations

import collections
import gc
import sys
import threading
import weakref
from collections.abc import Callable, Generator
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax.api.jit import PjitFunction
from polyax.runtime.contract.backend import Device
from polyax.runtime.contract.queue import HostQueue
from polyax.runtime.running.programs import Program
from polyax.runtime.running.whole import TRIED
from polyax_cpu import pool
from polyax_cpu.executable import OFTEN
from support.process import output

pytestmark = pytest.mark.skipif(
    not getattr(sys, "_is_gil_enabled", lambda: True)(), reason="calls go through Python without the interpreter's lock"
)


class Point(NamedTuple):
    x: Any
    y: Any


@pytest.fixture
def cpu() -> Generator[Device]:
    device = polyax.devices("cpu")[0]
    pool.native_calls.symbols()  # there before the first call asks for it
    with polyax.default_device(device):
        yield device


@pytest.fixture
def usual(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The arguments of calls that go the usual way."""
    calls: list[Any] = []
    real = PjitFunction.slowly
    monkeypatch.setattr(PjitFunction, "slowly", lambda self, *a: (calls.append(a), real(self, *a))[1])
    return calls


def arrays(*shape: int) -> Any:
    return jnp.arange(np.prod(shape, dtype=int), dtype=jnp.float32).reshape(shape) / 7


def same(x: Any, y: Any) -> None:
    """Equal trees of equal types, leaf by leaf."""
    assert polyax.tree.structure(x) == polyax.tree.structure(y)
    for a, b in zip(polyax.tree.leaves(x), polyax.tree.leaves(y), strict=True):
        assert (type(a), a.aval, a.device, a.committed) == (type(b), b.aval, b.device, b.committed)
        np.testing.assert_array_equal(a, b)


def twice(*xs: Any, **named: Any) -> Any:
    return polyax.tree.map(lambda x: x * 2, (xs, named))


ARGUMENTS: dict[str, Callable[[], tuple[Any, ...]]] = {
    "scalar": lambda: (jnp.float32(3) * 1,),
    "weak scalar": lambda: (jnp.asarray(3.0) * 1,),
    "array": lambda: (arrays(3, 4),),
    "empty": lambda: (arrays(0, 4),),
    "many": lambda: tuple(arrays(n) for n in range(9)),
    "none": lambda: (),
    "tuple": lambda: ((arrays(2), (arrays(3),), ()),),
    "list": lambda: ([arrays(2), [], [arrays(3)]],),
    "dictionary": lambda: ({"b": arrays(2), "a": {3: arrays(1), 1: arrays(2)}},),
    "None": lambda: ((None, arrays(2)),),
    "named tuple": lambda: (Point(arrays(2), Point(None, arrays(1))),),
    "ordered": lambda: (collections.OrderedDict(b=arrays(1), a=arrays(2)),),
    "default": lambda: (collections.defaultdict(list, b=arrays(1), a=arrays(2)),),
    "partial": lambda: (polyax.tree_util.Partial(max, arrays(1), default=arrays(2)),),
    "float": lambda: (2.5, -0.0, float("inf"), float("nan")),
    "int": lambda: (3, -(2**31)),
    "bool": lambda: (True, (False, arrays(1))),
    "numpy": lambda: (np.ones((2, 3), np.float32), np.arange(3, dtype=np.int8), np.zeros((0,), np.bool_)),
    "numpy scalar": lambda: (np.float32(3), np.int16(4)),
    "key": lambda: (polyax.random.key_data(polyax.random.key(3)),),
    "twice the same": lambda: (arrays(3),) * 2,
}


@pytest.mark.parametrize("case", ARGUMENTS)
@pytest.mark.parametrize("named", [False, True])
def test_calls_like_the_first_one_do_not_reach_python(cpu: Device, usual: list[Any], case: str, named: bool) -> None:
    f, args = polyax.jit(lambda *xs, **named: twice(*xs, **named)), ARGUMENTS[case]()
    call = (lambda: f(**{f"k{n}": x for n, x in enumerate(args)})) if named else lambda: f(*args)
    expected = call()
    usual.clear()
    for _ in range(3):
        same(call(), expected)
    assert not usual


RESULTS: dict[str, Callable[[Any], Any]] = {
    "leaf": lambda x: x + 1,
    "itself": lambda x: x,
    "twice itself": lambda x: (x, {"y": x}),
    "nothing": lambda x: (),
    "nobody": lambda x: None,
    "constants": lambda x: (jnp.zeros(3), 4.0, np.arange(2)),
    "the same twice": lambda x: (y := x + 1, [y, y]),
    "nested": lambda x: {"b": x + 1, "a": [x * 2, None]},
    "custom": lambda x: (Point(x + 1, x), collections.OrderedDict(z=x, a=x - 1)),
    "reshaped": lambda x: x.reshape(-1),
    "several steps": lambda x: (jnp.cumsum(x), jnp.sort(x * 3), x.T @ x),
}


@pytest.mark.parametrize("case", RESULTS)
def test_results_are_what_they_are_otherwise(cpu: Device, usual: list[Any], case: str) -> None:
    f, x = polyax.jit(RESULTS[case]), arrays(6)
    expected = f(x)
    usual.clear()
    for _ in range(3):
        same(f(x), expected)
    assert not usual


def test_what_is_closed_over_is_found(cpu: Device, usual: list[Any]) -> None:
    w, v = arrays(3), np.full(3, 2, np.float32)
    f = polyax.jit(lambda x: (w * x + v, w))
    f(2.0)
    usual.clear()
    same(f(3.0), (w * 3 + v, w))
    assert not usual


def test_static_arguments_are_compared_as_dictionaries_compare_keys(cpu: Device, usual: list[Any]) -> None:
    traced: list[Any] = []

    @partial(polyax.jit, static_argnums=1, static_argnames="how")
    def f(x: Any, n: Any, *, how: Any = "a") -> Any:
        traced.append((n, how))
        return x * n if how == "a" else x

    x = arrays(3)
    for n, how in ((2, "a"), (2, "b"), (3, "a"), (2.0, "a"), (True, "a"), (1, "a")):
        for _ in range(2):
            same(f(x, n, how=how), f(x, n, how=how))
    assert len(traced) == 6
    usual.clear()
    for n, how in ((2, "a"), (2, "b"), (3, "a")):
        assert f(x, n, how=how).dtype == jnp.float32
    assert not usual and len(traced) == 6
    with pytest.raises(ValueError, match="Non-hashable static"):
        f(x, [2])


def test_many_kinds_take_turns(cpu: Device, usual: list[Any]) -> None:
    f = polyax.jit(lambda x: x + 1)
    xs = [arrays(n) for n in range(2 * TRIED)]
    for _ in range(2):
        for x in xs:
            same(f(x), polyax.jit(lambda x: x + 1)(x))
    assert max(map(len, f._quick.own.values())) == TRIED
    usual.clear()
    for x in xs[-TRIED:]:
        f(x)
    assert not usual
    f(xs[0])
    f(xs[0])
    assert len(usual) == 1


# --- what is left to the usual way --------------------------------------------------------------------------------


def add(x: Any) -> Any:
    return x + 1


OTHERS: dict[str, Callable[[], Any]] = {
    "dtype": lambda: arrays(3).astype(jnp.int32),
    "shape": lambda: arrays(4),
    "rank": lambda: arrays(3, 1),
    "weak type": lambda: jnp.broadcast_to(1.0, (3,)),
    "container": lambda: [arrays(3)],
    "number": lambda: 2.0,
    "host": lambda: np.ones(3, np.float32),
    "other order": lambda: np.ones((3, 3), np.float32)[:, 0],
    "64 bits": lambda: np.ones(3),
}


@pytest.mark.parametrize("case", OTHERS)
def test_other_arguments_make_other_calls(cpu: Device, case: str) -> None:
    fun = lambda x: polyax.tree.map(lambda y: y + 1, x)
    f, x = polyax.jit(fun), OTHERS[case]()
    f(arrays(3))
    for _ in range(2):
        same(f(x), polyax.jit(lambda x: fun(x))(x))


def test_numbers_that_do_not_fit_are_refused_as_always(cpu: Device) -> None:
    f = polyax.jit(add)
    f(1), f(1.0)
    for _ in range(2):
        with pytest.raises(OverflowError):
            f(2**70)
        with pytest.raises(OverflowError):
            f(2**31)
    assert f(3).item() == 4
    with np.errstate(over="ignore"):
        assert f(1e300).item() == float("inf")


def test_deleted_arrays_are_refused(cpu: Device) -> None:
    f, x = polyax.jit(add), arrays(3)
    f(x)
    x.delete()
    with pytest.raises(RuntimeError, match="Array has been deleted"):
        f(x)


def test_errors_end_at_the_users_line(cpu: Device) -> None:
    f, x = polyax.jit(add), arrays(3)
    f(x)
    with pytest.raises(TypeError) as caught:
        f(object())
    assert caught.traceback[-1].path.name == "test_calls.py"


def test_transformations_trace_through(cpu: Device) -> None:
    f = polyax.jit(lambda x: jnp.sin(x).sum())
    x = arrays(3)
    f(x)
    np.testing.assert_allclose(polyax.grad(f)(x), np.cos(x), rtol=1e-6)
    np.testing.assert_allclose(polyax.vmap(f)(jnp.stack([x, x])), [f(x)] * 2, rtol=1e-6)
    assert "jit" in str(polyax.make_jaxpr(f)(x))


def test_settings_change_what_runs(cpu: Device) -> None:
    f = polyax.jit(lambda x: x / x)
    zero, seen = jnp.zeros(3), []
    assert np.isnan(f(zero)).all() and np.isnan(f(zero)).all()
    with polyax.debug_nans(True), pytest.raises(FloatingPointError):
        f(zero)
    g = polyax.jit(lambda x: (seen.append(type(x)), x * 1)[1])
    g(2.0), g(2.0)
    with polyax.disable_jit():
        g(2.0)
    assert seen[1:] == [float]
    with polyax.enable_x64(True):
        assert g(2.0).dtype == np.float64
    assert g(2.0).dtype == np.float32
    with polyax.no_execution(True), pytest.raises(RuntimeError, match="no_execution"):
        g(2.0)
    h = polyax.jit(lambda x: x * 1, donate_argnums=0)
    for _ in range(2):
        with polyax.no_execution(True), pytest.raises(RuntimeError, match="no_execution"):
            h(arrays(3))


def test_guards_see_copies_from_the_host() -> None:
    program = """
        import numpy as np, polyax
        f = polyax.jit(lambda x: x + 1)
        f(2.0), f(np.ones(3, np.float32)), f(2.0)
        with polyax.transfer_guard("disallow"):
            for x in (2.0, np.ones(3, np.float32)):
                try:
                    f(x)
                except Exception as e:
                    print(type(e).__name__)
    """
    assert output(program, POLYAX_PLATFORMS="cpu").split() == ["PolyaxRuntimeError"] * 2


def test_forgotten_programs_are_traced_anew(cpu: Device) -> None:
    seen: list[int] = []
    f = polyax.jit(lambda x: (seen.append(1), x + 1)[1])
    for forget in (f.clear_cache, polyax.clear_caches):
        f(1.0), f(1.0)
        forget()
    f(1.0)
    assert len(seen) == 3


def test_arrays_elsewhere_are_followed() -> None:
    program = """
        import polyax, polyax.numpy as jnp
        one, two = polyax.devices()
        f = polyax.jit(lambda x: x + 1)
        x = jnp.ones(3)
        for d in (one, two, one, two, two):
            y = f(polyax.device_put(x, d))
            print(y.device.id, float(y[0]))
        try:
            polyax.jit(lambda x, y: x + y)(polyax.device_put(x, one), polyax.device_put(x, two))
        except ValueError:
            print("apart")
    """
    found = output(program, POLYAX_PLATFORMS="cpu", POLYAX_NUM_CPU_DEVICES="2").split()
    assert found == ["0", "2.0", "1", "2.0", "0", "2.0", "1", "2.0", "1", "2.0", "apart"]


def test_what_is_in_the_making_is_waited_for(cpu: Device, usual: list[Any]) -> None:
    queue = cpu.queue
    assert isinstance(queue, HostQueue)
    f, x, go = polyax.jit(add), arrays(3), threading.Event()
    f(x)
    usual.clear()
    task = queue._submit(lambda: go.wait() and None, ())
    y = f(x)
    assert len(usual) == 1 and not y.is_ready()
    go.set()
    task.wait()
    np.testing.assert_allclose(f(y), np.asarray(x) + 2, rtol=1e-6)


# --- donation -----------------------------------------------------------------------------------------------------


def test_donated_arrays_are_deleted_and_their_memory_is_used(cpu: Device, usual: list[Any]) -> None:
    f = polyax.jit(lambda x, y: (x + y, y), donate_argnums=0)
    y = arrays(100)
    f(y + 0, y)
    usual.clear()
    x = y + 1
    where = x.unsafe_buffer_pointer()
    z, _ = f(x, y)
    assert x.is_deleted() and not y.is_deleted() and z.unsafe_buffer_pointer() == where
    np.testing.assert_allclose(z, 2 * np.asarray(y) + 1, rtol=1e-6)
    assert not usual


def test_what_others_see_is_not_written_to(cpu: Device) -> None:
    f = polyax.jit(lambda x: x * 2, donate_argnums=0)
    f(arrays(100))
    x = arrays(100) + 1
    view = np.asarray(x)
    before = view.copy()
    np.testing.assert_array_equal(f(x), before * 2)
    np.testing.assert_array_equal(view, before)
    assert x.is_deleted()


def test_an_array_can_not_be_donated_and_used(cpu: Device) -> None:
    f = polyax.jit(lambda x, y, z: (x + z, y * z), donate_argnums=(0, 1))
    new = lambda: arrays(100) + 1
    f(new(), new(), new())
    x, y = new(), new()
    for args in ((x, x, y), (x, y, x), (y, x, x)):
        with pytest.raises(RuntimeError, match="INVALID_ARGUMENT"):
            f(*args)
        assert not x.is_deleted() and not y.is_deleted()
    f(x, y, new())
    assert x.is_deleted() and y.is_deleted()


# --- errors, references, threads ----------------------------------------------------------------------------------


def fails(x: Any) -> Any:
    def check(v: Any) -> Any:
        if v[0] < 0:
            raise ArithmeticError("negative")
        return v

    return polyax.lax.fori_loop(0, 2, lambda _, c: polyax.pure_callback(check, x, c) + 1, x)


def test_errors_of_programs_leave_arguments_as_they_were(cpu: Device) -> None:
    f, x = polyax.jit(fails), arrays(3)
    expected = f(x)
    same(f(x), expected)
    count = sys.getrefcount(x)
    for _ in range(20):
        with pytest.raises(Exception, match="negative"):
            np.asarray(f(x - 1))
    same(f(x), expected)
    assert sys.getrefcount(x) == count


def objects_of(f: Any, args: Any) -> list[Any]:
    leaves = [x for x in polyax.tree.leaves(args) if type(x) is polyax.Array]
    return [*leaves, *[x.buffer for x in leaves], *[x.aval for x in leaves], args, None, NotImplemented, polyax.Array]


@pytest.mark.parametrize("case", [*ARGUMENTS, *RESULTS])
def test_no_reference_is_kept_or_lost(cpu: Device, case: str) -> None:
    fun = RESULTS.get(case, twice)
    f, args = polyax.jit(lambda *xs: fun(*xs)), ARGUMENTS.get(case, lambda: (arrays(6),))()
    quick = lambda: next(iter(f._quick.own.values()))[0]
    for _ in range(3):
        f(*args)
    wrong = (*args, 1), ([*args],), (jnp.zeros((7, 7)), *args[1:]), (Point(1, 2),) * len(args)
    for xs in wrong:
        assert quick()(xs, {}) is NotImplemented or not args
    gc.collect()
    watched = objects_of(f, args)
    before, blocks = [sys.getrefcount(x) for x in watched], sys.getallocatedblocks()
    for _ in range(1000):
        f(*args)
        for xs in wrong:
            quick()(xs, {})
    gc.collect()
    grown = [sys.getrefcount(x) - n for x, n in zip(watched, before, strict=True)]
    assert max(map(abs, grown)) < 50, grown
    assert sys.getallocatedblocks() - blocks < 500


def test_threads_call_while_others_drop_donate_and_fail() -> None:
    program = """
        import faulthandler, gc, random, sys, threading
        faulthandler.enable()
        sys.setswitchinterval(1e-6)
        import numpy as np, polyax, polyax.numpy as jnp
        step = polyax.jit(lambda p, g: polyax.tree.map(lambda a, b: a - 0.5 * b, p, g), donate_argnums=0)
        plain = polyax.jit(lambda p: {"s": [x + 1 for x in p.values()], "t": p})
        number = polyax.jit(lambda x, n: x * n, static_argnums=1)
        box = {"a": jnp.ones(3), "b": jnp.ones((2, 2))}
        new = lambda: {"a": jnp.ones(3) + 0, "b": jnp.zeros((2, 2)) + 1}
        errors = []

        def work(seed):
            rng, p = random.Random(seed), new()
            try:
                for n in range(1000):
                    what = rng.randrange(8)
                    if what == 0:
                        p = step(p, new())
                    elif what == 1:
                        q = plain(p)
                        assert float(q["s"][0][0]) == float(p["a"][0]) + 1
                        del q
                    elif what == 2:
                        assert number(2.0, n % 3).item() == 2.0 * (n % 3)
                    elif what == 3:
                        box["a"] = plain(p)["s"][0]
                    elif what == 4:
                        plain(box)
                    elif what == 5:
                        box["c"] = None; box.pop("c", None)
                    elif what == 6:
                        try:
                            step(p, p)
                        except RuntimeError:
                            pass
                        p = new()
                    else:
                        try:
                            plain({"a": object()})
                        except TypeError:
                            pass
                    if n % 200 == 0:
                        gc.collect()
            except BaseException as e:
                errors.append(repr(e))
                raise

        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for t in threads: t.start()
        for t in threads: t.join()
        print(len(errors), errors[:2])
        threading.Thread(target=lambda: [plain(new()) for _ in iter(int, 1)], daemon=True).start()
    """
    assert output(program, POLYAX_PLATFORMS="cpu").startswith("0 []")


def test_a_process_that_forks_calls_on() -> None:
    program = """
        import os, polyax, polyax.numpy as jnp
        f = polyax.jit(lambda p, g: [a - b for a, b in zip(p, g)], donate_argnums=0)
        p, g = [jnp.ones(3)], [jnp.ones(3) * 2]
        for _ in range(3):
            p = f(p, g)
        child = os.fork()
        for _ in range(100):
            p = f(p, g)
        if not child:
            os._exit(int(-float(p[0][0])))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), float(p[0][0]))
    """
    assert output(program, POLYAX_PLATFORMS="cpu").split() == ["205", "-205.0"]


def test_what_is_called_lives_no_longer_than_its_function(cpu: Device) -> None:
    w = arrays(3)
    f = polyax.jit(partial(jnp.add, w))
    f(1.0), f(1.0)
    seen = weakref.ref(w.buffer)
    del w, f
    polyax.clear_caches()
    gc.collect()
    assert seen() is None


OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "two arrays": lambda x: x + x,
    "a Python number": lambda x: x * 2.5,
    "one array": jnp.sin,
    "several results": lambda x: polyax.lax.top_k(x, 2),
    "a product": lambda x: x @ x.T,
    "a reduction": lambda x: x.sum(0),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_that_were_met_before_run_in_native_code(
    cpu: Device, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    operation, x = OPERATIONS[name], arrays(5, 4)
    wanted = operation(x)
    ran: list[Program] = []
    real = Program.run
    monkeypatch.setattr(Program, "run", lambda self, args: (ran.append(self), real(self, args))[1])
    same(operation(x), wanted)
    assert not ran
    with polyax.debug_nans(True):
        same(operation(x), wanted)
    assert ran, "where results are looked at they are made as usual"


def test_operations_on_what_cannot_run_natively_are_right(cpu: Device) -> None:
    x = arrays(3)
    for _ in range(3):
        same(x + x, x * 2)
        same(x + np.float32(1), x - -1)
        gone = x + 1
        gone.delete()
        with pytest.raises(RuntimeError, match="deleted"):
            gone + x
    slow = polyax.jit(lambda x: x @ x @ x)
    big = jnp.ones((300, 300))
    np.testing.assert_array_equal(slow(big) + slow(big), np.full((300, 300), 180_000.0))


def test_no_call_waits_for_the_code_of_native_calls(cpu: Device, usual: list[Any], monkeypatch: Any) -> None:
    asked: list[None] = []
    coming = SimpleNamespace(ready=False, prepare=lambda: asked.append(None))
    f, x = polyax.jit(lambda x: x + 1), arrays(3)
    with monkeypatch.context() as patch:
        patch.setattr(pool, "native_calls", coming)
        expected = f(x)
        assert not asked, "a program that runs once needs none"
        same(f(x), expected)
        assert len(usual) == 2 and asked
    for _ in range(3):  # the first of them asks again
        same(f(x), expected)
    assert len(usual) == 3


def test_a_program_that_runs_once_loads_nothing_for_calls_or_large_arguments() -> None:
    code = """
        import polyax, polyax.numpy as jnp
        from polyax_cpu import pool
        exact = lambda: [part.ready for part in pool._exact]
        print(polyax.jit(lambda x: x * 2)(jnp.ones(3)), pool.native_calls.ready, exact())
        print(polyax.jit(jnp.sin)(jnp.zeros(3)), exact())
    """
    text = output(code, POLYAX_PLATFORMS="cpu")
    assert text.splitlines() == ["[2. 2. 2.] False [False, False]", "[0. 0. 0.] [True, False]"]


def test_who_calls_often_waits_for_the_code_of_native_calls(cpu: Device, usual: list[Any], monkeypatch: Any) -> None:
    made = pool.native_calls.symbols()
    coming = SimpleNamespace(ready=False, prepare=lambda: None)
    coming.symbols = lambda: (setattr(coming, "ready", True), made)[1]
    monkeypatch.setattr(pool, "native_calls", coming)
    f, x = polyax.jit(lambda x: x + 1), arrays(3)
    for _ in range(4 * OFTEN):
        f(x)
    assert len(usual) <= OFTEN + 1


def test_nothing_of_a_first_call_waits_for_the_collector() -> None:
    program = """
        import gc
        import polyax
        import polyax.numpy as jnp

        x = jnp.zeros([])
        polyax.jit(lambda x: x.sum())(x).block_until_ready()  # what is imported late
        gc.collect()
        f = polyax.jit(lambda x: x.sum())
        f(x).block_until_ready()
        print(gc.collect())
    """
    assert output(program, POLYAX_PLATFORMS="cpu") == "0"
