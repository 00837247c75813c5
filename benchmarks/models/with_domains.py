"""Networks of Keras, and what libraries of other fields do: transport, particles, searches, turning functions."""

import functools
import os

os.environ["KERAS_BACKEND"] = "jax"

import e3nn_jax as e3nn
import equinox as eqx
import jax
import jax.numpy as jnp
import keras
import mctx
import optax
from common import normal, program, stepping, whole
from flowjax.bijections import RationalQuadraticSpline
from flowjax.distributions import Normal
from flowjax.flows import coupling_flow
from jax_md import energy, simulate, space
from keras import layers
from ott.geometry import pointcloud
from ott.problems.linear import linear_problem
from ott.solvers.linear import sinkhorn
from paramax import unwrap


def _fitted(model, x, y):
    """Batches by Keras's own loop."""
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(1e-3), loss)
    return lambda: model.train_on_batch(x, y)


@program
def keras_cnn():
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [
            keras.Input((32, 32, 3)),
            layers.Conv2D(32, 3, padding="same", activation="relu"),
            layers.BatchNormalization(),
            layers.MaxPooling2D(),
            layers.SeparableConv2D(64, 3, activation="relu"),
            layers.GlobalAveragePooling2D(),
            layers.Dropout(0.2),
            layers.Dense(10),
        ]
    )
    return _fitted(model, normal(32, 32, 32, 3), whole(10, 32))


@program
def keras_transformer():
    keras.utils.set_random_seed(0)
    inputs = keras.Input((64,), dtype="int32")
    x = layers.Embedding(128, 64)(inputs)
    for _ in range(2):
        attended = layers.MultiHeadAttention(4, 16, dropout=0.1)(x, x, use_causal_mask=True)
        x = layers.LayerNormalization()(x + attended)
        x = layers.LayerNormalization()(x + layers.Dense(64)(layers.Dense(256, "gelu")(x)))
    model = keras.Model(inputs, layers.Dense(128)(x))
    t = whole(128, 8, 65)
    return _fitted(model, t[:, :-1], t[:, 1:])


@program
def keras_lstm():
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((48,)), layers.Embedding(64, 32), layers.LSTM(64), layers.Dense(10)])
    return _fitted(model, whole(64, 16, 48), whole(10, 16))


@program
def ott_sinkhorn():
    y = normal(256, 3, seed=1) + 1.0

    def cost(x):
        problem = linear_problem.LinearProblem(pointcloud.PointCloud(x, y, epsilon=0.1))
        return sinkhorn.Sinkhorn()(problem).reg_ot_cost

    slopes = jax.jit(jax.grad(cost))
    return stepping(lambda x: (x - 0.1 * slopes(x),), jnp.asarray(normal(200, 3)))


@program
def md_neighbours():
    displacement, shift = space.periodic(16.0)
    positions = jax.random.uniform(jax.random.PRNGKey(0), (400, 2), maxval=16.0)
    listing, total = energy.lennard_jones_neighbor_list(displacement, 16.0, sigma=0.5, r_cutoff=1.5, dr_threshold=0.3)
    begin, move = simulate.nvt_nose_hoover(total, shift, 1e-3, 0.1)
    near = listing.allocate(positions)
    state = begin(jax.random.PRNGKey(1), positions, neighbor=near)

    def turn(_, carry):
        state, near = carry
        near = near.update(state.position)
        return move(state, neighbor=near), near

    return stepping(jax.jit(lambda state, near: jax.lax.fori_loop(0, 20, turn, (state, near))), state, near)


@program
def mctx_gumbel():
    batch, actions, size = 32, 8, 32
    turns, values, logits = map(jnp.asarray, (0.3 * normal(actions, size, size), normal(size), normal(size, actions)))

    def imagined(params, key, action, state):
        after = jnp.tanh(jnp.einsum("bij,bj->bi", turns[action], state))
        told = mctx.RecurrentFnOutput(
            reward=after[:, 0], discount=jnp.full(batch, 0.9), prior_logits=after @ logits, value=after @ values
        )
        return told, after

    @jax.jit
    def step(state, key):
        key, k = jax.random.split(key)
        root = mctx.RootFnOutput(prior_logits=state @ logits, value=state @ values, embedding=state)
        policy = functools.partial(mctx.gumbel_muzero_policy, recurrent_fn=imagined, num_simulations=32)
        chosen = policy(params=(), rng_key=k, root=root)
        return imagined((), k, chosen.action, state)[1], key

    return stepping(step, jnp.asarray(normal(batch, size)), jax.random.PRNGKey(0))


@program
def e3nn_messages():
    """A layer of messages along the edges of a graph."""
    senders, receivers = whole(64, 512), whole(64, 512, seed=1)
    positions = jnp.asarray(normal(64, 3))
    features = e3nn.normal("8x0e+8x1o", jax.random.PRNGKey(0), (64,))
    layer = e3nn.flax.Linear("8x0e+8x1o")

    def messages(weights, positions):
        edges = e3nn.spherical_harmonics("0e+1o+2e", positions[receivers] - positions[senders], True)
        products = e3nn.tensor_product(features[senders], edges, filter_ir_out=["0e", "1o"])
        return layer.apply(weights, e3nn.scatter_sum(products, dst=receivers, output_size=64))

    edges = e3nn.spherical_harmonics("0e+1o+2e", positions[receivers] - positions[senders], True)
    products = e3nn.tensor_product(features[senders], edges, filter_ir_out=["0e", "1o"])
    weights = layer.init(jax.random.PRNGKey(1), e3nn.scatter_sum(products, dst=receivers, output_size=64))
    slopes = jax.jit(jax.grad(lambda w, p: (messages(w, p).array ** 2).mean(), argnums=(0, 1)))

    def step(weights, positions):
        by_weights, by_positions = slopes(weights, positions)
        return jax.tree.map(lambda w, g: w - 0.01 * g, weights, by_weights), positions - 0.01 * by_positions

    return stepping(step, weights, positions)


@program
def flowjax_splines():
    x = jnp.asarray(normal(256, 2))
    splines = RationalQuadraticSpline(knots=8, interval=4)
    flow = coupling_flow(jax.random.key(0), base_dist=Normal(jnp.zeros(2)), transformer=splines)
    params, static = eqx.partition(flow, eqx.is_inexact_array)
    optimizer = optax.adam(1e-3)

    @jax.jit
    def step(params, opt):
        loss = lambda p: -unwrap(eqx.combine(p, static)).log_prob(x).mean()
        updates, opt = optimizer.update(jax.grad(loss)(params), opt)
        return optax.apply_updates(params, updates), opt

    return stepping(step, params, optimizer.init(params))
