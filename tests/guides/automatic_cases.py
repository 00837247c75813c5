"""Global programs that the partitioner cuts: shardings, constraints, and a network that is trained."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest

import polyax as jax
import polyax.numpy as jnp
from polyax.experimental import mesh_utils
from polyax.sharding import AxisType, Mesh, NamedSharding, PositionalSharding
from polyax.sharding import PartitionSpec as P

DEVICES = jax.devices()
if len(DEVICES) < 8:
    pytest.skip("run by test_guides.py, with eight devices", allow_module_level=True)
GRID = jax.make_mesh((4, 2), ("a", "b"), (AxisType.Auto,) * 2)
X = np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32)


def put(x, *spec, mesh=GRID):
    return jax.device_put(x, NamedSharding(mesh, P(*spec)))


def close(got, expected):
    np.testing.assert_allclose(np.asarray(got), expected, 1e-4, 1e-5)


@pytest.mark.parametrize(
    ("spec", "rows", "columns"),
    [(("a", "b"), 4, 2), (("b", "a"), 2, 4), (("a", None), 4, 1), ((None, "b"), 1, 2), ((("a", "b"),), 8, 1)],
)
def test_a_spec_says_which_device_has_what(spec, rows, columns, capsys):
    x = put(X, *spec)
    blocks = {(s.index[0].start or 0, s.index[1].start or 0): np.asarray(s.data) for s in x.addressable_shards}
    assert len(blocks) == rows * columns
    for (i, j), block in blocks.items():
        np.testing.assert_array_equal(block, X[i : i + 8 // rows, j : j + 8 // columns])
    jax.debug.visualize_array_sharding(x)
    assert capsys.readouterr().out.count("CPU") == rows * columns


def test_shardings_by_position_are_arrays_of_devices():
    devices = PositionalSharding(mesh_utils.create_device_mesh((8,)))
    x = jax.device_put(X, devices.reshape(4, 2))
    assert (devices.reshape(4, 2).replicate(0).shape, devices.reshape(4, 2).replicate(1).shape) == ((1, 2), (4, 1))
    y, z = (jax.device_put(X, devices.reshape(4, 2).replicate(axis)) for axis in (1, 0))
    close(jnp.sin(x), np.sin(X))
    close(jnp.dot(y, z), X @ X)


def test_computation_follows_data():
    y, z = put(X, "a", None), put(X, None, "b")
    w = jnp.dot(y, z)
    assert w.sharding.spec == P("a", "b") and jnp.copy(w).sharding == w.sharding
    assert jnp.sin(y).sharding == y.sharding and jax.jit(lambda v: v.sum(0))(z).sharding.spec == P("b")
    close(w, X @ X)


def test_constraints_and_shardings_of_results():
    line = Mesh(mesh_utils.create_device_mesh((8,)), "a")  # another axis of that name

    @jax.jit
    def columns(x):
        return jax.lax.with_sharding_constraint(x.sum(0), NamedSharding(line, P("a")))

    got = columns(put(X, "a", "b"))
    assert [s.data.shape for s in got.addressable_shards] == [(1,)] * 8
    close(got, X.sum(0))
    whole = jax.jit(lambda x: x + 1, out_shardings=NamedSharding(GRID, P()))(put(X, "a"))
    assert whole.is_fully_replicated
    with jax.set_mesh(GRID):
        assert jax.jit(lambda x: jax.lax.with_sharding_constraint(x, P("b")))(X).sharding.spec == P("b")


def test_one_layer_in_three_ways():
    rng, mesh = np.random.default_rng(1), Mesh(DEVICES, "x")
    x, w, b = (rng.standard_normal(s).astype(np.float32) for s in ((32,), (32, 4), (4,)))
    rows = NamedSharding(mesh, P("x"))
    layer = jax.jit(lambda x, w, b: jax.nn.sigmoid(x @ w + b))

    @jax.jit
    def hinted(x, w, b):
        x, w = (jax.lax.with_sharding_constraint(v, rows) for v in (x, w))
        return layer(x, w, b)

    @jax.jit
    @functools.partial(jax.shard_map, mesh=mesh, in_specs=(P("x"), P("x", None), P(None)), out_specs=P(None))
    def by_hand(x, w, b):
        return jax.nn.sigmoid(jax.lax.psum(x @ w, "x") + b)

    expected = 1 / (1 + np.exp(-(x @ w + b)))
    cut = (jax.device_put(x, rows), jax.device_put(w, rows), b)
    for got in (layer(x, w, b), layer(*cut), hinted(x, w, b), by_hand(x, w, b)):
        close(got, expected)


# --- training


def loss(params, x, y):
    for w, b in params[:-1]:
        x = jnp.maximum(x @ w + b, 0)
    w, b = params[-1]
    return ((x @ w + b - y) ** 2).sum(-1).mean()


def slopes(params, x, y):
    """The same by hand, in NumPy."""
    kept = [x]
    for w, b in params[:-1]:
        kept.append(np.maximum(kept[-1] @ w + b, 0))
    d = 2 * (kept[-1] @ params[-1][0] + params[-1][1] - y) / len(y)
    found = []
    for (w, _), h in zip(params[::-1], kept[::-1], strict=True):
        found.insert(0, (h.T @ d, d.sum(0)))
        d = (d @ w.T) * (h > 0)
    return found


@pytest.mark.parametrize("model", [False, True], ids=["batch", "batch and features"])
def test_training_a_network(model):
    rng, sizes = np.random.default_rng(2), (12, 16, 16, 4)
    params = [
        (rng.standard_normal((m, n)).astype(np.float32) / 4, np.zeros(n, np.float32))
        for m, n in itertools.pairwise(sizes)
    ]
    x, y = (rng.standard_normal((16, n)).astype(np.float32) for n in (12, 4))
    specs = [((None, "b"), ("b",)), (("b", None), ()), ((), ())] if model else [((), ())] * 3
    placed = [(put(w, *s), put(b, *t)) for (w, b), (s, t) in zip(params, specs, strict=True)]
    batch = put(x, "a"), put(y, "a")
    slope = jax.jit(jax.grad(loss))
    for _ in range(3):
        found, exact = slope(placed, *batch), slopes(params, x, y)
        placed = [(w - 0.05 * dw, b - 0.05 * db) for (w, b), (dw, db) in zip(placed, found, strict=True)]
        params = [(w - 0.05 * dw, b - 0.05 * db) for (w, b), (dw, db) in zip(params, exact, strict=True)]
    for (w, b), (we, be), (s, t) in zip(placed, params, specs, strict=True):
        close(w, we)
        close(b, be)
        assert w.sharding.is_equivalent_to(NamedSharding(GRID, P(*s)), 2)
        assert b.sharding.is_equivalent_to(NamedSharding(GRID, P(*t)), 1)


@pytest.mark.parametrize("partitionable", [False, True])
def test_random_numbers_do_not_depend_on_where_they_are_drawn(partitionable):
    before = jax.config.jax_threefry_partitionable
    jax.config.update("jax_threefry_partitionable", partitionable)
    try:
        f = jax.jit(lambda key, x: x + jax.random.uniform(key, x.shape))
        x = np.arange(24, dtype=np.float32)
        cut = f(jax.random.PRNGKey(42), put(x, ("a", "b")))
        assert cut.sharding.shard_shape(cut.shape) == (3,)
        close(cut, f(jax.random.PRNGKey(42), x))
    finally:
        jax.config.update("jax_threefry_partitionable", before)
