"""What random programs have found, each as the smallest program that showed it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fuzz.rules import own_jvp, own_vjp

import polyax as jax
import polyax.numpy as jnp


@pytest.mark.parametrize("wrap", [jax.jit, lambda f: f, lambda f: lambda x: jax.lax.cond(True, f, f, x)])
def test_rules_get_no_tangents_of_integers(wrap: Any) -> None:
    @jax.custom_jvp
    def g(n: Any, x: Any) -> Any:
        return n, n * x

    g.defjvp(lambda primals, tangents: jax.jvp(lambda n, x: (n, n * x), primals, tangents))
    n, x = jnp.full((2, 2), 3), jnp.ones((2, 2))
    f = wrap(lambda x: g(n, x)[1])
    np.testing.assert_array_equal(jax.linearize(f, x)[1](x), np.full((2, 2), 3.0))
    np.testing.assert_array_equal(jax.grad(lambda x: f(x).sum())(x), np.full((2, 2), 3.0))


@pytest.mark.parametrize("own", [own_jvp(jax), own_vjp(jax)])
def test_mapped_rules_of_functions_with_constants(own: Any) -> None:
    f = own(lambda x: x * np.arange(3, dtype="f4"))
    total = lambda xs: jnp.sum(jax.vmap(jax.checkpoint(f))(xs))
    np.testing.assert_array_equal(jax.grad(total)(jnp.ones((2, 3))), [[0, 1, 2], [0, 1, 2]])


@pytest.mark.parametrize("shape", [(3, 2), (3, 3, 5), (7, 4)])
def test_sums_of_columns_behind_a_kernel_that_keeps_values(shape: tuple[int, ...], platform: str) -> None:
    x = np.random.default_rng(0).integers(-9, 10, shape).astype(np.float32)
    total = jax.jit(lambda x: jnp.sum(jax.lax.associative_scan(jnp.add, x, reverse=True), 0))
    np.testing.assert_array_equal(total(x), np.cumsum(x[::-1], 0).sum(0))


def test_integers_that_go_through_floats_between_loops(platform: str) -> None:
    def turn(carry: Any, _: Any) -> Any:
        rounded = jax.lax.pad(carry, np.int32(1), [(1, 2, 2)]).astype("float32").astype("int32")
        return jnp.sum(rounded, keepdims=True), carry

    found = jax.jit(lambda x: jax.lax.scan(turn, x, None, length=3))(np.array([3], "int32"))
    np.testing.assert_array_equal(found[0], [12])
    np.testing.assert_array_equal(found[1], [[3], [6], [9]])


def test_infinite_numbers_in_what_indices_are_made_of(platform: str) -> None:
    """The position of the largest element of one is looked for from minus infinity on."""
    first = jax.jit(lambda x, y: jax.lax.dynamic_slice(y, [jnp.argmax(x)], [1]))
    np.testing.assert_array_equal(first(np.float32(-2.5), np.array([3, 1], "float32")), [3])


def test_short_vectors_that_llvm_joins_out_of_order(platform: str) -> None:
    def body(carry: Any) -> Any:
        k, x, n = carry
        return k + 1, jnp.tanh(jax.lax.cummax(x, 1, reverse=True)), jax.lax.cumsum(n, 1)

    x = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 2, 2)
    n = np.arange(30, dtype=np.uint8).reshape(2, 5, 3)
    loop = jax.jit(lambda x, n: jax.lax.while_loop(lambda carry: carry[0] < 2, body, (jnp.int32(0), x, n)))
    _, found, sums = loop(x, n)
    wanted = x
    for _ in range(2):
        wanted = np.tanh(np.maximum.accumulate(wanted[:, ::-1], 1)[:, ::-1])
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    np.testing.assert_array_equal(sums, np.cumsum(np.cumsum(n, 1, "uint8"), 1, "uint8"))


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit, jax.checkpoint])
def test_own_rules_of_what_all_examples_share(wrap: Any) -> None:
    @jax.custom_vjp
    def g(x: Any, y: Any) -> Any:
        return x * 2, x * y

    g.defvjp(lambda x, y: (g(x, y), (x, y)), lambda r, cts: (2 * cts[0] + r[1] * cts[1], r[0] * cts[1]))
    ys = jnp.arange(3.0)
    total = wrap(lambda x, ys: sum(map(jnp.sum, jax.vmap(lambda y: g(x, y))(ys))))
    np.testing.assert_array_equal(jax.grad(total, (0, 1))(5.0, ys)[0], 2 * 3 + 3)
    np.testing.assert_array_equal(jax.grad(total, (0, 1))(5.0, ys)[1], [5, 5, 5])
    alone = wrap(lambda x: jax.vmap(lambda y: g(x, x)[0] + y)(ys).sum())
    np.testing.assert_array_equal(jax.grad(alone)(5.0), 6)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
def test_rules_for_reverse_mode_of_what_has_a_known_tangent(wrap: Any) -> None:
    """A constant's, which a rule gives as zeros: nothing is asked of it, so that no rule for it is missed."""
    one = own_jvp(jax)(lambda x: jnp.ones(()))
    f = own_vjp(jax)(lambda y, x: y * x)
    np.testing.assert_array_equal(jax.grad(wrap(lambda x: f(one(x), 3.0) + 5 * x))(2.0), 5)
    np.testing.assert_array_equal(jax.grad(wrap(lambda x: f(one(x), x) + 5 * x))(2.0), 6)


def test_loops_without_jit_that_end_at_a_mapped_value() -> None:
    count = jax.vmap(lambda stop: jax.lax.while_loop(lambda n: n < stop, lambda n: n + 1, 0))
    with jax.disable_jit():
        np.testing.assert_array_equal(count(jnp.array([3, -1, 5])), [3, 0, 5])


@pytest.mark.parametrize("size", [2, 3, 5])
def test_loops_whose_parts_are_put_together_in_registers(size: int, platform: str) -> None:
    def turn(x: Any, _: Any) -> Any:
        def inner(y: Any, v: Any) -> Any:
            larger = jnp.maximum(v, y)
            return jnp.tanh(larger), larger

        end, seen = jax.lax.scan(inner, x, steps, reverse=True)
        return jnp.tanh(jnp.sum(end)), jnp.log1p(seen * seen + 0.5) + end

    steps = jnp.array([-1.984375, 2.75, 1.75])
    starts = jnp.linspace(-1.75, 2.0, size)
    whole = jax.jit(jax.vmap(lambda x: jax.lax.scan(turn, x, steps)))(starts)
    with jax.disable_jit():
        alone = [jax.lax.scan(turn, x, steps) for x in starts]
    for n, found in enumerate(alone):
        for got, want in zip(jax.tree.leaves(whole), jax.tree.leaves(found), strict=True):
            np.testing.assert_allclose(got[n], want, rtol=1e-5)


def test_searches_whose_known_part_scans_what_is_not() -> None:
    """Nothing of what the scan gives depends on what it is of."""

    def f(x: Any) -> Any:
        def body(carry: Any) -> Any:
            n, flag = carry
            (same,), _ = jax.lax.scan(lambda c, v: ((flag,), ()), (flag,), jnp.cumsum(x))
            return n + 1, same

        return jax.lax.while_loop(lambda carry: carry[0] < 2, body, (0, jnp.array(True)))[0] * x

    x = jnp.array([2.75, 2.25])
    value, linear = jax.linearize(f, x)
    np.testing.assert_array_equal(value, 2 * x)
    np.testing.assert_array_equal(linear(x), 2 * x)
    np.testing.assert_array_equal(jax.grad(lambda x: f(x).sum())(x), [2, 2])
