"""Loops and branches: no value is lost where carries share memory, swap places, or are updated in place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import polyax as jax
import polyax.numpy as jnp
from polyax import lax

X = np.arange(6, dtype=np.float32).reshape(2, 3)


ROW = np.array([1.0, -2.0, 3.0], np.float32)


def looped(body, count, *carry):
    """In Python, one step at a time."""
    for n in range(count):
        carry = body(n, carry)
    return [np.asarray(c) for c in carry]


def assert_same(got, want) -> None:
    for g, w in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-5)


def test_carries_that_pass_through_swap_and_share(platform: str) -> None:
    """All in one loop: swapped, kept, given twice, a constant, a literal, a slice, and one that is dropped."""
    a, b, xs = X + 1, X * 2, np.stack([X, X * 3, X - 1])

    def loop(a, b, xs):
        def body(c, x):
            p, q, kept, twice, again, const, literal, seen = c
            return (q, p * 0.5 + x, kept, p + q, p + q, b, jnp.float32(3), x), (p, seen, kept, x, b, p + q)

        return lax.scan(body, (a, b, a, a, a, a, 1.0, a), xs)

    def oracle():
        c, ys = (a, b, a, a, a, a, 1.0, a), []
        for x in xs:
            p, q, kept, _, _, _, _, seen = c
            ys.append((p, seen, kept, x, b, p + q))
            c = (q, p * 0.5 + x, kept, p + q, p + q, b, 3.0, x)
        return c, [np.stack(y) for y in zip(*ys, strict=True)]

    assert_same(jax.jit(loop)(a, b, xs), oracle())


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_arguments_are_never_overwritten(platform: str, count: int) -> None:
    """Updates in place begin with a copy of what the caller still has, or closes over."""
    x = jnp.asarray(X)
    f = jax.jit(lambda x: (lax.fori_loop(0, count, lambda i, c: c.at[i % 2].add(x[(i + 1) % 2]), x), x))
    got, same = f(x)
    want = X.copy()
    for i in range(count):
        want[i % 2] += X[(i + 1) % 2]
    assert_same([got, same, x], [want, X, X])
    assert_same(f(x), [want, X])


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_updates_of_arrays_that_swap_places(platform: str, count: int) -> None:
    def body(i, c):
        a, b = c
        return b.at[i % 2].set(ROW * i), a

    def oracle(i, c):
        a, b = c[0], c[1].copy()
        b[i % 2] = ROW * i
        return b, a

    got = jax.jit(lambda a, b: lax.fori_loop(0, count, body, (a, b)))(X, X * 2)
    assert_same(got, looped(oracle, count, X, X * 2))


def test_one_initial_value_for_several_carries(platform: str) -> None:
    def body(i, c):
        return c[0].at[0].add(1.0), c[1].at[1].add(2.0), c[2]

    y = jax.jit(lambda x: lax.fori_loop(0, 3, body, (x * 1, x * 1, x * 1)))(X)
    first, second = X.copy(), X.copy()
    first[0] += 3
    second[1] += 6
    assert_same(y, [first, second, X])


def test_while_that_stops_after_any_number_of_steps(platform: str) -> None:
    def loop(n, x):
        def body(c):
            i, a, b, updated = c
            return i + 1, b, a * 0.5 + i, updated.at[i % 2].add(a[0])

        return lax.while_loop(lambda c: c[0] < n, body, (0, x, x + 1, x))

    def oracle(i, c):
        updated = c[2].copy()
        updated[i % 2] += c[0][0]
        return c[1], c[0] * 0.5 + i, updated

    f = jax.jit(loop)
    for n in range(4):
        assert_same(f(n, X)[1:], looped(oracle, n, X, X + 1, X))


def test_nested_loops_update_one_array(platform: str) -> None:
    def loop(x):
        def outer(j, c):
            before = c[0]
            c = lax.fori_loop(0, 3, lambda i, c: c.at[j % 2, i].add(i + j + 1.0), c)
            return lax.cond(j > 0, lambda c: c.at[1].add(before), lambda c: c, c)

        return lax.fori_loop(0, 3, outer, x), x

    want = X.copy()
    for j in range(3):
        before = want[0].copy()
        want[j % 2] += np.arange(3) + j + 1
        if j > 0:
            want[1] += before
    assert_same(jax.jit(loop)(X), [want, X])


def test_donated_arguments_are_loops_memory(platform: str) -> None:
    x = jnp.asarray(X)
    f = jax.jit(lambda x: lax.fori_loop(0, 2, lambda i, c: c.at[i].set(0.0), x), donate_argnums=0)
    assert_same(f(x), np.zeros_like(X))
    assert x.is_deleted()


def test_reversed_and_empty_rows(platform: str) -> None:
    def body(c, x):
        a, none = x
        return c * 0.5 + a, (c, none, a[:0])

    got = jax.jit(lambda c, xs: lax.scan(body, c, xs, reverse=True))(ROW, (X, np.zeros((2, 0), np.float32)))
    mid = ROW * 0.5 + X[1]
    assert_same(got, (mid * 0.5 + X[0], (np.stack([mid, ROW]), np.zeros((2, 0)), np.zeros((2, 0)))))


def test_errors_of_callbacks_surface_at_the_result(platform: str) -> None:
    def fail(i):
        if i == 2:
            raise RuntimeError("no third step")
        return np.float32(i)

    def loop(x):
        return lax.fori_loop(0, 5, lambda i, c: c + jax.pure_callback(fail, jnp.float32(0), i), x)

    with pytest.raises(Exception, match="no third step"):
        jax.block_until_ready(jax.jit(loop)(jnp.float32(0)))


def test_effects_of_loops_and_branches_keep_their_order(platform: str) -> None:
    seen = []

    def note(x):
        seen.append(int(x))

    def body(i, c):
        jax.debug.callback(note, i, ordered=True)
        lax.cond(i % 2 == 0, lambda: jax.debug.callback(note, 10 * i + c, ordered=True), lambda: None)
        return lax.fori_loop(0, 2, lambda j, c: (jax.debug.callback(note, 100 + j, ordered=True), c + 1)[1], c)

    jax.block_until_ready(jax.jit(lambda: lax.fori_loop(0, 3, body, 0))())
    jax.effects_barrier()
    assert seen == [0, 0, 100, 101, 1, 100, 101, 2, 24, 100, 101]


def test_a_loop_carries_its_own_constant(platform: str) -> None:
    def f(x: Any) -> Any:
        (last, n), _ = jax.lax.scan(lambda c, row: ((x, jnp.sum(c[1])), row), (x, -4), x, reverse=True)
        return jnp.sum(jnp.sin(jax.lax.dynamic_slice(last[0, 1:1], [jnp.prod(n)], [0])))

    gradient = jax.jit(jax.grad(jax.checkpoint(f)))
    np.testing.assert_array_equal(gradient(np.ones((3, 2), "f4")), np.zeros((3, 2)))
