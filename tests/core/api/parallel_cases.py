"""Ways to train and multiply in parallel, written with ``shard_map``. Run by ``test_shard_map.py``."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import lax
from polyax.sharding import AxisType, NamedSharding
from polyax.sharding import PartitionSpec as P
from polyax.tree_util import tree_leaves
from support.parts import close_everywhere

N = len(polyax.devices())
pytestmark = pytest.mark.skipif(N < 8, reason="run by test_shard_map.py, with several devices")

ROWS, COLUMNS, SAME = P("i"), P(None, "i"), P()


@pytest.fixture(autouse=True)
def mesh_in_force():
    with polyax.set_mesh(polyax.make_mesh((8,), ("i",), (AxisType.Auto,))) as mesh:
        yield mesh


def normal(seed, *shape):
    return np.random.RandomState(seed).randn(*shape).astype(np.float32) / 4


def close(got, expected):
    assert len(tree_leaves(got)) == len(tree_leaves(expected))
    for a, b in zip(tree_leaves(got), tree_leaves(expected), strict=True):
        close_everywhere(a, b, 2e-4, 2e-5)


def mapped(f, ins, outs, **options):
    return polyax.shard_map(f, in_specs=ins, out_specs=outs, **options)


# --- products of matrices

A, B = normal(0, 16, 24), normal(1, 24, 32)


def around(left, right):
    """Each device passes its rows of ``right`` on, while it multiplies with those that it has."""
    size, here, total = lax.axis_size("i"), lax.axis_index("i"), 0
    width = left.shape[1] // size
    for step in range(size):
        part = lax.dynamic_slice_in_dim(left, (here - step) % size * width, width, 1)
        total = total + part @ right
        right = lax.ppermute(right, "i", [(n, (n + 1) % size) for n in range(size)])
    return total


PRODUCTS = {
    "gather the right": (lambda a, b: a @ lax.all_gather(b, "i", tiled=True), (ROWS, ROWS), ROWS),
    "pass the right around": (around, (ROWS, ROWS), ROWS),
    "scatter the sum": (lambda a, b: lax.psum_scatter(a @ b, "i", tiled=True), (COLUMNS, ROWS), ROWS),
    "sum": (lambda a, b: lax.psum(a @ b, "i"), (COLUMNS, ROWS), SAME),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name):
    f = mapped(*PRODUCTS[name])
    for g in (f, polyax.jit(f)):
        close(g(A, B), A @ B)
    weights = np.cos(np.arange(16 * 32).reshape(16, 32)).astype(np.float32)
    close(polyax.jit(polyax.grad(lambda a, b: (f(a, b) * weights).sum(), (0, 1)))(A, B), (weights @ B.T, A.T @ weights))


# --- training

SIZES = (16, 32, 32, 8)
PARAMS = [(normal(n, a, b), normal(n + 9, b)) for n, (a, b) in enumerate(itertools.pairwise(SIZES))]
BATCH = normal(5, 16, 16), normal(6, 16, 8)


def predict(params, x):
    for w, b in params:
        y = x @ w + b
        x = polyax.nn.relu(y)
    return y


def squares(params, batch):
    return jnp.mean(jnp.sum((predict(params, batch[0]) - batch[1]) ** 2, axis=-1))


def data_parallel(params, batch):
    return mapped(lambda p, xy: lax.pmean(squares(p, xy), "i"), (SAME, ROWS), SAME)(params, batch)


def sharded_parameters(params, batch):
    """They are gathered where they are used, and again in the backward pass."""

    def loss(blocks, xy):
        gathered = polyax.checkpoint(
            lambda p, x: predict([tuple(lax.all_gather(v, "i", tiled=True) for v in layer) for layer in p], x)
        )
        return lax.pmean(jnp.mean(jnp.sum((gathered(blocks, xy[0]) - xy[1]) ** 2, axis=-1)), "i")

    return mapped(loss, (ROWS, ROWS), SAME)(params, batch)


def tensor_parallel(params, batch):
    layer = mapped(
        lambda x, w, b: lax.psum_scatter(x @ w, "i", scatter_dimension=1, tiled=True) + b,
        (COLUMNS, ROWS, ROWS),
        COLUMNS,
    )
    score = mapped(lambda y, z: jnp.mean(lax.psum(jnp.sum((y - z) ** 2, axis=-1), "i")), (COLUMNS, COLUMNS), SAME)
    x, target = batch
    for w, b in params:
        y = layer(x, w, b)
        x = polyax.nn.relu(y)
    return score(y, target)


@pytest.mark.parametrize("loss", [data_parallel, sharded_parameters, tensor_parallel])
def test_training(loss, mesh_in_force):
    expected = polyax.value_and_grad(squares)(PARAMS, BATCH)
    close(polyax.jit(polyax.value_and_grad(loss))(PARAMS, BATCH), expected)
    spread = polyax.device_put(BATCH, NamedSharding(mesh_in_force, ROWS if loss is not tensor_parallel else COLUMNS))
    close(polyax.jit(polyax.value_and_grad(loss))(PARAMS, spread), expected)


def test_a_pipeline():
    """Each device has a layer; examples move from one to the next."""
    layers, xs = normal(3, 8, 16, 16), normal(4, 5, 16)

    def stages(w, x):
        here, size = lax.axis_index("i"), lax.axis_size("i")

        def step(carried, n):
            given = jnp.where(here == 0, x[jnp.minimum(n, 4)], carried)
            made = jnp.tanh(given @ w[0])
            return lax.ppermute(made, "i", [(k, (k + 1) % size) for k in range(size)]), made

        start = lax.pcast(jnp.zeros(16), "i", to="varying")
        made = lax.scan(step, start, jnp.arange(12))[1][7:]
        return lax.psum(jnp.where(here == size - 1, made, 0.0), "i")

    def one_after_the_other(w, x):
        return lax.scan(lambda v, layer: (jnp.tanh(v @ layer), None), x, w)[0]

    f = mapped(stages, (ROWS, SAME), SAME)
    close(polyax.jit(f)(layers, xs), one_after_the_other(layers, xs))
    of = lambda g: polyax.jit(polyax.grad(lambda w, x: jnp.sum(g(w, x) ** 2), (0, 1)))(layers, xs)
    close(of(f), of(one_after_the_other))
