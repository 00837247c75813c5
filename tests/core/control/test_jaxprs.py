"""What control flow looks like in jaxprs: primitives, parameters and printed form as in JAX, and nothing in vain."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import polyax as jax
import polyax.numpy as jnp
from polyax import lax
from polyax.ir.jaxpr import walk_eqns

XS = np.ones(3, np.float32)
MATRIX = np.eye(3, dtype=np.float32)


def equations(fun: Callable, *args, name: str) -> list:
    return [e for e in walk_eqns(jax.make_jaxpr(fun)(*args).jaxpr) if e.primitive.name == name]


def test_scan_prints_as_in_jax() -> None:
    def cumsum(xs):
        return lax.scan(lambda c, x: (c + x, c * x), jnp.float32(0), xs)

    text = str(jax.make_jaxpr(cumsum)(XS))
    for line in ("length=3", "num_carry=1", "num_consts=0", "reverse=False", "unroll=1", "= scan["):
        assert line in text
    assert "linear" not in text


def test_parameters_are_those_of_jax() -> None:
    scan = equations(lambda xs: lax.scan(lambda c, x: (c + x, c), 0.0, xs, _split_transpose=True), XS, name="scan")[0]
    assert set(scan.params) == {"jaxpr", "length", "num_carry", "num_consts", "reverse", "unroll"}
    loop = equations(lambda x: lax.while_loop(lambda c: c < 3, lambda c: c + x, x), 1, name="while")[0]
    assert set(loop.params) == {"body_jaxpr", "body_nconsts", "cond_jaxpr", "cond_nconsts"}
    assert (loop.params["body_nconsts"], loop.params["cond_nconsts"]) == (1, 0)
    branch = equations(lambda x: lax.cond(x > 0, jnp.sin, jnp.cos, x), 1.0, name="cond")[0]
    assert set(branch.params) == {"branches"}
    assert [str(b.jaxpr.eqns[0].primitive) for b in branch.params["branches"]] == ["cos", "sin"]


def test_a_known_predicate_is_a_literal() -> None:
    jaxpr = jax.make_jaxpr(lambda x: lax.cond(True, jnp.sin, jnp.cos, x))(1.0)
    assert [e.primitive.name for e in jaxpr.jaxpr.eqns] == ["cond"]
    assert jaxpr.jaxpr.eqns[0].invars[0].val == 1
    switch = jax.make_jaxpr(lambda x: lax.switch(7, [jnp.sin, jnp.cos], x))(1.0)
    assert switch.jaxpr.eqns[0].invars[0].val == 1


@pytest.mark.parametrize("unroll, written", [(1, 1), (2, 2), (True, 3), (False, 1), (0, 1)])
def test_unroll(unroll: int | bool, written: int) -> None:
    (scan,) = equations(lambda xs: lax.scan(lambda c, x: (c * x, c), 1.0, xs, unroll=unroll), XS, name="scan")
    assert scan.params["unroll"] == written


def test_fori_loop_is_a_scan_if_its_bounds_are_known() -> None:
    assert equations(lambda x: lax.fori_loop(0, 5, lambda i, c: c * i, x), 1.0, name="scan")[0].params["length"] == 5
    assert equations(lambda n, x: lax.fori_loop(0, n, lambda i, c: c * i, x), 5, 1.0, name="while")


@pytest.mark.parametrize("bounds", [(0, 5), (np.int8(0), np.int8(5)), (0, np.int32(5))])
def test_the_index_does_not_widen_carries(bounds: tuple) -> None:
    assert lax.fori_loop(*bounds, lambda i, c: c + i, np.int8(1)).dtype == np.int8
    assert lax.fori_loop(*bounds, lambda i, c: c + i, np.int8(1)).item() == 11


def shapes_of_stacked_residuals(fun: Callable, *args) -> list[tuple[int, ...]]:
    """What the first loop of the gradient leaves for the second, beside its carries."""
    first = equations(jax.grad(fun), *args, name="scan")[0]
    return [v.aval.shape for v in first.outvars[first.params["num_carry"] :]]


def test_invariants_are_not_stacked() -> None:
    def f(w, xs):
        def body(h, x):
            return jnp.tanh(w @ h + jnp.sin(w) @ x), None

        return jnp.sum(lax.scan(body, jnp.ones(3), xs)[0])

    shapes = shapes_of_stacked_residuals(f, MATRIX, jnp.ones((5, 3)))
    assert shapes
    assert all(len(s) == 2 for s in shapes), "a matrix that is the same in each step was stacked"


def test_scanned_values_are_not_stacked_again() -> None:
    shapes = shapes_of_stacked_residuals(lambda w, xs: lax.scan(lambda c, x: (c + w * x, None), 0.0, xs)[0], 2.0, XS)
    assert shapes == []


def test_linear_loops_have_no_residuals() -> None:
    jaxpr = jax.make_jaxpr(jax.grad(lambda x: lax.fori_loop(0, 9, lambda i, c: c * 2.0, x)))(1.0)
    assert sum(e.primitive.name == "scan" for e in walk_eqns(jaxpr.jaxpr)) <= 2
    for e in walk_eqns(jaxpr.jaxpr):
        if e.primitive.name == "scan":
            assert len(e.outvars) == e.params["num_carry"]


def test_tangents_that_are_zero_are_not_carried() -> None:
    def f(x):
        return lax.scan(lambda c, v: ((c[0] + 1, c[1] * x, c[2]), None), (0, x, 2.0), XS)[0][1]

    (loop,) = equations(lambda x: jax.jvp(f, (x,), (x,)), 1.0, name="scan")
    assert loop.params["num_carry"] == 3  # the counter has no tangent, and the constant is none of the carry


def test_what_a_body_gives_on_is_constant() -> None:
    """So that a gradient keeps it once, and not for each turn."""

    def f(w, x):
        (_, last), (_, firsts) = lax.scan(lambda c, v: ((c[0], jnp.sin(c[0] @ c[1])), (c[1], v)), (w, x), XS)
        return last.sum() + firsts.sum()

    forward, _ = equations(jax.grad(f), MATRIX, MATRIX[0], name="scan")
    assert (forward.params["num_consts"], forward.params["num_carry"]) == (1, 1)
    assert all(v.aval.ndim < 3 for v in forward.outvars)
    assert lax.scan(lambda c, _: (c, None), 2.0, None, length=3)[0].item() == 2.0
    assert not equations(lambda x: lax.scan(lambda c, v: (c, v), x, XS), 1.0, name="scan")


def test_gradients_pass_loops_of_unknown_length_in_what_these_give_on() -> None:
    def f(n, x):
        return lax.fori_loop(0, n, lambda i, c: (c[0], c[1] + i), (x, 0))[0] * x

    assert jax.jit(jax.grad(f, 1))(3, 2.0) == 4.0
    (loop,) = equations(
        lambda x: lax.while_loop(lambda c: c[0] < c[1], lambda c: (c[0] + 1, c[1]), (0, x)), 3, name="while"
    )
    assert loop.params["body_nconsts"] == 0  # the test reads it


def test_what_all_branches_pass_through_is_no_result() -> None:
    def f(p, x, y):
        return lax.cond(p, lambda x, y: (x, y + 1, x), lambda x, y: (x, y - 1, y), x, y)

    (choice,) = equations(f, True, XS, XS, name="cond")
    assert len(choice.outvars) == 2
    x, y = XS, XS * 3
    for apply in (lambda f: f, jax.jit):
        for p, want in ((True, (x, y + 1, x)), (False, (x, y - 1, y))):
            np.testing.assert_array_equal(apply(f)(p, x, y), want)
    grads = jax.grad(lambda x, y: sum(v @ v for v in f(False, x, y)), (0, 1))(x, y)
    np.testing.assert_array_equal(grads, (2 * x, 2 * (y - 1) + 2 * y))
    (choice,) = equations(lambda i, x: lax.switch(i, [lambda x: x] * 3, x), 1, XS, name="cond")
    assert not choice.outvars


@pytest.mark.parametrize("given", [3.0, 3, np.float64(2.0), np.ones(3), [1.0]], ids=repr)
def test_what_conds_pass_through_becomes_arrays(given: object) -> None:
    found = lax.cond(jnp.asarray(True), lambda x: x, lambda x: x, given)
    want = jax.tree.map(jnp.asarray, given)
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(want), strict=True):
        assert isinstance(x, jax.Array) and jax.typeof(x) == jax.typeof(y)
    if isinstance(given, np.ndarray):
        given[0] = 7.0
        assert found[0] == 1.0


def test_batching_leaves_alone_what_is_not_mapped() -> None:
    def f(w, x):
        return lax.scan(lambda c, _: ((c[0] * 2, c[1] + w), c[0]), (1.0, x), None, length=4)

    (loop,) = equations(jax.vmap(f, (None, 0)), MATRIX[0], MATRIX, name="scan")
    assert [v.aval.shape for v in loop.outvars] == [(), (3, 3), (4,)]


def test_batched_predicates_select_and_others_branch() -> None:
    def f(p, x):
        return lax.cond(p, jnp.sin, jnp.cos, x)

    assert not equations(jax.vmap(f), XS > 0, XS, name="cond")
    assert equations(jax.vmap(f), XS > 0, XS, name="select_n")
    assert len(equations(jax.vmap(f, (None, 0)), True, XS, name="cond")) == 1


def test_what_nobody_uses_is_not_computed() -> None:
    def f(x):
        (a, _), _ = lax.scan(lambda c, _: ((c[0] * 2, jnp.sin(c[1])), jnp.cos(c[0])), (x, x), None, length=3)
        return a

    assert equations(f, 1.0, name="sin")
    loop = equations(jax.grad(f), 1.0, name="scan")[-1]
    names = {e.primitive.name for e in loop.params["jaxpr"].jaxpr.eqns}
    assert names.isdisjoint({"sin", "cos"})
