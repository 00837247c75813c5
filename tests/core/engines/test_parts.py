"""Whole programs for engines: without calls, of allowed primitives, in parts."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest

import polyax as jax
import polyax.numpy as jnp
from polyax import lax
from polyax.backend import ClosedJaxpr, NoLowering, check_jaxpr, decompose, inline_calls, on_host, partition
from polyax.ir.jaxpr import Literal
from polyax.reference.interpreter import evaluate

X = np.linspace(-2, 2, 6, dtype=np.float32).reshape(2, 3)
TABLE = np.arange(6, dtype=np.float32).reshape(3, 2)


def names(program: ClosedJaxpr) -> list[str]:
    return [e.primitive.name for e in program.eqns]


def value(program: ClosedJaxpr, *args: Any) -> list[np.ndarray]:
    return evaluate(program.jaxpr, [*map(np.asarray, program.consts), *args])


def nested(x: Any) -> Any:
    """Calls in calls, with constants and functions with rules of their own."""
    inner = jax.jit(lambda y: jax.nn.relu(y) @ jnp.asarray(TABLE))
    return jax.checkpoint(lambda x: jnp.sin(jax.jit(inner)(x)))(x), x


def test_calls_are_written_out() -> None:
    program = jax.make_jaxpr(nested)(X)
    flat = inline_calls(program)
    check_jaxpr(flat.jaxpr)
    assert not {"jit", "remat2", "custom_jvp_call"} & set(names(flat))
    assert flat.in_avals == program.in_avals and flat.out_avals == program.out_avals
    for got, want in zip(value(flat, X), value(program, X), strict=True):
        np.testing.assert_array_equal(got, want)


def test_loops_keep_their_programs() -> None:
    program = jax.make_jaxpr(jax.jit(lambda x: lax.fori_loop(0, 3, lambda i, x: jax.jit(jnp.sin)(x), x)))(X)
    assert names(inline_calls(program)) in (["scan"], ["while"])


def test_what_is_allowed_stays_and_what_is_made_of_nothing_stays() -> None:
    program = jax.make_jaxpr(lambda x: lax.reduce_window(jnp.sin(x), 0.0, lax.add, (1, 2), (1, 1), "SAME"))(X)
    assert names(decompose(program, lambda e: True)) == names(inline_calls(program))
    plain = decompose(program, lambda e: False)
    assert "sin" in names(plain) and "reduce_window_sum" not in names(plain)
    np.testing.assert_allclose(value(plain, X)[0], value(program, X)[0], rtol=1e-6)


def run_parts(program: ClosedJaxpr, parts: Any, *args: Any) -> list[np.ndarray]:
    """Part by part, dropping what no later part reads."""
    env = dict(zip((*program.constvars, *program.invars), [*map(np.asarray, program.consts), *args], strict=True))
    for part in parts:
        results = value(part.program, *(env[v] for v in part.program.invars))
        for v in part.dropped:
            del env[v]
        env.update(zip(part.program.outvars, results, strict=True))
    return [np.asarray(v.val) if isinstance(v, Literal) else env[v] for v in program.outvars]


def test_what_is_made_of_itself_stays() -> None:
    """Bits of one width are nothing simpler; those of others are shifted."""
    same = jax.make_jaxpr(lambda x: lax.bitcast_convert_type(x, jnp.int32))(X)
    assert names(decompose(same, lambda e: False)) == ["bitcast_convert_type"]
    narrow = jax.make_jaxpr(lambda x: lax.bitcast_convert_type(x, jnp.uint8))(X)
    found = decompose(narrow, lambda e: False)
    check_jaxpr(found.jaxpr)
    np.testing.assert_array_equal(value(found, X)[0], X.view(np.uint8).reshape(2, 3, 4))


@pytest.mark.parametrize("left_out", [{"sin"}, {"mul", "exp"}, {"add"}, set[str]()], ids=lambda s: "-".join(sorted(s)))
def test_parts_compute_the_whole(left_out: set[str]) -> None:
    def f(x: Any, y: Any) -> Any:
        a, b = jnp.sin(x) * 2, jnp.exp(y) + x
        return a + b, jnp.sin(b) * a, x, 1.0

    program = inline_calls(jax.make_jaxpr(f)(X, X + 1))
    parts = partition(program, lambda e: "left out" if e.primitive.name in left_out else None)
    assert all(one.taken != other.taken for one, other in itertools.pairwise(parts))
    assert sorted(n for p in parts for n in names(p.program)) == sorted(names(program))
    for part in parts:
        check_jaxpr(part.program.jaxpr)
        assert part.taken == (not left_out & set(names(part.program)))
        assert set(part.reasons) == (set() if part.taken else set(names(part.program)))
    for got, want in zip(run_parts(program, parts, X, X + 1), value(program, X, X + 1), strict=True):
        np.testing.assert_array_equal(got, want)


def test_independent_work_needs_no_further_part() -> None:
    """Ten chains through the host: the engine runs twice, not twenty times."""
    program = inline_calls(jax.make_jaxpr(lambda x: [jnp.sin(x * n) + n for n in range(10)])(X))
    parts = partition(program, lambda e: "no sine" if e.primitive.name == "sin" else None)
    assert [part.taken for part in parts] == [True, False, True]


def test_effects_stay_in_order() -> None:
    def f(x: Any) -> Any:
        jax.debug.print("{}", jnp.sin(jnp.cos(x)), ordered=True)
        jax.debug.print("{}", x, ordered=True)
        return x

    program = inline_calls(jax.make_jaxpr(f)(1.0))
    parts = partition(program, lambda e: None if e.primitive.name in ("sin", "cos") else "on the host")
    printed = [e for p in parts for e in p.program.eqns if e.effects]
    assert printed == [e for e in program.eqns if e.effects]


def test_programs_of_many_equations_are_linear_work() -> None:
    def f(x: Any) -> Any:
        for _ in range(3000):
            x = jnp.sin(x) + 1
        return x

    program = inline_calls(jax.make_jaxpr(f)(1.0))
    assert len(partition(program, lambda e: "no sine" if e.primitive.name == "sin" else None)) == 6000


def test_the_host_runs_what_is_allowed_there() -> None:
    program = jax.make_jaxpr(lambda x: jnp.sin(x) + lax.zeta(x + 3, jnp.ones_like(x)))(X)
    with jax.config.override(host_fallback="allow"):
        run = on_host(program, "mine")
    np.testing.assert_allclose(run([X])[0], value(decompose(program, lambda e: False), X)[0], rtol=1e-6)


def test_the_host_warns_once_and_refuses() -> None:
    program = inline_calls(jax.make_jaxpr(jnp.sin)(X))
    with jax.config.override(host_fallback="warn"):
        with pytest.warns(UserWarning, match="'sin' runs in NumPy on the host, not on mine_too: no sine"):
            on_host(program, "mine_too", {"sin": "no sine"})
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            on_host(program, "mine_too", {"sin": "no sine"})
    with jax.config.override(host_fallback="error"):
        with pytest.raises(NoLowering, match="mine can't run 'sin': no sine; on the host: config.host_fallback"):
            on_host(program, "mine", {"sin": "no sine"})
        np.testing.assert_allclose(on_host(program, "mine", library={"sin"})([X])[0], np.sin(X), rtol=1e-6)
