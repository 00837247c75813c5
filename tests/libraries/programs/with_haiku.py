"""dm-haiku: pure functions from modules."""

import haiku as hk
import jax
import jax.numpy as jnp
import optax
from common import blobs, images, program, tokens


def _entropy(logits, labels):
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def _train(loss_of, params, optimizer, steps):
    @jax.jit
    def step(params, opt, n):
        loss, grads = jax.value_and_grad(loss_of)(params, n)
        updates, opt = optimizer.update(grads, opt, params)
        return optax.apply_updates(params, updates), opt, loss

    opt, losses = optimizer.init(params), []
    for n in range(steps):
        params, opt, loss = step(params, opt, n)
        losses.append(loss)
    return params, jnp.stack(losses)


@program()
def mlp():
    x, y = blobs()
    model = hk.without_apply_rng(hk.transform(lambda x: hk.nets.MLP([16, 4])(x)))
    params = model.init(jax.random.PRNGKey(0), x)
    params, losses = _train(lambda p, _: _entropy(model.apply(p, x), y), params, optax.adam(1e-2), 20)
    return {"losses": losses, "size": hk.data_structures.tree_size(params)}


@program(rtol=1e-3, atol=1e-4)
def cnn_with_batch_norm():
    x, y = images()

    def net(x, train):
        x = hk.Conv2D(8, 3)(x)
        x = jax.nn.relu(hk.BatchNorm(True, True, 0.9)(x, train))
        x = hk.MaxPool(2, 2, "SAME")(hk.Conv2D(8, 3)(x))
        return hk.Linear(2)(hk.Flatten()(x))

    model = hk.without_apply_rng(hk.transform_with_state(net))
    params, state = model.init(jax.random.PRNGKey(0), x, True)

    @jax.jit
    def step(params, state):
        def loss_of(p):
            logits, new = model.apply(p, state, x, True)
            return _entropy(logits, y), new

        (loss, state_), grads = jax.value_and_grad(loss_of, has_aux=True)(params)
        return jax.tree.map(lambda p, g: p - 0.05 * g, params, grads), state_, loss

    losses = []
    for _ in range(8):
        params, state, loss = step(params, state)
        losses.append(loss)
    return {"losses": jnp.stack(losses), "logits": model.apply(params, state, x, False)[0]}


@program()
def lstm_scanned():
    t = tokens()

    def net(t):
        core = hk.DeepRNN([hk.LSTM(12), jax.nn.relu, hk.GRU(8)])
        x = hk.Embed(16, 8)(t).transpose(1, 0, 2)
        out, _ = hk.dynamic_unroll(core, x, core.initial_state(t.shape[0]))
        return hk.BatchApply(hk.Linear(16))(out).transpose(1, 0, 2)

    model = hk.without_apply_rng(hk.transform(net))
    params = model.init(jax.random.PRNGKey(0), t[:, :-1])
    _, losses = _train(lambda p, _: _entropy(model.apply(p, t[:, :-1]), t[:, 1:]), params, optax.adam(1e-2), 10)
    return {"losses": losses}


@program(rtol=1e-3, atol=1e-4)
def transformer_with_dropout_and_remat():
    t = tokens()

    def block(x):
        y = hk.LayerNorm(-1, True, True)(x)
        mask = jnp.tril(jnp.ones((1, 1, x.shape[1], x.shape[1])))
        x = x + hk.MultiHeadAttention(2, 8, w_init=hk.initializers.VarianceScaling(1.0))(y, y, y, mask)
        y = hk.nets.MLP([32, 16])(hk.LayerNorm(-1, True, True)(x))
        return x + hk.dropout(hk.next_rng_key(), 0.1, y)

    def net(t):
        x = hk.Embed(16, 16)(t)
        x = x + hk.get_parameter("positions", (t.shape[1], 16), init=hk.initializers.RandomNormal(0.02))
        x = hk.layer_stack(2)(hk.remat(block))(x)
        return hk.Linear(16)(x)

    model = hk.transform(net)
    params = model.init(jax.random.PRNGKey(0), t[:, :-1])

    def loss_of(p, n):
        return _entropy(model.apply(p, jax.random.fold_in(jax.random.PRNGKey(1), n), t[:, :-1]), t[:, 1:])

    _, losses = _train(loss_of, params, optax.sgd(0.1), 10)
    return {"losses": losses}


@program()
def control_flow_and_summaries():
    def net(x):
        a, b, step = hk.Linear(3, name="a"), hk.Linear(3, name="b"), hk.Linear(4, name="step")
        if hk.running_init():
            a(x), b(x), step(x)
        y = hk.cond(x.sum() > 0, a, b, x)
        z, ys = hk.scan(lambda c, v: (step(v)[:3] + c, c), y, jnp.outer(x, x))
        z = hk.fori_loop(0, 3, lambda i, v: jnp.tanh(v) + i, z)
        return z, ys, hk.vmap(hk.Linear(2), split_rng=False)(x[:, None])

    x = jnp.linspace(-1.0, 2.0, 4)
    model = hk.transform(net)
    params = model.init(jax.random.PRNGKey(0), x)
    z, ys, v = jax.jit(model.apply)(params, None, x)
    info = hk.experimental.tabulate(model)(x)
    return {"z": z, "ys": ys, "v": v, "told": len(info) > 50}
