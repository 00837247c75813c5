"""What is made from programs: made once, whatever threads ask for it, and gone when the programs are."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

import polyax as jax
import polyax.numpy as jnp
from polyax import lax
from polyax.control.inner.programs import hoisted, inlined
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.transforms import memo
from support.threads import together


def programs_alive() -> int:
    gc.collect()
    return sum(isinstance(o, ClosedJaxpr) for o in gc.get_objects())


def soon(at_most: int) -> bool:
    """Whether no more programs are alive than ``at_most``, once the queues' threads have let go of theirs."""
    return any(programs_alive() <= at_most or time.sleep(0.1) for _ in range(50))


def jitted() -> Any:
    return jax.jit(lambda x: jnp.sin(x) * 2)


def custom(fun: Callable[..., Any]) -> Any:
    rule = jax.custom_vjp(fun)
    rule.defvjp(lambda x: (x * 2, None), lambda _, g: (g * 2,))
    return rule


def loop(x: Any) -> Any:
    return lax.scan(lambda c, _: (jnp.sin(c), None), x, None, length=5)[0]


MAKERS: dict[str, Callable[[], Any]] = {
    "call": lambda: jitted()(1.0),
    "trace": lambda: jax.make_jaxpr(jitted())(1.0),
    "gradient": lambda: jax.grad(jitted())(1.0),
    "mapped": lambda: jax.vmap(jitted())(jnp.ones(3)),
    "loop": lambda: jax.jit(jax.grad(lambda x: loop(x)))(1.0),
    "while": lambda: lax.while_loop(lambda c: c < 3, lambda c: c + 1, 0.0),
    "branches": lambda: jax.grad(lambda x: lax.cond(x > 0, lambda x: x * 2, lambda x: x, x))(1.0),
    "checkpoint": lambda: jax.grad(jax.checkpoint(lambda x: jnp.sin(jnp.sin(x))))(1.0),
    "own rule": lambda: jax.grad(jax.jit(custom(lambda x: x * 2)))(1.0),
    "devices": lambda: jax.pmap(lambda x: x * 2)(jnp.ones((1, 3))),
}


@pytest.mark.parametrize("maker", MAKERS)
def test_programs_go_with_their_functions(maker: str, platform: str) -> None:
    make = MAKERS[maker]
    make()
    before = programs_alive()
    for _ in range(20):
        make()
    assert soon(before)


def test_what_holds_its_program_goes_with_it() -> None:
    closed = jax.make_jaxpr(lambda x: jnp.sin(x))(1.0)
    assert hoisted(closed)[0] is closed and inlined(closed) is closed
    before = programs_alive()
    del closed
    assert soon(before - 1)


def test_keyword_order_means_nothing() -> None:
    calls = []

    @memo.memoize_by_jaxpr
    def derive(program: ClosedJaxpr, a: int, b: int) -> int:
        calls.append(1)
        return a - b

    closed = jax.make_jaxpr(lambda x: x)(1.0)
    assert derive(closed, a=3, b=1) == derive(closed, b=1, a=3) == 2
    assert len(calls) == 1


# --- once ---------------------------------------------------------------------------------------------------------


def test_threads_get_what_one_of_them_makes() -> None:
    table: dict[str, object] = {}
    calls, pause = [], threading.Event()

    def make() -> object:
        calls.append(1)
        pause.wait(0.05)
        return object()

    assert len(set(together(lambda: memo.once(table, "key", make)))) == len(calls) == 1


def test_other_keys_are_not_waited_for() -> None:
    table: dict[str, str] = {}
    entered, leave = threading.Event(), threading.Event()

    def slow() -> str:
        entered.set()
        assert leave.wait(60)
        return "slow"

    thread = threading.Thread(target=lambda: memo.once(table, "slow", slow))
    thread.start()
    assert entered.wait(60)
    assert memo.once(table, "quick", lambda: "quick") == "quick"
    assert memo.once(table, "slow", lambda: "mine", wait=False) == "mine", "who can't wait makes its own"
    leave.set()
    thread.join(60)
    assert table == {"quick": "quick", "slow": "mine"}


def test_a_thread_may_ask_again_for_what_it_makes() -> None:
    table: dict[str, int] = {}
    assert memo.once(table, "key", lambda: memo.once(table, "key", lambda: 1) + 1) == 1


def test_after_an_error_the_next_one_tries() -> None:
    table: dict[str, int] = {}
    with pytest.raises(ZeroDivisionError):
        memo.once(table, "key", lambda: 1 // 0)
    assert memo.once(table, "key", lambda: 2) == 2
    assert not memo._making


def test_what_is_kept_can_be_forgotten() -> None:
    closed = jax.make_jaxpr(lambda x: x)(1.0)
    first = memo.kept(closed, "key", object)
    assert memo.kept(closed, "key", object) is first
    memo.forget()
    assert memo.kept(closed, "key", object) is not first
