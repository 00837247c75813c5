"""Each retrace can be explained: the argument that differs from the closest call seen before, and how."""

from __future__ import annotations

import logging
from typing import Any

import pytest

import polyax
import polyax.numpy as jnp
from support.process import run


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> Any:
    caplog.set_level(logging.WARNING, "polyax")
    with polyax.explain_cache_misses(True):
        yield lambda: [r.getMessage() for r in caplog.records if "TRACING CACHE MISS" in r.getMessage()]


def scaled(x: Any, n: int, *, d: Any = None) -> Any:
    return x * n


X = jnp.ones(3)
CALLS: dict[str, tuple[Any, Any, str]] = {
    "shape": (X, jnp.ones(4), "different input types:\n  * at x, now f32[4] and before f32[3]"),
    "dtype": (X, jnp.ones(3, int), "* at x, now i32[3] and before f32[3]"),
    "weak type": (jnp.float32(1), 1.0, "* at x, now f32[]{weak_type=True} and before f32[]{weak_type=False}"),
    "leaf": ({"a": X, "b": X}, {"a": X, "b": jnp.ones(2)}, "* at x['b'], now f32[2] and before f32[3]"),
    "structure": ([X], (X,), "* at args[0], now <class 'tuple'> and before <class 'list'>, so their Python types"),
    "length": (
        [X],
        [X, X],
        "different input pytree:\n  * at args[0], now list of length 2 and before list of length 1",
    ),
    "keys": ({"a": X}, {"b": X}, "('b',) and before <class 'dict'> with pytree metadata ('a',)"),
}


@pytest.mark.parametrize("case", CALLS)
def test_the_argument_is_named(case: str, told: Any) -> None:
    before, now, message = CALLS[case]
    f = polyax.jit(lambda x: polyax.tree.leaves(x)[0] + 1)
    f(before), f(now), f(now)
    first, second = told()
    assert "never seen function" in first and message in second


def test_static_values_are_shown(told: Any) -> None:
    f = polyax.jit(scaled, static_argnums=1)
    f(X, 2), f(X, 3), f(X, 3.0)
    _, second, third = told()
    assert "* at static argument 1, now 3 of type int and before 2 of type int" in second
    assert "now 3.0 of type float and before" in third and "scaled defined at" in third


def test_settings_and_axes_are_shown(told: Any) -> None:
    f = polyax.jit(lambda x: x + 1)
    f(X)
    with polyax.default_matmul_precision("highest"):
        f(X)
    polyax.vmap(f, axis_name="i")(jnp.ones((2, 3)))
    _, second, third = told()
    assert "Tracing context doesn't match, e.g. due to config or context manager:" in second
    assert "* jax_default_matmul_precision differs: now highest and before None" in second
    assert "mapped axes, now {'i': 2} and before {}" in third


def test_the_closest_call_is_compared(told: Any) -> None:
    f = polyax.jit(lambda x, y: x)
    f(X, X), f(jnp.ones(2), jnp.ones(2)), f(jnp.ones(2), X)
    assert told()[2].count("  * at") == 1


def test_functions_defined_again(told: Any) -> None:
    for _ in range(2):
        polyax.jit(lambda x: x + 1)(X)
    first, second = told()
    assert "defined on the same line" in second and "defined on the same line" not in first
    assert "test_cache_misses.py" in second.splitlines()[0]


def test_nothing_is_said_unless_asked(caplog: pytest.LogCaptureFixture) -> None:
    polyax.jit(lambda x: x)(X)
    assert not [r for r in caplog.records if "TRACING" in r.getMessage()]


def test_asked_for_by_the_environment() -> None:
    program = "import polyax; polyax.jit(lambda x: x)(1.0)"
    out = run(program, POLYAX_EXPLAIN_CACHE_MISSES="1", POLYAX_PLATFORMS="reference")
    assert "TRACING CACHE MISS" in out.stderr
