"""A network by hand: its batch cut, its weights cut and gathered when they are needed, its features cut, in stages."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest

import polyax as jax
import polyax.numpy as jnp
from polyax import lax
from polyax.sharding import AxisType
from polyax.sharding import PartitionSpec as P

if len(jax.devices()) < 8:
    pytest.skip("run by test_guides.py, with eight devices", allow_module_level=True)
RNG = np.random.default_rng(3)
SIZES = (16, 8, 8, 8, 8, 8, 8)
PARAMS = [
    (RNG.standard_normal((m, n)).astype(np.float32) / 3, RNG.standard_normal(n).astype(np.float32) / 9)
    for m, n in itertools.pairwise(SIZES)
]
BATCH = tuple(RNG.standard_normal((32, n)).astype(np.float32) for n in (SIZES[0], SIZES[-1]))


def predict(params, x):
    for w, b in params:
        y = x @ w + b
        x = jax.nn.relu(y)
    return y


def squares(y, target):
    return jnp.mean(jnp.sum((y - target) ** 2, -1))


def loss(params, batch):
    return squares(predict(params, batch[0]), batch[1])


def in_numpy(params, batch):
    x = batch[0]
    for w, b in params:
        y = x @ w + b
        x = np.maximum(y, 0)
    return ((y - batch[1]) ** 2).sum(-1).mean()


LOSS, SLOPES = in_numpy(PARAMS, BATCH), jax.grad(loss)(PARAMS, BATCH)


def agrees(f, params, batch):
    """The loss with NumPy's, its gradient with that of one device, and that along a direction with a difference."""
    np.testing.assert_allclose(jax.jit(f)(params, batch), LOSS, 1e-4)
    slopes = jax.jit(jax.grad(f))(params, batch)
    for got, expected in zip(jax.tree.leaves(slopes), jax.tree.leaves(SLOPES), strict=True):
        np.testing.assert_allclose(got, expected, 1e-3, 1e-4)
    return slopes


def test_gradients_of_one_device_are_slopes():
    step = 1e-3
    moved = [
        (np.float64(w) + step * np.asarray(dw), np.float64(b) + step * np.asarray(db))
        for (w, b), (dw, db) in zip(PARAMS, SLOPES, strict=True)
    ]
    rise = (in_numpy(moved, BATCH) - in_numpy([(np.float64(w), np.float64(b)) for w, b in PARAMS], BATCH)) / step
    np.testing.assert_allclose(rise, sum((np.asarray(g) ** 2).sum() for g in jax.tree.leaves(SLOPES)), 2e-2)


def test_the_batch_is_cut():
    with jax.set_mesh(jax.make_mesh((8,), ("batch",))):

        @jax.shard_map(out_specs=P())
        def mapped(params, batch):
            return lax.pmean(loss(params, batch), "batch")

        params, batch = jax.device_put(PARAMS, P()), jax.device_put(BATCH, P("batch"))
        slopes = agrees(mapped, params, batch)
        assert {str(jax.typeof(g)) for g in jax.tree.leaves(slopes)} == {"float32[16,8]", "float32[8,8]", "float32[8]"}


def gathered(params, axis):
    return [tuple(lax.all_gather(v, axis, tiled=True) for v in layer) for layer in params]


def test_weights_are_gathered_again_for_gradients():
    with jax.set_mesh(jax.make_mesh((4,), ("batch",))):
        keep = functools.partial(jax.remat, policy=lambda op, *_, **__: str(op) != "all_gather")

        @jax.shard_map(out_specs=P())
        def mapped(params, batch):
            y = keep(lambda p, x: predict(gathered(p, "batch"), x))(params, batch[0])
            return lax.pmean(squares(y, batch[1]), "batch")

        params, batch = jax.device_put((PARAMS, BATCH), P("batch"))
        slopes = agrees(mapped, params, batch)
        assert str(jax.typeof(slopes[0][0])) == "float32[16@batch,8]"
        text = str(jax.jit(jax.grad(mapped)).trace(params, batch).jaxpr)
        assert text.count(" all_gather[") > text.count("dot_general[") / 2  # once more for the way back


def test_features_are_cut():
    with jax.set_mesh(jax.make_mesh((8,), ("feats",))):
        specs = (P(None, "feats"), P("feats", None), P("feats"))

        @jax.shard_map(in_specs=specs, out_specs=P(None, "feats"))
        def layer(x, w, b):
            return lax.psum_scatter(x @ w, "feats", scatter_dimension=1, tiled=True) + b

        def cut(params, batch):
            x = batch[0]
            for w, b in params:
                y = layer(x, w, b)
                x = jax.nn.relu(y)
            return squares(y, batch[1])

        agrees(cut, jax.device_put(PARAMS, P("feats")), jax.device_put(BATCH, P(None, "feats")))


def test_batch_weights_and_features_are_cut():
    with jax.set_mesh(jax.make_mesh((4, 2), ("batch", "feats"))):

        @functools.partial(jax.remat, policy=lambda op, *_, **__: str(op) != "all_gather")
        def outputs(params, x):
            for w, b in gathered(params, "batch"):
                y = lax.psum_scatter(x @ w, "feats", scatter_dimension=1, tiled=True) + b
                x = jax.nn.relu(y)
            return y

        @jax.shard_map(in_specs=(P(("feats", "batch")), P("batch", "feats")), out_specs=P())
        def mapped(params, batch):
            error = lax.psum(((outputs(params, batch[0]) - batch[1]) ** 2).sum(-1), "feats")
            return lax.pmean(error.mean(), "batch")

        agrees(mapped, jax.device_put(PARAMS, P(("feats", "batch"))), jax.device_put(BATCH, P("batch", "feats")))


def test_layers_in_stages():
    """Two stages of two layers each; what a stage has finished goes to the next, and the batch comes in turns."""
    stages, rows, deep = 2, 16, 2
    inner, many = PARAMS[1:-1], 32 // rows
    mesh = jax.make_mesh((stages,), ("stage",), (AxisType.Auto,))
    ring = [(s, (s + 1) % stages) for s in range(stages)]

    def pipeline(layers, x):
        me = lax.axis_index("stage")
        state = lax.pcast(jnp.zeros((rows, 8)), "stage", to="varying")
        done = []
        for k in range(many + stages - 1):
            state = jnp.where(me == 0, x[min(k, many - 1)], state)
            for d in range(deep):
                state = jax.nn.relu(state @ layers[0][d] + layers[1][d])
            done.append(state)
            state = lax.ppermute(state, "stage", ring)
        last = jnp.stack(done[stages - 1 :])
        return lax.psum(jnp.where(me == stages - 1, last, 0), "stage")

    @jax.shard_map(mesh=mesh, in_specs=(P("stage"), P()), out_specs=P())
    def through(layers, x):
        return pipeline(layers, x.reshape(many, rows, -1)).reshape(x.shape)

    def staged(params, batch):
        (w, b), *middle, (v, c) = params
        stacked = tuple(jnp.stack(vs) for vs in zip(*middle, strict=True))
        x = through(stacked, jax.nn.relu(batch[0] @ w + b))
        return squares(x @ v + c, batch[1])

    assert len(inner) == stages * deep
    agrees(staged, PARAMS, BATCH)


def test_gradients_are_accumulated_over_parts_of_the_batch():
    with jax.set_mesh(jax.make_mesh((4,), ("batch",))):

        @jax.jit
        def step(w, xs):
            def add(total, x):
                return total + jax.grad(lambda w: (jnp.tanh(x @ w) ** 2).sum())(w), None

            return w - 0.01 * lax.scan(add, jnp.zeros_like(w), xs)[0]

        w, xs = RNG.standard_normal((4, 4)).astype(np.float32), RNG.standard_normal((5, 8, 4)).astype(np.float32)
        got = step(jax.device_put(w, P()), jax.device_put(xs, P(None, "batch")))
        h = np.tanh(xs @ w)
        expected = w - 0.01 * np.einsum("kni,knj->ij", xs, 2 * h * (1 - h * h))
        assert str(jax.typeof(got)) == "float32[4,4]"
        np.testing.assert_allclose(got, expected, 1e-4, 1e-5)
