"""Gradients that are added to references, and derivatives with respect to what references hold."""

from __future__ import annotations

import numpy as np
import pytest

import polyax as jax
import polyax.numpy as jnp
from polyax import lax

DidntWant, DontWant, GradRef, GradValue = jax.ad.DidntWant, jax.ad.DontWant, jax.ad.GradRef, jax.ad.GradValue
COS = np.cos(1.0)


def test_added_to_a_reference():
    total = jax.new_ref(10.0)
    _, pull = jax.vjp(jnp.sin, 1.0)
    assert pull.with_refs(total)(1.0) == (GradRef(),)
    pull.with_refs(total)(2.0)
    np.testing.assert_allclose(total[...], 10 + 3 * COS, rtol=1e-6)
    assert repr(pull.with_refs(GradValue())(0.0)) == "(Array(0., dtype=float32, weak_type=True),)"


def test_trees_of_arguments():
    def f(tree, y):
        return tree["a"] * tree["b"] * y

    a, y = jax.new_ref(0.0), jax.new_ref(1.0)
    _, pull = jax.vjp(f, {"a": 2.0, "b": 3.0}, 5.0)
    got, other = pull.with_refs({"a": a, "b": DontWant()}, y)(1.0)
    assert (got, other) == ({"a": GradRef(), "b": DidntWant()}, GradRef())
    assert (float(a[...]), float(y[...])) == (15.0, 7.0)
    with pytest.raises(ValueError, match="with_refs takes an entry for each argument"):
        pull.with_refs(a, y)
    with pytest.raises(ValueError, match=r"Accumulator aval mismatch: expected ~float32\[\], got Ref{float32\[2\]}"):
        pull.with_refs({"a": jax.new_ref(jnp.zeros(2)), "b": DontWant()}, y)(1.0)


def test_integers_have_no_gradient():
    @jax.jit
    def take(x, i):
        return x[i]

    total = jax.new_ref(jnp.zeros(5))
    for i in (3, 1, 3):
        _, pull = jax.vjp(take, jnp.arange(5.0), i)
        _, of_i = pull.with_refs(total, GradValue())(1.0)
        assert of_i.dtype == jax.float0
    assert total[...].tolist() == [0.0, 1.0, 0.0, 2.0, 0.0]


def test_what_nobody_wants_is_not_computed():
    W, x = jnp.ones((4, 4)), jnp.ones(4)
    _, pull = jax.vjp(lambda W, x: W @ x, W, x)
    some = pull.with_refs(GradValue(), DontWant())
    of_W, of_x = some(x)
    assert of_W.tolist() == np.ones((4, 4)).tolist() and repr(of_x) == "DidntWant()"
    assert str(jax.make_jaxpr(lambda: pull(x))()).count("dot_general") == 2
    assert str(jax.make_jaxpr(lambda: some(x)[0])()).count("dot_general") == 1


@pytest.mark.parametrize("jitted", [False, True])
def test_over_small_batches(jitted):
    W, rows = jnp.linspace(0.0, 1.0, 12).reshape(3, 2, 2), jnp.arange(12.0).reshape(3, 2, 2)

    def loss(W, xs):
        return jnp.mean(lax.scan(lambda x, w: (jnp.tanh(x @ w), None), xs, W)[0])

    def total(W):
        acc = jax.new_ref(jnp.zeros_like(W))

        def batch(_, xs):
            out, pull = jax.vjp(lambda W: loss(W, xs), W)
            pull.with_refs(acc)(jnp.ones_like(out))
            return (), out

        _, losses = lax.scan(batch, (), rows)
        return jax.freeze(acc), losses

    got, losses = (jax.jit(total) if jitted else total)(W)
    want = jax.grad(lambda W: sum(loss(W, xs) for xs in rows))(W)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    assert losses.shape == (3,)


def test_with_respect_to_what_a_reference_holds():
    ref = jax.new_ref(2.0)
    y, pull = jax.vjp(lambda r: r[...] ** 2, ref)
    out = jax.new_ref(100.0)
    pull.with_refs(out)(1.0)
    assert (float(y), float(out[...])) == (4.0, 104.0)


def test_with_respect_to_what_it_held_at_first():
    def f(r):
        r[...] = jnp.sin(r[...])
        return r[...] ** 2

    ref, out = jax.new_ref(2.0), jax.new_ref(10.0)
    _, pull = jax.vjp(f, ref)
    pull.with_refs(out)(1.0)
    np.testing.assert_allclose(out[...], 10 + 2 * np.sin(2.0) * np.cos(2.0), rtol=1e-6)
    np.testing.assert_allclose(ref[...], np.sin(2.0), rtol=1e-6)


@pytest.mark.parametrize("jitted", [False, True])
def test_with_respect_to_references_in_constructs(jitted):
    @jax.jit
    def f(r, x):
        lax.fori_loop(0, 3, lambda i, _: r.__setitem__(i, r[i] * x), None)
        return (r[...] ** 2).sum()

    def both(start, x):
        ref, out = jax.new_ref(start), jax.new_ref(jnp.zeros(3))
        _, pull = jax.vjp(f, ref, x)
        _, of_x = pull.with_refs(out, GradValue())(1.0)
        return out[...], of_x

    start = jnp.array([1.0, 2.0, 3.0])
    got, of_x = (jax.jit(both) if jitted else both)(start, 2.0)
    np.testing.assert_allclose(got, 2 * start * 4, rtol=1e-6)
    np.testing.assert_allclose(of_x, 2 * 2 * (start**2).sum(), rtol=1e-6)


def test_jvp_of_references():
    ref, dot = jax.new_ref(2.0), jax.new_ref(1.0)
    y, t = jax.jvp(lambda r: r[...] ** 3, (ref,), (dot,))
    assert (float(y), float(t)) == (8.0, 12.0)
    with pytest.raises(ValueError, match=r"`get` must be called on `Ref` types: ~float32\[\]"):
        jax.jvp(lambda r: r[...], (ref,), (1.0,))


def test_backward_passes_write_in_place():
    """What is read at a place is added to there: nothing as large as the whole is made on the way."""

    def f(x):
        r = jax.new_ref(x)
        return jnp.sin(r[1]) * r[2:4].sum()

    text = str(jax.make_jaxpr(jax.grad(f))(jnp.ones(1000)))
    assert "[1] += " in text and "[2:4] += " in text and "dynamic_update_slice" not in text and "pad" not in text


def looked_up(E, ids):
    return (jnp.sin(E[ids]) + E[0]).sum() + (E[:, ids[0]] ** 2).sum()


def cut_out(E, ids):
    rows = lax.dynamic_slice(E, (ids[0, 1], 0), (2, 3)) * lax.dynamic_slice(E, (7, -9), (2, 3))
    return (rows * E[1::3]).sum() * jax.jit(lambda E: jax.jit(lambda E, i: E[i, 1])(E * 2, ids[0, 0]) + E[2, 2])(E)


def filled(E, ids):
    return E.at[ids].get(mode="fill", fill_value=0).sum() + jnp.take(E, ids, axis=1).sum() + E.sum()


@pytest.mark.parametrize("way", ["eager", "jit", "jit inside"])
@pytest.mark.parametrize("f", [looked_up, cut_out, filled], ids=lambda f: f.__name__)
def test_parts_are_added_where_they_were_read(f, way):
    E, ids = jnp.linspace(-1.0, 2.0, 15).reshape(5, 3), jnp.array([[0, 2], [2, 1]])
    f = jax.jit(f) if way == "jit inside" else f

    def total(E):
        acc = jax.new_ref(jnp.ones_like(E))
        for _ in range(2):
            jax.vjp(f, E, ids)[1].with_refs(acc, GradValue())(1.0)
        return acc[...]

    got = (jax.jit(total) if way == "jit" else total)(E)
    np.testing.assert_allclose(got, 1 + 2 * jax.grad(f)(E, ids), rtol=1e-5, atol=1e-5)


def test_programs_backwards_add_to_parts():
    total = jax.new_ref(jnp.zeros((1000, 4)))
    row = jax.jit(lambda x, i: jnp.sin(x[i]))

    def step():
        jax.vjp(row, jnp.ones((1000, 4)), 3)[1].with_refs(total, GradValue())(jnp.ones(4))

    text = str(jax.make_jaxpr(step)())
    assert ",:] += " in text and "dynamic_update_slice" not in text and "f32[1000,4] = " not in text.split("cos")[1]
