"""Loops and branches as native functions: what they compute, against NumPy in float64, and what their code is."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import polyax
from polyax import lax
from polyax import numpy as jnp
from polyax.ir.config import config
from polyax.runtime.contract.queue import HostQueue
from polyax_cpu import compiler, executable, loops, machine_code

pytestmark = pytest.mark.usefixtures("native")
R = np.random.default_rng(3)
XS = R.uniform(-1, 1, 12)


@pytest.fixture(autouse=True)
def on_cpu() -> Iterator[None]:
    with config.override(enable_x64=True), polyax.default_device(polyax.devices("cpu")[0]):
        yield


def agree(f: Callable[..., Any], *args: Any) -> None:
    """With jit, without, and with NumPy step by step."""
    with polyax.default_device(polyax.devices("reference")[0]):
        want = [np.asarray(y) for y in polyax.tree.leaves(f(*args))]
    for way in (f, polyax.jit(f)):
        for got, y in zip(polyax.tree.leaves(way(*args)), want, strict=True):
            np.testing.assert_allclose(np.asarray(got), y, rtol=1e-12, atol=1e-12)


# --- values ----------------------------------------------------------------------------------------------------------

SMALL, LARGE = R.uniform(-1, 1, (3, 3)), R.uniform(-1, 1, (9, 9))
STATES = {"scalar": np.float64(0.3), "small": SMALL, "large": LARGE}


@pytest.mark.parametrize("length", [0, 1, 2, 7])
@pytest.mark.parametrize("name", STATES)
def test_carries_end_where_they_are_wanted(name: str, length: int) -> None:
    """Some have two places by turns, which are exchanged; an odd number of turns leaves them the other way around."""

    def body(i: Any, c: Any) -> Any:
        x, y, z = c
        return jnp.sin(y) + x.T * i, x, z * 1.1

    agree(lambda x: lax.fori_loop(0, length, body, (x, x + 1, 2 * x)), STATES[name])


@pytest.mark.parametrize("limit", [0.0, 3.0, 4.0, 11.0])
@pytest.mark.parametrize("name", STATES)
def test_searches_end_after_any_number_of_turns(name: str, limit: float) -> None:
    def run(x: Any, limit: Any) -> Any:
        test = lambda c: jnp.sum(c[0]) * 0 + c[2] < limit
        return lax.while_loop(test, lambda c: (c[1].T + 0.5, c[0], c[2] + 1), (x, -x, 0.0))

    agree(run, STATES[name], limit)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", STATES)
def test_rows_of_operands_and_results_move_on(name: str, reverse: bool) -> None:
    xs = np.stack([STATES[name] * k for k in range(5)])
    step = lambda c, x: (0.5 * c + x, (c, x * x))
    agree(lambda xs: lax.scan(step, xs[0], xs, reverse=reverse), xs)


def test_elements_are_set_and_added_to() -> None:
    def body(i: Any, x: Any) -> Any:
        return x.at[i % 5].set(i * 0.5).at[3].add(x[(i + 1) % 12])

    agree(lambda x: lax.fori_loop(0, 30, body, x), XS)


def test_branches_change_what_is_carried() -> None:
    def body(c: Any, i: Any) -> Any:
        x, s = c
        ways = [lambda x: x.at[i].add(1.0), lambda x: x * 0.9, lambda x: x]
        x = lax.switch(i % 4, ways, x)
        s = lax.cond(x[0] > s, lambda s: s + 0.1, lambda s: jnp.sin(s), s)
        return (x, s), s

    agree(lambda x: lax.scan(body, (x, 0.5), jnp.arange(9)), XS)


def test_a_branch_alone() -> None:
    for n in range(4):
        agree(lambda x, n: lax.switch(n, [jnp.sin, lambda x: x[::-1], lambda x: x], x), XS, n)


def test_loops_in_loops_in_branches() -> None:
    def root(a: Any) -> Any:
        return lax.while_loop(lambda x: abs(x * x - a) > 1e-6, lambda x: 0.5 * (x + a / x), a)

    def body(c: Any, x: Any) -> Any:
        inner = lax.fori_loop(0, 3, lambda i, y: y + root(abs(x) + i), c)
        return lax.cond(x > 0, lambda: inner, lambda: lax.scan(lambda c, y: (c + y, None), c, XS)[0]), inner

    agree(lambda xs: lax.scan(body, 0.1, xs), XS)


def test_gradients_and_maps() -> None:
    def f(x: Any) -> Any:
        step = lambda c, y: (jnp.tanh(c * y + c.sum()), c[0])
        return sum(jnp.sum(y) for y in polyax.tree.leaves(lax.scan(step, x, XS)))

    agree(polyax.grad(f), SMALL[0])
    agree(polyax.vmap(polyax.grad(f)), SMALL)


def test_complex_numbers_and_bytes() -> None:
    zs = XS + 1j * XS[::-1]
    agree(lambda zs: lax.scan(lambda c, z: (c * z * 0.5 + 1j, (abs(c), c.real > 0)), zs[0], zs), zs)


@pytest.mark.parametrize("threads", [1, 3])
def test_large_steps_are_called_and_shared_by_threads(threads: int, code: list[str]) -> None:
    x = R.uniform(-1, 1, (700, 600)).astype(np.float32)
    with config.override(num_threads=threads):
        found = polyax.jit(lambda x: lax.fori_loop(0, 3, lambda _, y: jnp.sin(y).T.reshape(y.shape), x))(x)
    want = x.astype(float)
    for _ in range(3):
        want = np.sin(want).T.reshape(want.shape)
    np.testing.assert_allclose(np.asarray(found), want, atol=1e-6)
    assert "call void @step0(" in code[-1] or "@polyax_parallel(ptr @step0" in code[-1]
    assert ("call void @polyax_parallel" in code[-1]) == (threads > 1)


@pytest.mark.parametrize("long", [3, 300])
def test_long_loops_call_all_their_steps(long: int, monkeypatch: pytest.MonkeyPatch, code: list[str]) -> None:
    """Loops within are functions of their own then."""
    monkeypatch.setattr(loops, "LONG", long)

    def body(c: Any, x: Any) -> Any:
        for _ in range(3):
            c = lax.fori_loop(0, 2, lambda i, y: jnp.cumsum(y)[::-1] * 0.1 + i, jnp.sin(c[::-1]))
        return c @ jnp.eye(3), c

    agree(lambda x: lax.scan(body, x, XS), SMALL[0])
    assert (len(code) > 2) == (long == 3)


# --- code ------------------------------------------------------------------------------------------------------------


def small_loops() -> dict[str, tuple[Callable[..., Any], Any]]:
    def many(c: Any, x: Any) -> Any:
        return tuple(0.9 * a + 0.1 * b * x for a, b in zip(c, c[1:] + c[:1], strict=True)), None

    return {
        "a scalar and an output": (lambda xs: lax.scan(lambda c, x: (0.9 * c + x, c), xs[0], xs), XS),
        "writes": (lambda x: lax.fori_loop(0, 12, lambda i, x: x.at[i].set(i * 0.5), x), np.zeros(50)),
        "sixty carries": (lambda xs: lax.scan(many, tuple(xs[k % 12] for k in range(60)), xs)[0], XS),
        "complex": (lambda z: lax.scan(lambda c, x: (c * x + 1j, c), z[0], z), XS + 1j),
        "a search": (lambda x: lax.while_loop(lambda x: abs(x) > 1e-3, lambda x: x * 0.5, x[0]), XS),
        "a branch": (
            lambda xs: lax.scan(lambda c, x: (lax.cond(x > c, lambda c: c + 1, lambda c: c * x, c), c), xs[0], xs),
            XS,
        ),
    }


@pytest.mark.parametrize("name", small_loops())
def test_small_loops_call_nothing_and_keep_their_state_in_registers(name: str, code: list[str]) -> None:
    f, x = small_loops()[name]
    agree(f, x)
    assert code and not any("@step" in text for text in code)
    when_to_ask = int("@polyax_ask" in code[-1])  # a local of the loop whose length isn't known
    assert "alloca" in code[-1] and str(compiler.optimize(code[-1])).count("alloca") == when_to_ask
    assert when_to_ask == (name == "a search")


def test_a_search_asks_one_thing_in_the_end(code: list[str]) -> None:
    """Where its test fails it is over: whether it has come to the end of a stretch is asked behind a turn alone."""
    root = lambda a: lax.while_loop(lambda x: jnp.abs(x * x - a) > 1e-9, lambda x: 0.5 * (x + a / x), a)
    agree(lambda xs: lax.map(root, jnp.abs(xs) + 0.5), XS)
    text = str(compiler.optimize(code[-1]))
    assert text.count("fcmp ogt") == 1 and text.count("call i64 @polyax_ask(") == 1
    end = text[text.index("\nend") :]
    assert "store" in end[: end.index("  br ")] and "icmp" not in end[: end.index("store")]


def test_linear_algebra_in_a_loop_is_two_calls(code: list[str]) -> None:
    def body(_: Any, x: Any) -> Any:
        return jnp.linalg.cholesky(x @ x.T + jnp.eye(9))

    agree(lambda x: lax.fori_loop(0, 3, body, x), LARGE)
    assert {line.split("(")[0] for line in code[-1].splitlines() if "call void @step" in line} == {
        "call void @step0",
        "call void @step1",
    }


def count_kernels(monkeypatch: pytest.MonkeyPatch, written: list[Any]) -> None:
    """Adds to ``written`` for each kernel whose code is written into a loop."""
    real = loops.LlvmEmitter
    monkeypatch.setattr(loops, "LlvmEmitter", lambda *args, **how: [written.append(args), real(*args, **how)][1])


def test_equal_kernels_are_called_where_there_are_many(monkeypatch: pytest.MonkeyPatch, code: list[str]) -> None:
    written = list[Any]()
    count_kernels(monkeypatch, written)
    monkeypatch.setattr(loops, "INLINED_EQUAL", 1.5 * loops.FUNCTION)

    def body(_: Any, x: Any) -> Any:
        for _ in range(5):
            x = jnp.sin(x) @ jnp.eye(3)
        return x

    polyax.jit(lambda x: lax.fori_loop(0, 3, body, x))(SMALL).block_until_ready()
    assert sum("sin" in kernel.primitives for _, kernel, *_ in written) == 1
    assert code[-1].count("call void @step0(") == 1


def test_small_products_of_any_layout_are_part_of_loops(code: list[str]) -> None:
    """BLAS would need copies of the operands of each."""
    weights = R.uniform(-1, 1, (4, 3, 3))

    def body(_: Any, x: Any) -> Any:
        return jnp.einsum("k,akb->ab", jnp.einsum("abc,ca->b", weights, x.T), weights)[:, :3] * 0.1

    agree(lambda x: lax.fori_loop(0, 3, body, x), R.uniform(-1, 1, (4, 3)))
    assert code and not any("@step" in text for text in code)


@pytest.mark.parametrize("work", [1, 1500])
def test_large_functions_get_no_vectors_of_straight_code(work: int, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: set[bool] = set()
    real = compiler.compile

    def noted(text: str, level: int = 2, straight: bool = True) -> bytes:
        if "@control(" in text:
            asked.add(straight)
        return real(text, level, straight)

    monkeypatch.setattr(loops, "STRAIGHT_WORK", work)
    monkeypatch.setattr(machine_code, "kept", lambda key: None)
    monkeypatch.setattr(compiler, "compile", noted)
    agree(lambda x: lax.fori_loop(0, 3, lambda _, y: jnp.sin(y) + y[::-1], x), SMALL)
    assert asked == {work > 1}


def test_searches_are_handed_over_while_they_take_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody knows their turns; what they took is what the next ones are taken to take."""
    handed, now, takes = list[int](), [0], [5_000]
    real = HostQueue._submit

    def submit(self: HostQueue, *args: Any) -> Any:
        handed.append(len(handed))
        return real(self, *args)

    def clock() -> int:
        now[0] += takes[0]
        return now[0]

    def call() -> bool:
        """Whether it was handed over."""
        before = len(handed)
        np.asarray(search(xs))
        return len(handed) > before

    monkeypatch.setattr(HostQueue, "_submit", submit)
    monkeypatch.setattr(executable, "perf_counter_ns", clock)
    search = polyax.jit(lambda xs: lax.map(lambda x: lax.while_loop(lambda c: c < 2, lambda c: jnp.sin(c) + 2, x), xs))
    xs = jnp.linspace(0.0, 1.0, 1000)
    calls = [call() for _ in range(9)]
    assert calls[0] and not calls[-1] and calls == sorted(calls, reverse=True)
    takes[0] = 10_000_000
    assert not call() and call(), "the first one was guessed wrongly"
    takes[0] = 5_000
    assert [call() for _ in range(5)] == [True, True, True, False, False]


# --- compiling -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [1, 2])
def test_loops_are_compiled_beside_the_thread_that_writes_them(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By as many threads as programs have; the one that asked does all of it where that is one."""
    met: list[bool] = []
    real = machine_code.object_code

    def object_code(text: str, *how: Any) -> bytes:
        met.append(threading.current_thread() is asking)
        return real(text, *how)

    def two(x: Any) -> Any:
        grown = lax.fori_loop(0, 3, lambda i, c: c * 1.5 + i, x)
        return grown, lax.while_loop(lambda c: jnp.sum(c) < 50, lambda c: c * 2.0, jnp.abs(x) + 0.25)

    asking = threading.current_thread()
    with config.override(num_threads=threads):
        lowered = polyax.jit(two).lower(SMALL)
        monkeypatch.setattr(machine_code, "kept", lambda key: None)
        monkeypatch.setattr(machine_code, "object_code", object_code)
        lowered.compile()
    assert met == [threads == 1] * 2


def test_an_error_of_the_compiler_reaches_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    def object_code(*_: Any) -> bytes:
        raise RuntimeError("no registers left")

    monkeypatch.setattr(machine_code, "object_code", object_code)
    with pytest.raises(RuntimeError, match="no registers left"):
        polyax.jit(lambda x: lax.fori_loop(0, 3, lambda i, c: c * 2.5 + i, x))(SMALL)


def test_kernels_of_loops_are_not_written_again_where_the_code_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    kept, written = dict[str, bytes](), list[Any]()
    monkeypatch.setattr(machine_code, "kept", kept.get)
    monkeypatch.setattr(machine_code, "keep", kept.__setitem__)
    count_kernels(monkeypatch, written)
    run = lambda scale: lambda x: lax.fori_loop(0, 5, lambda i, c: jnp.sin(c) * scale + c.sum(), x)
    first, again, other = (polyax.jit(run(scale))(SMALL) for scale in (2.5, 2.5, 2.0))
    count = len(written)
    assert count and len([key for key in kept if key.startswith("control ")]) == 2
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    polyax.jit(run(2.0))(SMALL)
    assert len(written) == count
