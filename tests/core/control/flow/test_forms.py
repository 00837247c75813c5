"""The ways to call control flow: older forms, keywords, empty slots, lengths of zero, predicates of any number type."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

import polyax as jax
import polyax.numpy as jnp
from polyax import lax

XS = np.arange(3, dtype=np.float32)


@pytest.mark.parametrize("pred, want", [(True, 6.0), (0, 2.0), (0.5, 6.0), (np.bool_(False), 2.0), (np.int8(-1), 6.0)])
def test_all_forms_of_cond(pred: object, want: float) -> None:
    def twice(x):
        return x * 2

    def less(x):
        return x - 1

    for p in (pred, jnp.asarray(pred)):
        assert lax.cond(p, twice, less, 3.0).item() == want
        assert lax.cond(p, twice, less, operand=3.0).item() == want
        assert lax.cond(p, 3.0, twice, 3.0, less).item() == want
        assert lax.cond(p, lambda: twice(3.0), lambda: less(3.0)).item() == want
        assert jax.jit(lambda q: lax.cond(q, twice, less, 3.0))(p).item() == want
    assert lax.cond(pred, lambda _: 1, lambda _: 1, operand=None).item() == 1


@pytest.mark.parametrize("index, want", [(-5, 0), (0, 0), (1, 1), (2, 2), (9, 2), (np.uint8(1), 1)])
def test_switch_clamps(index: object, want: int) -> None:
    branches = [lambda x, n=n: x + n for n in range(3)]
    assert lax.switch(index, branches, 0).item() == want
    assert jax.jit(lambda i: lax.switch(i, branches, operand=0))(index).item() == want
    assert lax.switch(index, branches[:1], 0) == 0, "one branch is called as it is"


def test_empty_slots_and_trees() -> None:
    def body(c, x):
        assert c["none"] is None and x[1] is None
        return {"a": c["a"] + x[0], "none": None}, (None, {"y": x[0] * 2})

    carry, (none, ys) = lax.scan(body, {"a": 1.0, "none": None}, (XS, None))
    assert (carry["a"].item(), carry["none"], none) == (4.0, None, None)
    assert ys["y"].tolist() == [0.0, 2.0, 4.0]
    assert lax.scan(lambda c, x: (c, None), None, XS) == (None, None)
    assert lax.while_loop(lambda c: False, lambda c: c, ()) == ()


def test_no_steps() -> None:
    carry, ys = lax.scan(lambda c, x: (c + 1, x * jnp.ones((2, 3))), 5, XS[:0])
    assert (carry.item(), ys.shape, ys.dtype) == (5, (0, 2, 3), np.float32)
    assert lax.scan(lambda c, _: (c, c), 5.0, None, length=0)[1].shape == (0,)
    assert lax.fori_loop(3, 1, lambda i, c: c * 2, 7).item() == 7
    assert jax.jit(lambda n: lax.fori_loop(3, n, lambda i, c: c * 2, 7))(1).item() == 7
    assert lax.map(lambda x: x, np.ones((0, 2))).shape == (0, 2)
    assert lax.associative_scan(jnp.add, np.ones((0, 2))).shape == (0, 2)


@pytest.mark.parametrize("unroll", [0, 1, 2, 5, True, False])
@pytest.mark.parametrize("reverse", [False, True])
def test_unrolling_and_direction(unroll: int | bool, reverse: bool) -> None:
    order = XS[::-1] if reverse else XS
    want = [float(np.polyval(order[: n + 1], 2.0)) for n in range(3)]
    last, ys = lax.scan(lambda c, x: (c * 2 + x, c * 2 + x), 0.0, XS, reverse=reverse, unroll=unroll)
    assert last.item() == want[-1]
    assert ys.tolist() == (want[::-1] if reverse else want)


def test_weak_carries_become_what_the_body_makes_of_them() -> None:
    assert lax.while_loop(lambda c: c < 5, lambda c: c * 1.5, 1).dtype == np.float32
    assert lax.scan(lambda c, x: (c + x, None), 0, XS)[0].dtype == np.float32
    assert lax.cond(True, lambda: 1.0, lambda: jnp.float32(2)).weak_type is False
    assert lax.cond(True, lambda: jnp.float32(2), lambda: 1.0).weak_type is True  # as it is if the predicate is false
    assert lax.switch(1, [lambda: 1.0, lambda: jnp.float32(2)]).weak_type is True
    assert lax.switch(1, [lambda: jnp.float32(2), lambda: 1.0]).weak_type is False
    assert lax.while_loop(lambda c: c < 5, lambda c: c * 2, 1).weak_type is True
    assert lax.while_loop(lambda c: c < 5, lambda c: c * 1.5, 1).weak_type is False


def test_weak_carries_of_the_right_dtype_are_weak_in_the_body() -> None:
    last, seen = lax.scan(lambda c, _: (jnp.float32(3), c), 2.0, None, length=3)
    assert (last.weak_type, seen.weak_type, seen.tolist()) == (False, True, [2.0, 3.0, 3.0])
    first, second = lax.while_loop(lambda c: c[0] < 3, lambda c: (jnp.float32(5), c[0]), (2.0, 1.0))
    assert (first.weak_type, second.weak_type, float(second)) == (False, True, 2.0)
    first, second = lax.fori_loop(0, 3, lambda i, c: (c[1], jnp.float32(i)), (2.0, 1.0))
    assert (first.weak_type, second.weak_type) == (True, False)


def test_loops_of_unknown_length_are_not_unrolled() -> None:
    for unroll in (None, False, 1, True):
        count = jax.jit(lambda n, unroll=unroll: lax.fori_loop(0, n, lambda i, c: c + i, 0, unroll=unroll))
        assert count(4) == 6


@pytest.mark.parametrize("batch_size", [None, 0, 1, 2, 3, 7])
def test_map_in_batches(batch_size: int | None) -> None:
    got = lax.map(lambda t: {"s": t[0] + t[1].sum()}, (XS, np.ones((3, 2), np.float32)), batch_size=batch_size)
    assert got["s"].tolist() == [2.0, 3.0, 4.0]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8])
def test_prefixes_of_any_length_along_any_axis(size: int) -> None:
    x = np.random.default_rng(size).normal(size=(2, size, 3)).astype(np.float32)
    np.testing.assert_allclose(lax.associative_scan(jnp.add, x, axis=1), np.cumsum(x, 1), rtol=1e-4, atol=1e-5)
    want = np.cumsum(x[:, ::-1], 1)[:, ::-1]
    np.testing.assert_allclose(lax.associative_scan(jnp.add, x, reverse=True, axis=-2), want, rtol=1e-4, atol=1e-5)


def test_conditions_of_while_loops_are_traced_first() -> None:
    traced = []
    test = lambda c: traced.append("test") or c < 3
    body = lambda c: traced.append("body") or c + np.float32(1)
    assert lax.while_loop(test, body, np.float32(0)).item() == 3.0
    assert traced == ["test", "body"]
    assert lax.while_loop(test, body, 0.0).dtype == np.float32, "the body settles the type of the carry"


def test_branches_are_traced_in_the_order_in_which_they_are_given() -> None:
    seen: list[str] = []
    note = lambda name: lambda x: (seen.append(name), x)[1]
    lax.cond(True, note("true"), note("false"), 1.0)
    lax.switch(1, [note("first"), note("second")], 1.0)
    assert seen == ["true", "false", "first", "second"]


def test_loops_may_count_in_floats() -> None:
    body = lambda i, x: x + i
    assert lax.fori_loop(0.5, 3.0, body, 0.0) == 3.0, "known bounds count turns"
    assert jax.jit(lambda a, b: lax.fori_loop(a, b, body, 0.0))(0.5, 3.0) == 4.5
    assert jax.grad(lambda x: lax.fori_loop(x, x + 2.0, lambda _, c: c, x))(1.0) == 1.0
    with pytest.raises(TypeError, match="must have equal types, got bool and int32"):
        lax.fori_loop(True, 3, body, 0)


def test_a_pair_that_is_a_list_stays_one() -> None:
    carry_and_ys = lax.scan(lambda c, x: [c + x, c], 0.0, XS)
    assert isinstance(carry_and_ys, list)
    assert carry_and_ys[0] == 3.0
    assert isinstance(lax.scan(lambda c, x: (c + x, c), 0.0, XS), tuple)


def test_pairs_of_any_kind_from_the_body_of_scan() -> None:
    class Step(NamedTuple):
        carry: object
        out: object

    made = {"named": lambda c, x: Step(c + x, c), "dict": lambda c, x: {"carry": c + x, "out": c}}
    for name, body in made.items():
        for scan in (lax.scan, jax.jit(lax.scan, static_argnums=0)):
            found = scan(body, 1.0, XS)
            total, sums = found.values() if name == "dict" else found
            assert type(found) is (dict if name == "dict" else Step)
            assert total == 4.0 and sums.tolist() == [1, 1, 2]


def test_gradients_of_branches_that_are_not_taken_add_no_nan() -> None:
    """Under ``vmap`` all branches run; what they divide by zero where they aren't chosen reaches no operand."""

    def safe_root(x, scale):
        return lax.cond(x < 1e-3, lambda: 0.0, lambda: scale * jnp.sqrt(x))

    def total(xs, scale):
        return jax.vmap(safe_root, (0, None))(xs, scale).sum()

    xs = np.array([0.0, 4.0, 0.0, 9.0], dtype=np.float32)
    for fun in (total, jax.jit(total)):
        by_x, by_scale = jax.grad(fun, (0, 1))(xs, 2.0)
        np.testing.assert_allclose(by_x, [0.0, 0.5, 0.0, 1 / 3], rtol=1e-6)
        np.testing.assert_allclose(by_scale, 5.0, rtol=1e-6)


def test_arrays_that_all_examples_of_a_branch_share_stay_shared() -> None:
    def fun(x, weights):
        return lax.cond(x[0] > 0, lambda: weights @ x, lambda: x)

    program = jax.make_jaxpr(jax.vmap(fun, (0, None)))(jnp.ones((5, 3)), jnp.ones((3, 3)))
    assert max(v.aval.size for e in program.eqns for v in e.outvars) == 15
