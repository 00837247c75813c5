"""References that functions get or close over: what they hold changes, in all constructs, in the program's order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import polyax as jax
import polyax.numpy as jnp
from polyax import lax


def held(ref: Any) -> Any:
    return np.asarray(ref[...]).tolist()


JITTED = pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jit"])


def maybe(jitted: bool, f: Any) -> Any:
    return jax.jit(f) if jitted else f


@JITTED
def test_arguments(jitted: bool) -> None:
    def f(tree, y, z_ref):
        tree["a"][...] += 1
        tree["a"][0] += y
        z_ref[...] = tree["a"][...] * 2
        return z_ref[1], y

    a, z = jax.new_ref(jnp.zeros(3)), jax.new_ref(jnp.ones(3))
    f = maybe(jitted, f)
    out, y = f({"a": a}, 5.0, z)
    assert (held(a), held(z), float(out), float(y)) == ([6.0, 1.0, 1.0], [12.0, 2.0, 2.0], 2.0, 5.0)
    f({"a": a}, 1.0, z_ref=z)
    assert held(a) == [8.0, 2.0, 2.0]


@JITTED
def test_closed_over(jitted: bool) -> None:
    a, n = jax.new_ref(jnp.zeros(3)), jax.new_ref(0)

    def f(x):
        a[1] += x
        n[...] += 1
        return a[1]

    f = maybe(jitted, f)
    assert [float(f(2.0)), float(f(3.0))] == [2.0, 5.0]
    assert held(a) == [0.0, 5.0, 0.0] and held(n) == 2


def test_each_reference_is_its_own() -> None:
    f = jax.jit(lambda r, x: r.__setitem__(..., r[...] + x))
    a, b = jax.new_ref(1.0), jax.new_ref(10.0)
    for r in (a, b, a):
        f(r, 1.0)
    assert (held(a), held(b)) == (3.0, 11.0)


@JITTED
def test_loops(jitted: bool) -> None:
    r, n = jax.new_ref(jnp.zeros(4)), jax.new_ref(jnp.int32(0))

    def f():
        def step(c, x):
            r[0] += x
            n[...] += 1
            return c + r[0], r[0]

        total, seen = lax.scan(step, 0.0, jnp.arange(1.0, 4.0))
        lax.fori_loop(1, 4, lambda i, _: r.__setitem__(i, r[i - 1] * 2), None)
        lax.while_loop(lambda i: n[...] < 7, lambda i: n.__setitem__(..., n[...] + i) or i + 1, 1)
        return total, seen

    total, seen = maybe(jitted, f)()
    assert float(total) == 10.0 and seen.tolist() == [1.0, 3.0, 6.0]
    assert held(r) == [6.0, 12.0, 24.0, 48.0] and held(n) == 9


@JITTED
def test_scanned_references(jitted: bool) -> None:
    r = jax.new_ref(jnp.arange(5))

    def f():
        return lax.scan(lambda c, ix: (c, ix[1].__setitem__(..., ix[1][...] + ix[0])), 0, (jnp.arange(5), r))

    maybe(jitted, f)()
    assert held(r) == [0, 2, 4, 6, 8]


@JITTED
def test_branches(jitted: bool) -> None:
    r = jax.new_ref(0.0)

    def f(p, i):
        lax.cond(p, lambda: r.__setitem__(..., r[...] + 1), lambda: r.__setitem__(..., 10.0))
        lax.switch(i, [lambda q: None, lambda q: q.__setitem__(..., q[...] * 2), lambda q: None], r)

    f = maybe(jitted, f)
    f(True, 0)
    assert held(r) == 1.0
    f(False, 1)
    assert held(r) == 20.0


@JITTED
def test_functions_in_functions(jitted: bool) -> None:
    r = jax.new_ref(jnp.zeros(2))

    @jax.jit
    def inner(q, x):
        q[0] += x
        r[1] += 10 * x
        return q[0]

    def f(q):
        return inner(q, 1.0) + inner(q, 2.0)

    q = jax.new_ref(jnp.zeros(2))
    assert float(maybe(jitted, f)(q)) == 4.0
    assert (held(q), held(r)) == ([3.0, 0.0], [0.0, 30.0])


@JITTED
def test_vmap_of_references(jitted: bool) -> None:
    def f(x, out, row):
        out[...] = x * row[1]
        row[0] += x

    out, rows = jax.new_ref(jnp.zeros(3)), jax.new_ref(jnp.arange(6.0).reshape(2, 3))
    maybe(jitted, jax.vmap(f, in_axes=(0, 0, 1)))(jnp.arange(3.0), out, rows)
    assert held(out) == [0.0, 4.0, 10.0] and held(rows) == [[0.0, 2.0, 4.0], [3.0, 4.0, 5.0]]


def test_vmap_of_computed_places() -> None:
    table = jax.new_ref(jnp.zeros((3, 4)))

    def f(row, i, x):
        row[i] = x
        lax.fori_loop(0, 2, lambda n, _: row.__setitem__(n, row[n] + 1), None)
        return jax.ref.swap(row, i, row[i] + 100)

    got = jax.jit(jax.vmap(f))(table, jnp.array([3, 0, 1]), jnp.array([1.0, 2.0, 3.0]))
    assert got.tolist() == [1.0, 3.0, 4.0]
    assert held(table) == [[1.0, 1.0, 0.0, 101.0], [103.0, 1.0, 0.0, 0.0], [1.0, 104.0, 0.0, 0.0]]


def test_vmap_reads_what_it_closes_over() -> None:
    r = jax.new_ref(jnp.arange(3.0))
    got = jax.vmap(lambda x, i: r[i] + x)(jnp.ones(2), jnp.array([2, 0]))
    assert got.tolist() == [3.0, 1.0]


@JITTED
def test_plumbing_through_gradients(jitted: bool) -> None:
    r, seen = jax.new_ref(0.0), jax.new_ref(jnp.zeros(3))

    def loss(x, q):
        y = jnp.sin(x)
        q[...] += lax.stop_gradient(y)
        lax.scan(lambda c, i: (c, seen.__setitem__(i, lax.stop_gradient(y) * i)), 0, jnp.arange(3))
        return y * y

    g = maybe(jitted, jax.grad(loss))(1.0, r)
    np.testing.assert_allclose(g, 2 * np.sin(1.0) * np.cos(1.0), rtol=1e-6)
    np.testing.assert_allclose([held(r), *held(seen)], np.sin(1.0) * np.array([1, 0, 1, 2]), rtol=1e-6)


@pytest.mark.parametrize("way", ["grad", "jit grad", "grad jit"])
def test_gradients_stashed_on_the_way_back(way: str) -> None:
    @jax.custom_vjp
    def stash(ref, x):
        return x

    stash.defvjp(lambda ref, x: (x, ref), lambda ref, g: (None, [ref.__setitem__(..., ref[...] + g), g][1]))

    def f(x, ref):
        return jnp.sin(stash(ref, x))

    ref = jax.new_ref(1.0)
    grad = {"grad": jax.grad(f), "jit grad": jax.jit(jax.grad(f)), "grad jit": jax.grad(jax.jit(f))}[way]
    np.testing.assert_allclose(grad(1.0, ref), np.cos(1.0), rtol=1e-6)
    np.testing.assert_allclose(held(ref), 1 + np.cos(1.0), rtol=1e-6)


def test_written_in_place() -> None:
    """What a jitted function writes to isn't copied; what somebody else has as well is, once."""
    step = jax.jit(lambda r: r.__setitem__(1, r[1] + 1))
    r = jax.new_ref(jnp.zeros(1000))
    step(r)
    place = r.unsafe_buffer_pointer()
    for _ in range(3):
        step(r)
    assert r.unsafe_buffer_pointer() == place and float(r[1]) == 4.0
    before = r[...]
    step(r)
    place = r.unsafe_buffer_pointer()
    step(r)
    assert r.unsafe_buffer_pointer() == place and (float(before[1]), float(r[1])) == (4.0, 6.0)


def test_nobody_else_is_written_to() -> None:
    x = jnp.arange(3.0)
    r = jax.new_ref(x)
    both = jax.jit(lambda r, y: [r.__setitem__(..., r[...] * 2 + y), r[...], y][1:])
    first, _ = both(r, 1.0)
    second, _ = both(r, 1.0)
    give = jax.jit(lambda r, y: r.__setitem__(..., y))
    give(r, x)
    third, _ = both(r, 0.0)
    assert x.tolist() == [0.0, 1.0, 2.0] and first.tolist() == [1.0, 3.0, 5.0]
    assert second.tolist() == [3.0, 7.0, 11.0] and third.tolist() == [0.0, 2.0, 4.0]
    r[...] = x
    both(r, 1.0)
    assert x.tolist() == [0.0, 1.0, 2.0]
    y = jax.freeze(r)
    both(r, 1.0)
    assert y.tolist() == [1.0, 3.0, 5.0]


def test_what_references_are() -> None:
    r = jax.new_ref(jnp.zeros((2, 3)))
    assert isinstance(r, jax.Ref) and not isinstance(r, jax.Array)
    assert (r.shape, r.dtype, r.ndim, r.size, len(r)) == ((2, 3), np.float32, 2, 6, 2)
    assert r == r and hash(r) == hash(r) and r != jax.new_ref(jnp.zeros((2, 3)))
    assert repr(jax.typeof(r)) == str(jax.typeof(r)) == "Ref{float32[2,3]}"
    assert jax.typeof(r) == jax.ref.AbstractRef(jax.typeof(jnp.ones((2, 3)))) != jax.typeof(jnp.ones((2, 3)))
    assert f"{r}" == str(r) == "Ref([[0., 0., 0.],\n       [0., 0., 0.]], dtype=float32)"
    assert repr(jax.new_ref(1)) == "Ref(1, dtype=int32, weak_type=True)"
    assert r.sharding == r[...].sharding and r.committed and jax.block_until_ready(r) is r

    def inside(q):
        assert isinstance(q, jax.Ref) and not isinstance(q, jax.Array)
        assert (q.shape, q.dtype, q.ndim, len(q)) == ((2, 3), np.float32, 2, 2)

    jax.jit(inside)(r)


def test_without_values() -> None:
    kind = jax.ShapeDtypeStruct((3,), jnp.float32, is_ref=True)
    assert repr(kind) == "ShapeDtypeStruct(shape=(3,), dtype=float32, is_ref=True)"
    assert jax.eval_shape(lambda r: r[...], kind) == jax.ShapeDtypeStruct((3,), jnp.float32)
    r = jax.new_ref(jnp.zeros(3))
    compiled = jax.jit(lambda r, x: r.__setitem__(0, x)).lower(r, 1.0).compile()
    compiled(r, 9.0)
    assert held(r) == [9.0, 0.0, 0.0]


def test_empty_and_freed() -> None:
    r = jax.empty_ref(jax.ShapeDtypeStruct((2,), jnp.float32))
    r[...] = jnp.ones(2)
    assert jax.free_ref(r) == ()

    @jax.jit
    def f():
        q = jax.empty_ref(jax.ShapeDtypeStruct((2,), jnp.float32))
        q[...] = jnp.ones(2)
        out = q[...]
        jax.free_ref(q)
        return out

    assert f().tolist() == [1.0, 1.0]


def test_jitted_functions_are_compiled_once() -> None:
    traced = []

    @jax.jit
    def f(r, x):
        traced.append(x)
        r[...] += x

    r = jax.new_ref(jnp.zeros(2))
    for n in range(5):
        f(r, jnp.full(2, float(n)))
    f(jax.new_ref(jnp.zeros(2)), jnp.full(2, 0.0))
    assert len(traced) == 1 and held(r) == [10.0, 10.0]


def test_types_are_kept() -> None:
    small = jax.new_ref(jnp.zeros(2, jnp.bfloat16))
    small[...] = small[...] + 1.5
    small[0] = 2.0
    assert small.dtype == jnp.bfloat16 and held(small) == [2.0, 1.5]
    keys = jax.new_ref(jax.random.key(0))
    old = keys[...]
    keys[...] = jax.random.split(old)[0]
    assert (jax.random.key_data(keys[...]) != jax.random.key_data(old)).any()


def test_without_jit() -> None:
    """Loops in Python do the same."""
    r, rows = jax.new_ref(jnp.zeros(3)), jax.new_ref(jnp.arange(4.0).reshape(2, 2))
    with jax.disable_jit():
        lax.while_loop(lambda i: i < 3, lambda i: r.__setitem__(i, r[i - 1] + 1.0) or i + 1, 0)
        _, ys = lax.scan(lambda c, row: (c, row.__setitem__(0, row[1]) or row[...].sum()), 0, rows)
    assert held(r) == [1.0, 2.0, 3.0] and ys.tolist() == [2.0, 6.0] and held(rows) == [[1.0, 1.0], [3.0, 3.0]]


def test_weak_types_stay() -> None:
    """Of what a reference holds, and of values beside it."""
    number, strong = jax.new_ref(0), jax.new_ref(jnp.float32(0))
    assert jax.jit(lambda r, x: r.__setitem__(..., r[...] + 2) or x + 9)(number, 1).weak_type
    assert number[...].weak_type and number[...] == 2
    number[...] = jnp.int32(3)
    strong[...] = 1.0
    assert number[...].weak_type and not strong[...].weak_type


WRAPPED = {
    "jit": jax.jit,
    "remat": jax.checkpoint,
    "cond": lambda f: lambda *args: lax.cond(True, f, lambda *_: 0.0, *args),
}


@JITTED
@pytest.mark.parametrize("name", WRAPPED)
def test_parts_as_arguments(name: str, jitted: bool) -> None:
    """A function that gets a part of a reference reads and writes that; at computed places, too."""

    def added(given: Any, k: Any) -> Any:
        given["part"][...] += k
        return given["part"][1:].sum()

    def f(x: Any, i: Any) -> Any:
        r, g = jax.new_ref(x), WRAPPED[name](added)
        parts = r.at[i], r.at[0], r.at[1:].at[0, 1:]
        return [g({"part": part}, k) for k, part in enumerate(parts, 1)], r[...]

    x = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    for i in (1, 2, 1):
        sums, after = maybe(jitted, f)(x, i)
        want, wanted = x.copy(), []
        for k, part in enumerate((want[i], want[0], want[1, 1:]), 1):
            part += k
            wanted.append(part[1:].sum())
        np.testing.assert_allclose(after, want)
        np.testing.assert_allclose(sums, wanted)


def test_functions_that_take_no_parts() -> None:
    r = jax.new_ref(jnp.zeros((2, 2)))
    for wrap in (jax.vmap, lambda f: lambda v: lax.scan(lambda c, v: (c, f(v)), None, v)):
        with pytest.raises(TypeError, match="not a valid JAX type"):
            wrap(lambda v: v[...])(r.at[0])
    with pytest.raises(TypeError, match="returned a value of type"):
        jax.jit(lambda v: v)(r.at[0])


def written_by_methods(x: Any) -> Any:
    ref = jax.new_ref(x)
    ref.set(ref.get() * 2.0)
    ref.addupdate(x)
    before = ref.swap(jnp.sin(x))
    assert not hasattr(x, "get") and not hasattr(x, "addupdate"), "tracers of arrays have none of them"
    return before + ref.get(())


def test_methods_of_traced_references() -> None:
    x = 0.5
    expected, slope = 3 * x + np.sin(x), 3 + np.cos(x)
    np.testing.assert_allclose(jax.jit(written_by_methods)(x), expected, rtol=1e-6)
    np.testing.assert_allclose(jax.grad(written_by_methods)(x), slope, rtol=1e-6)
    np.testing.assert_allclose(jax.jvp(written_by_methods, (x,), (1.0,)), (expected, slope), rtol=1e-6)
    np.testing.assert_allclose(jax.vmap(written_by_methods)(jnp.array([x])), [expected], rtol=1e-6)
