"""``shard_map``: blocks of arguments and results, types that tell along which axes values vary, and the collectives."""

from __future__ import annotations

import numpy as np
import pytest

import polyax as jax
import polyax.numpy as jnp
from polyax import lax
from polyax.sharding import AxisType, Mesh
from polyax.sharding import PartitionSpec as P

DEVICES = jax.devices()
if len(DEVICES) < 8:
    pytest.skip("run by test_guides.py, with eight devices", allow_module_level=True)
AUTO = AxisType.Auto
GRID = jax.make_mesh((4, 2), ("i", "j"), (AUTO, AUTO))
RING = jax.make_mesh((4,), ("i",), (AUTO,))
X = np.arange(96, dtype=np.float32).reshape(8, 12)


def over(mesh, ins, outs, **options):
    return jax.shard_map(mesh=mesh, in_specs=ins, out_specs=outs, **options)


def told(x):
    return str(jax.typeof(x))


# --- blocks


def test_products_of_blocks_are_summed():
    with jax.set_mesh(jax.make_mesh((4, 2), ("x", "y"))):
        a, b = jax.device_put(X, P("x", "y")), jax.device_put(X.T, P("y", None))

        @jax.shard_map(in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", None))
        def product(a, b):
            assert (a.shape, b.shape) == ((2, 6), (6, 8))
            return lax.psum(a @ b, "y")

        got = product(a, b)
        assert told(got) == "float32[8@x,8]"
        np.testing.assert_allclose(got, X @ X.T)
        np.testing.assert_allclose(got, jnp.dot(a, b, out_sharding=P("x", None)))


def test_a_map_over_blocks_keeps_the_rank():
    got = over(RING, P("i"), P("i"))(lambda x: x.T @ x)(X)
    np.testing.assert_allclose(got, np.concatenate([b.T @ b for b in np.split(X, 4)]))
    np.testing.assert_allclose(jax.vmap(lambda x: x @ x)(X), (X * X).sum(1))


TURNED = np.block([[X[2 * i : 2 * i + 2, 6 * j : 6 * j + 6] for i in range(4)] for j in range(2)])


@pytest.mark.parametrize(
    ("ins", "outs", "shape", "expected"),
    [
        (P("i", None), P("i", "j"), (2, 12), np.tile(X, (1, 2))),
        (P("i", "j"), P("i", "j"), (2, 6), X),
        (P("j"), P(("i", "j")), (4, 12), np.concatenate([X] * 4)),
        (P("i", "j"), P("j", "i"), (2, 6), TURNED),
    ],
)
def test_blocks_are_put_together_as_specs_say(ins, outs, shape, expected):
    shapes = []
    got = over(GRID, ins, outs)(lambda x: shapes.append(x.shape) or x)(X)
    assert shapes == [shape]
    np.testing.assert_array_equal(got, expected)


def test_blocks_have_to_be_equal():
    with pytest.raises(ValueError, match="evenly divisible"):
        over(GRID, P(None, ("i", "j")), P())(lambda x: x)(X)


@pytest.mark.parametrize(("spec", "times"), [(P("i", "j"), (4, 2)), (P("i", None), (4, 1)), (P(None, None), (1, 1))])
def test_what_a_function_closes_over_is_everywhere(spec, times):
    three = jnp.array([[3.0]])
    np.testing.assert_array_equal(over(GRID, (), spec)(lambda: three)(), np.full(times, 3.0))


@pytest.mark.parametrize(
    ("axes", "spec", "expected"),
    [
        ("j", P("i", None), X[:, :6] + X[:, 6:]),
        ("i", P(None, "j"), X.reshape(4, 2, 12).sum(0)),
        (("i", "j"), P(None, None), X.reshape(4, 2, 2, 6).sum((0, 2))),
    ],
)
def test_sums_need_not_be_cut_along_their_axes(axes, spec, expected):
    np.testing.assert_array_equal(over(GRID, P("i", "j"), spec)(lambda x: lax.psum(x, axes))(X), expected)


# --- what varies


def test_types_tell_what_varies():
    seen = []

    @over(GRID, P("i", "j"), P("i"))
    def f(x):
        y = lax.psum(x, "j")
        assert jax.typeof(y).vma == jax.typeof(y).manual_axis_type.varying == {"i"}
        seen.extend([told(x), told(y), told(lax.pcast(jnp.ones(3), "j", to="varying"))])
        return y

    np.testing.assert_array_equal(f(X), X[:, :6] + X[:, 6:])
    assert seen == ["float32[2,6]{V:(i,j)}", "float32[2,6]{V:i}", "float32[3]{V:j}"]


def test_results_that_vary_have_to_be_cut():
    with pytest.raises(ValueError, match=r"out_specs is P\(\) which implies .* replicated across mesh axis 'i'"):
        over(RING, P("i"), P())(lambda x: x)(X)
    np.testing.assert_array_equal(over(RING, P("i"), P(), check_vma=False)(lambda x: x)(X), X[:2])


def test_casts_are_inserted_where_operands_differ():
    f = over(RING, (P("i"), P()), P("i"))(lambda x, y: x * y)
    text = str(jax.jit(f).trace(X, X[:2]).jaxpr)
    assert "{V:i} = pvary[axes=('i',)]" in text and "shard_map[" in text
    np.testing.assert_array_equal(f(X, X[:2]), X * np.tile(X[:2], (4, 1)))


def test_carries_have_to_vary_alike():
    def swapped(cast):
        @over(RING, (P("i"), P()), P("i"))
        def f(x, y):
            y = lax.pcast(y, "i", to="varying") if cast else y
            return lax.scan(lambda c, _: (c[::-1], None), (x, y), length=3)[0]

        return f(X, X[:2])

    with pytest.raises(TypeError, match=r"(?s)\[0\] has type float32\[2,12\]\{V:i\}.*pcast"):
        swapped(False)
    first, second = swapped(True)
    np.testing.assert_array_equal(first, np.tile(X[:2], (4, 1)))
    np.testing.assert_array_equal(second, X)


def test_values_print_and_decide_outside_of_programs(capsys):
    @over(RING, P("i"), P())
    def f(x):
        print(x)
        total = lax.psum(x, "i")
        return total if total.sum() > 10 else -total

    x = np.arange(8, dtype=np.float32)
    np.testing.assert_array_equal(f(x), x.reshape(4, 2).sum(0))
    np.testing.assert_array_equal(f(x / 10), -(x / 10).reshape(4, 2).sum(0))
    assert capsys.readouterr().out.startswith("On cpu:0 at mesh coordinates (i,) = (0,):\n[0. 1.]\n\nOn cpu:1 at")


# --- collectives, each beside what it does to the list of blocks

V = np.array([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 1, 2], np.int32)
B = V.reshape(4, 4)


def ring_sum_scatter(x, axis):
    """``psum_scatter`` by neighbours alone."""
    n, me = lax.axis_size(axis), lax.axis_index(axis)
    x = x.reshape(n, -1, *x.shape[1:])
    for k in range(1, n):
        up = lax.ppermute(x[(me + k) % n], axis, [(s, (s - 1) % n) for s in range(n)])
        x = x.at[(me + k + 1) % n].add(up)
    return x[me]


COLLECTIVES = {
    "psum": (lambda x: lax.psum(x, "i"), P(None), B.sum(0)),
    "pmean": (lambda x: lax.pmean(x.astype(jnp.float32), "i"), P(), B.mean(0)),
    "pmax": (lambda x: lax.pmax(x, "i"), P(), B.max(0)),
    "gathered": (lambda x: lax.all_gather(x, "i", tiled=True), P("i"), np.tile(V, 4)),
    "stacked": (lambda x: lax.all_gather(x, "i"), P("i"), np.tile(B, (4, 1))),
    "scattered": (lambda x: lax.psum_scatter(x, "i", tiled=True), P("i"), B.sum(0)),
    "scattered by neighbours": (lambda x: ring_sum_scatter(x, "i"), P("i"), B.sum(0)),
    "permuted": (lambda x: lax.ppermute(x, "i", [(s, (s + 1) % 4) for s in range(4)]), P("i"), np.roll(V, 4)),
    "permuted in part": (
        lambda x: lax.ppermute(x, "i", [(0, 2), (3, 1)]), P("i"), np.stack([0 * B[0], B[3], B[0], 0 * B[0]]).ravel()),
    "transposed": (lambda x: lax.all_to_all(x, "i", 0, 0, tiled=True), P("i"), B.T.ravel()),
    "numbered": (lambda x: x[:1] * 0 + lax.axis_index("i"), P("i"), np.arange(4)),
}  # fmt: skip


@pytest.mark.parametrize("name", COLLECTIVES)
def test_collectives(name):
    f, outs, expected = COLLECTIVES[name]
    g = over(RING, P("i"), outs)(f)
    for got in (g(V), jax.jit(g)(V)):
        np.testing.assert_allclose(got, expected, 1e-6)


# --- products whose exchanges overlap with what is computed

L, R = (np.random.default_rng(k).standard_normal(s).astype(np.float32) for k, s in enumerate(((8, 8), (8, 4))))


def gathering(lhs, rhs):
    return lhs @ lax.all_gather(rhs, "i", tiled=True)


def gathering_in_steps(lhs, rhs):
    n, me, width = lax.axis_size("i"), lax.axis_index("i"), rhs.shape[0]

    def part(k):
        return lax.dynamic_slice_in_dim(lhs, k % n * width, width, 1)

    out = part(me) @ rhs
    for k in range(1, n):
        rhs = lax.ppermute(rhs, "i", [(s, (s + 1) % n) for s in range(n)])
        out += part(me - k) @ rhs
    return out


def gathering_both_ways(lhs, rhs):
    n, me, half = lax.axis_size("i"), lax.axis_index("i"), rhs.shape[0] // 2
    low, high = jnp.split(rhs, 2)

    def part(k, side):
        return lax.dynamic_slice_in_dim(lhs, (2 * (k % n) + side) * half, half, 1)

    out = part(me, 0) @ low + part(me, 1) @ high
    for k in range(1, n):
        low = lax.ppermute(low, "i", [(s, (s + 1) % n) for s in range(n)])
        high = lax.ppermute(high, "i", [(s, (s - 1) % n) for s in range(n)])
        out += part(me - k, 0) @ low + part(me + k, 1) @ high
    return out


def scattering(lhs, rhs):
    return lax.psum_scatter(lhs @ rhs, "i", tiled=True)


def scattering_in_steps(lhs, rhs):
    n, me = lax.axis_size("i"), lax.axis_index("i")
    rows = lhs.reshape(n, -1, lhs.shape[1])
    out = rows[(me + 1) % n] @ rhs
    for k in range(1, n):
        out = lax.ppermute(out, "i", [(s, (s - 1) % n) for s in range(n)])
        out += rows[(me + k + 1) % n] @ rhs
    return out


@pytest.mark.parametrize("f", [gathering, gathering_in_steps, gathering_both_ways, scattering, scattering_in_steps])
def test_products(f):
    left = P(None, "i") if "scattering" in f.__name__ else P("i", None)
    g = over(RING, (left, P("i", None)), P("i", None))(f)
    for got in (g(L, R), jax.jit(g)(L, R)):
        np.testing.assert_allclose(got, L @ R, 1e-4, 1e-5)
    slope = jax.jit(jax.grad(lambda a, b: (g(a, b) ** 2).sum()))(L, R)
    np.testing.assert_allclose(slope, 2 * (L @ R) @ R.T, 1e-4, 1e-4)


def test_meshes_of_other_devices_follow_each_other():
    for mesh in (RING, Mesh(np.array(DEVICES[4:]).reshape(2, 2), ("i", "j")), GRID):
        with jax.set_mesh(mesh):
            got = jax.shard_map(lambda x: lax.psum(x, "i"), in_specs=P("i"), out_specs=P())(X)
            np.testing.assert_array_equal(got, X.reshape(mesh.shape["i"], -1, 12).sum(0))
