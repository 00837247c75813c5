"""What ``pmap`` promises, on as many devices as the process has. Run by ``test_pmap.py``, which gives it several."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import lax
from polyax.runtime.arrays.placing import on_devices
from polyax.sharding import NamedSharding
from polyax.sharding import PartitionSpec as P
from support.parts import close_everywhere

N = len(polyax.devices())
X = np.arange(N * 6, dtype=np.float32).reshape(N, 2, 3) / 7

pytestmark = pytest.mark.skipif(N < 2, reason="run by test_pmap.py, with several devices")


def close(got, expected, tolerance=1e-5):
    close_everywhere(got, expected, tolerance, 1e-5)


# --- arguments and results


def test_a_part_for_each_device():
    y = polyax.pmap(lambda x: x * 2 + 1)(X)
    close(y, X * 2 + 1)
    assert y.devices() == set(polyax.devices()) == y.sharding.device_set
    assert [s.device for s in y.addressable_shards] == polyax.devices()
    for n, shard in enumerate(y.addressable_shards):
        assert shard.index[0] == slice(n, n + 1) and shard.data.shape == (1, 2, 3)
        close(shard.data, X[n : n + 1] * 2 + 1)
    assert not y.is_fully_replicated


def test_axes_are_cut_and_put_where_they_are_asked_for():
    f = polyax.pmap(
        lambda a, b: {"sum": a["u"] + b, "v": a["v"]}, in_axes=({"u": 1, "v": None}, -1), out_axes={"sum": 2, "v": None}
    )
    u, v, b = np.moveaxis(X, 0, 1), np.float32(3), np.moveaxis(X, 0, -1)
    out = f({"u": u, "v": v}, b)
    close(out["sum"], np.moveaxis(2 * X, 0, 2))
    close(out["v"], 3)
    assert out["v"].is_fully_replicated


def test_arguments_that_were_put_elsewhere_are_refused():
    f = polyax.pmap(lambda x, w: x * w, in_axes=(0, None))
    y = polyax.pmap(lambda x: x * 1)(X)
    close(f(y, jnp.float32(2)), X * 2)
    close(f(f(y, 2.0), y[0, 0, 1]), X * 2 * X[0, 0, 1])
    renamed = NamedSharding(y.sharding.mesh.update(axis_names=("other",)), P("other"))
    close(f(polyax.device_put(X, renamed), 1.0), X)
    last = polyax.devices()[-1]
    turned = polyax.pmap(lambda x: x * 1, out_axes=1)(np.broadcast_to(X[0, 0, 0], (N, N)))
    refused = [(polyax.device_put(X, last), 2.0), (y, polyax.device_put(2.0, last)), (y[: N // 2], 2.0), (turned, 2.0)]
    for args in refused:
        with pytest.raises(ValueError, match=r"(?s)^Sharding passed to jit does not match the .*Got jit .*device_put"):
            f(*args)
    backwards = polyax.pmap(lambda x: x + 1, devices=polyax.devices()[::-1])
    close(backwards(y), X + 1)


def test_keyword_arguments_are_mapped_over_their_first_axis():
    close(polyax.pmap(lambda x, *, y: x - y[0])(X, y=X), X - X[:, :1])


def test_static_arguments_are_part_of_the_program():
    f = polyax.pmap(lambda n, x, how: x * n if how == "times" else x + n, static_broadcasted_argnums=(0, 2))
    close(f(3, X, "times"), X * 3)
    close(f(3, X, "plus"), X + 3)
    assert f(2, np.arange(N), "times").dtype == np.int32
    assert f(2.0, np.arange(N), "times").dtype == np.float32
    with pytest.raises(ValueError, match="Non-hashable static arguments"):
        f([3], X, "plus")
    with pytest.raises(ValueError, match="only 1 positional argument"):
        f(3)


def test_a_size_and_devices_can_be_given():
    last = polyax.devices()[-1:]
    y = polyax.pmap(lambda: lax.axis_index("i") + 5, "i", axis_size=1, devices=last)()
    assert y.tolist() == [5] and y.devices() == set(last)
    assert polyax.pmap(lambda x: x, backend=polyax.default_backend())(X).shape == X.shape
    with pytest.raises(ValueError, match="each device can have one part"):
        polyax.pmap(lambda x: x, devices=last * 2)(X[:2])


def test_donated_arguments_are_deleted():
    x = polyax.pmap(lambda x: x)(X)
    y = polyax.pmap(lambda x: x + 1, donate_argnums=0)(x)
    assert x.is_deleted()
    close(y, X + 1)


# --- results as arrays


def test_results_serve_as_arguments_of_everything():
    y = polyax.pmap(lambda x: x + 1)(X)
    close(y + 1, X + 2)
    close(1 - y, -X)
    close(polyax.jit(lambda a, b: a @ b.T)(y[0], y[1]), (X[0] + 1) @ (X[1] + 1).T)
    close(polyax.jit(lambda a: a.sum(0))(y), (X + 1).sum(0), 1e-4)
    close(jnp.sort(y, axis=0), np.sort(X + 1, 0))
    close(polyax.grad(lambda a: (a * y).sum())(y), X + 1)
    close(polyax.vmap(jnp.sum)(y), (X + 1).sum((1, 2)), 1e-4)
    close(np.exp(-np.asarray(y)), np.exp(-X - 1))
    assert repr(y) == repr(jnp.asarray(np.asarray(y)))
    assert float(polyax.pmap(lambda x: x)(np.ones(1))[0]) == 1


def test_blocks_stay_where_they_are_from_one_call_to_the_next():
    f = polyax.pmap(lambda x: x * 1)
    y = f(X)
    assert on_devices(y, y.parts[0].aval, y.sharding) is y.parts
    close(f(f(y)), X)


def test_results_are_copied_pickled_and_deleted():
    y = polyax.pmap(lambda x: x + 1)(X)
    for z in (copy.copy(y), copy.deepcopy(y), pickle.loads(pickle.dumps(y)), polyax.device_get(y)):
        close(z, X + 1)
    shard = y.addressable_shards[0].data
    y.delete()
    assert y.is_deleted() and shard.is_deleted()
    for use in (np.asarray, lambda x: x + 1, polyax.pmap(lambda x: x), polyax.jit(lambda x: x)):
        with pytest.raises(RuntimeError, match="deleted"):
            use(y)


def test_keys_and_other_dtypes_are_mapped():
    keys = polyax.random.split(polyax.random.PRNGKey(0), N)
    mapped = polyax.pmap(lambda k: polyax.random.normal(k, (3,)))(keys)
    close(mapped, polyax.vmap(lambda k: polyax.random.normal(k, (3,)))(keys))
    for dtype in (np.bool_, np.int8, np.float16, jnp.bfloat16):
        x = np.ones((N, 3)).astype(dtype)
        assert polyax.pmap(lambda x: x)(x).dtype == dtype


# --- with other transformations


def g(x):
    return jnp.sin(x) * lax.psum(x**2, "i")


def reference(x):
    """The same by ``vmap``, which the collectives' tests hold against NumPy."""
    return polyax.vmap(g, axis_name="i")(x)


def test_within_others_and_around_them():
    f = polyax.pmap(g, "i")
    expected = np.sin(X) * (X**2).sum(0)
    close(f(X), expected, 1e-4)
    close(polyax.jit(f)(X), expected, 1e-4)
    close(polyax.pmap(polyax.jit(g), "i")(X), expected, 1e-4)
    close(polyax.vmap(f)(np.stack([X, 2 * X])), np.stack([expected, np.sin(2 * X) * 4 * (X**2).sum(0)]), 1e-4)
    close(polyax.pmap(polyax.vmap(g), "i")(X), expected, 1e-4)
    close(polyax.pmap(polyax.grad(lambda x: jnp.sin(x).sum()))(X), np.cos(X))


def total(x):
    return lax.psum(jnp.sin(x), "i") * x


SUM = polyax.pmap(total, "i")
INSIDE = {
    "alone": SUM,
    "with_more": lambda x: SUM(x).sum(0) + x,
    "differentiated": polyax.grad(lambda x: SUM(x * 2).sum()),
    "in_a_loop": lambda x: lax.scan(lambda c, _: (SUM(c) / 9, c.sum()), x, None, length=3),
    "in_a_branch": lambda x: lax.cond(x[0, 0, 0] < 1, SUM, lambda x: x, x),
    "of_two_sizes": lambda x: (SUM(x), SUM(x[:2])),
    "of_two_sizes_the_smaller_first": lambda x: (SUM(x[:2]), SUM(x)),
    "of_two_names": lambda x: SUM(polyax.pmap(lambda y: y + 1)(x)),
    "mapped": lambda x: polyax.vmap(SUM, 1, 1)(x),
}


def on_all(f):
    """Whether all devices have a part in the program that ``f`` becomes within ``jit``."""
    return all(s.device_set == set(polyax.devices()) for s in polyax.tree.leaves(f.output_shardings))


@pytest.mark.parametrize("name", INSIDE)
def test_within_a_program_all_devices_take_part(name):
    f = INSIDE[name]
    jitted = polyax.jit(lambda x: f(x))
    got = jitted(X)
    compiled = jitted.lower(X).compile()
    assert on_all(compiled)
    again = compiled(X)
    with polyax.disable_jit():  # a map on one device
        expected = f(jnp.asarray(X))
    for a, b, c in zip(*map(polyax.tree.leaves, (got, again, expected)), strict=True):
        assert a.devices() == set(polyax.devices())
        close(a, c, 1e-4)
        close(b, c, 1e-4)


def test_loops_outside_of_programs_run_on_all_devices():
    out, _ = lax.scan(lambda c, _: (SUM(c) / 9, None), X, None, length=2)
    assert out.devices() == set(polyax.devices())
    once = total_of(X) / 9
    close(out, total_of(once) / 9, 1e-4)


def total_of(x):
    return np.sin(x).sum(0) * x


def test_a_program_with_a_map_shows_what_it_cannot_run_on():
    with pytest.raises(ValueError, match=f"requires {2 * N} logical devices, but only {N} devices are available"):
        polyax.jit(lambda x: SUM(x) + 1)(np.zeros((2 * N, 2), np.float32))
    there = polyax.device_put(X, polyax.devices()[-1])
    with pytest.raises(ValueError, match=r"argument x of f with shape .*ids \[\d\].*pmap\(total\) inside jit with"):

        @polyax.jit
        def f(x):
            return SUM(x)

        f(there)


def test_nested():
    x = np.arange(N * 3, dtype=np.float32).reshape(N, 3)
    inner = polyax.pmap(lambda v: lax.psum(v, ("i", "j")) + lax.axis_index("j"), "j")
    close(polyax.pmap(inner, "i")(x), x.sum() + np.arange(3) * np.ones((N, 1)))


def test_derivatives():
    f = polyax.pmap(g, "i")
    t = np.cos(X)
    for got, expected in zip(polyax.jvp(f, (X,), (t,)), polyax.jvp(reference, (X,), (t,)), strict=True):
        close(got, expected, 1e-4)
    scalar, oracle = (lambda x: jnp.sum(jnp.tanh(f(x)))), (lambda x: jnp.sum(jnp.tanh(reference(x))))
    close(polyax.grad(scalar)(X), polyax.grad(oracle)(X), 1e-4)
    small = X[:2, 0, :2]
    close(polyax.hessian(scalar)(small), polyax.hessian(oracle)(small), 1e-4)
    close(polyax.jacfwd(f)(small), polyax.jacrev(f)(small), 1e-4)
    close(polyax.jit(polyax.grad(scalar))(X), polyax.grad(oracle)(X), 1e-4)


def test_derivatives_of_arguments_and_results_that_all_share():
    w = np.float32([1, 2, 3])
    f = polyax.pmap(lambda w, x: lax.pmean(jnp.sum(w * x**2), "i"), "i", in_axes=(None, 0), out_axes=None)
    close(polyax.grad(f)(w, X), (X**2).mean(0).sum(0), 1e-4)
    close(polyax.grad(f, 1)(w, X), 2 * w * X / N, 1e-4)


# --- asynchrony, errors, threads


def slow(x, turns=2000):
    return lax.fori_loop(0, turns, lambda _, v: jnp.sin(v @ v) + 0.1, x)


def test_arguments_in_the_making_are_not_waited_for():
    busy = polyax.jit(lambda x: slow(x, 10_000))
    x = np.stack([np.ones((30, 30), np.float32)] * N)
    whole, total = polyax.jit(polyax.vmap(busy)), polyax.pmap(jnp.sum)
    total(whole(x)).block_until_ready()
    y = total(whole(x))
    assert not y.is_ready()
    close(y, np.full(N, np.asarray(busy(x[0])).sum()), 1e-3)


def test_bad_calls_show_both_sides():
    few = f"requires {N + 1} logical devices, but only {N} devices are available"
    with pytest.raises(ValueError, match=few):
        polyax.pmap(lambda x: x)(np.zeros(N + 1))
    with pytest.raises(ValueError, match=rf"(?s)size {N}: .*float32\[{N},2,3\];.*size 1: .*float32\[1,2,3\]"):
        polyax.pmap(lambda x, y: x)(X, X[:1])
    with pytest.raises(ValueError, match="rank should be at least 1, but is only 0"):
        polyax.pmap(lambda x: x)(1.0)
    with pytest.raises(
        ValueError, match=rf"(?s)at least one argument with a mapped axis.*axis_size.*float32\[{N},2,3\]"
    ):
        polyax.pmap(lambda x: x, in_axes=None)(X)
    with pytest.raises(ValueError, match="at least one argument with a mapped axis.* are: none"):
        polyax.pmap(lambda: 1)()
    with pytest.raises(ValueError, match="out of bounds"):
        polyax.pmap(lambda x: x, out_axes=4)(X)
    with pytest.raises(NameError, match=r"unbound axis name: j.*bound here: i\."):
        polyax.pmap(lambda x: lax.psum(x, "j"), "i")(X)
    with pytest.raises(ValueError, match="in_axes"):
        polyax.pmap(lambda x: x, in_axes=(0, 0))(X)
    with pytest.raises(TypeError, match="Expected a callable"):
        polyax.pmap(3)


def test_without_jit_a_function_runs_as_plain_python():
    seen = []

    def f(x):
        seen.append(1)
        return x - lax.pmean(x, "i")

    with polyax.disable_jit():
        g = polyax.pmap(f, "i")
        close(g(X), X - X.mean(0))
        close(g(X), X - X.mean(0))
    assert len(seen) == 2


# --- within each other


@pytest.mark.skipif(N % 4 != 0, reason="needs four devices or more")
def test_inner_axes_are_further_axes_of_the_mesh():
    x = np.arange(8.0, dtype=np.float32).reshape(2, 4)
    f = polyax.pmap(polyax.pmap(lambda v: lax.psum(v, ("i", "j")) + lax.axis_index("j"), "j"), "i")
    y = f(x)
    close(y, x.sum() + np.arange(4)[None] * np.ones((2, 1)))
    plain = polyax.pmap(polyax.pmap(lambda v: v * 2))(x)
    close(plain, x * 2)
    if N >= 8:
        assert [len(set(z.devices())) for z in (y, plain)] == [8, 8]
        assert [s.data.shape for s in y.addressable_shards] == [(1, 1)] * 8
    close(polyax.pmap(polyax.pmap(lambda v: lax.psum(v, "i"), "i"), "i")(x), x.sum(1, keepdims=True) * np.ones(4))
    close(polyax.pmap(polyax.pmap(lambda v: lax.psum(v, "j"), "j"), "i")(np.ones((4, 4))), np.full((4, 4), 4))
    inner = polyax.pmap(lambda r: polyax.grad(lambda v: polyax.pmap(jnp.sin)(v).sum())(r))
    close(inner(x), np.cos(x))


def test_programs_are_shown_and_compiled_ahead():
    f = polyax.pmap(lambda x, n: lax.psum(x, "i") * n, "i", static_broadcasted_argnums=1)
    close(f.lower(X, 3).compile()(X), np.broadcast_to(X.sum(0) * 3, X.shape))
    assert "psum[axes=('i',)" in str(f.trace(X, 3).jaxpr)


def test_sums_that_leave_one_number_on_each_device():
    n = len(polyax.devices())
    x = np.arange(n * n).reshape(n, n)
    scattered = polyax.pmap(lambda x: lax.psum_scatter(x, "i"), axis_name="i")(x)
    np.testing.assert_array_equal(scattered, x.sum(0))


def test_an_axis_without_a_name_prints_as_jaxs():
    assert str(polyax.pmap(lambda x: x + 1)(X).sharding.spec) == "P('_internal_pmap_axis_name',)"


def test_maps_of_one_function_are_traced_once():
    traced = []

    def f(x):
        traced.append(x)
        return x + 1

    close(polyax.pmap(f)(X), X + 1)
    close(polyax.pmap(f)(X), X + 1)
    assert len(traced) == 1
    close(polyax.pmap(f, out_axes=1)(X), np.moveaxis(X + 1, 0, 1))
    assert len(traced) == 2
    with pytest.raises(ValueError, match="'devices' argument to pmap must be non-empty, or None"):
        polyax.pmap(f, devices=[])
    with pytest.raises(TypeError, match=r"pmap in_axes must be an int, None, or \(nested\) container"):
        polyax.pmap(f, in_axes=0.5)
