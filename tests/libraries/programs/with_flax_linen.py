"""flax.linen: layers as dataclasses."""

import flax.linen as nn
import flax.serialization
import jax
import jax.numpy as jnp
import optax
from common import blobs, images, program, tokens
from flax.training import train_state


class MLP(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.LayerNorm()(nn.relu(nn.Dense(16)(x)))
        return nn.Dense(4)(x)


def _entropy(logits, labels):
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


@program()
def mlp():
    x, y = blobs()
    model = MLP()
    params = model.init(jax.random.key(0), x)
    state = train_state.TrainState.create(apply_fn=model.apply, params=params, tx=optax.adam(1e-2))

    @jax.jit
    def step(state):
        loss, grads = jax.value_and_grad(lambda p: _entropy(state.apply_fn(p, x), y))(state.params)
        return state.apply_gradients(grads=grads), loss

    losses = []
    for _ in range(20):
        state, loss = step(state)
        losses.append(loss)
    saved = flax.serialization.to_bytes(state.params)
    restored = flax.serialization.from_bytes(params, saved)
    return {
        "losses": jnp.stack(losses),
        "restored": model.apply(restored, x)[:3],
        "bytes": len(saved),
        "table": len(model.tabulate(jax.random.key(0), x)) > 100,
    }


class CNN(nn.Module):
    @nn.compact
    def __call__(self, x, train):
        for features in (8, 16):
            x = nn.Conv(features, (3, 3))(x)
            x = nn.relu(nn.BatchNorm(use_running_average=not train, momentum=0.9)(x))
            x = nn.avg_pool(x, (2, 2), (2, 2))
        x = nn.Dropout(0.2, deterministic=not train)(x.reshape(x.shape[0], -1))
        return nn.Dense(2)(x)


@program(rtol=1e-3, atol=1e-4)
def cnn_with_batch_norm_and_dropout():
    x, y = images()
    model = CNN()
    variables = model.init({"params": jax.random.key(0), "dropout": jax.random.key(1)}, x, train=True)
    params, stats = variables["params"], variables["batch_stats"]
    optimizer = optax.sgd(0.05, momentum=0.9)

    def loss_of(params, stats, key):
        logits, new = model.apply(
            {"params": params, "batch_stats": stats}, x, train=True, mutable=["batch_stats"], rngs={"dropout": key}
        )
        return _entropy(logits, y), new["batch_stats"]

    @jax.jit
    def step(params, stats, opt, key):
        (loss, stats), grads = jax.value_and_grad(loss_of, has_aux=True)(params, stats, key)
        updates, opt = optimizer.update(grads, opt)
        return optax.apply_updates(params, updates), stats, opt, loss

    opt, losses = optimizer.init(params), []
    for n in range(10):
        params, stats, opt, loss = step(params, stats, opt, jax.random.fold_in(jax.random.key(2), n))
        losses.append(loss)
    logits = model.apply({"params": params, "batch_stats": stats}, x, train=False)
    return {"losses": jnp.stack(losses), "logits": logits, "mean": stats["BatchNorm_0"]["mean"]}


class Block(nn.Module):
    @nn.compact
    def __call__(self, x, _):
        length = x.shape[1]
        mask = nn.make_causal_mask(jnp.ones((x.shape[0], length)))
        y = nn.LayerNorm()(x)
        y = nn.MultiHeadDotProductAttention(num_heads=2, dropout_rate=0.1, deterministic=False)(y, y, mask=mask)
        x = x + y
        y = nn.Dense(32)(nn.LayerNorm()(x))
        return x + nn.Dropout(0.1, deterministic=False)(nn.Dense(16)(nn.gelu(y))), None


class Transformer(nn.Module):
    @nn.compact
    def __call__(self, t):
        x = nn.Embed(16, 16)(t) + self.param("positions", nn.initializers.normal(0.02), (t.shape[1], 16))
        layers = nn.scan(
            nn.remat(Block), variable_axes={"params": 0}, split_rngs={"params": True, "dropout": True}, length=2
        )
        x, _ = layers()(x, None)
        return nn.Dense(16)(nn.LayerNorm()(x))


@program(rtol=1e-3, atol=1e-4)
def transformer_scanned_and_rematerialized():
    t = tokens()
    model = Transformer()
    params = model.init({"params": jax.random.key(0), "dropout": jax.random.key(1)}, t)
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.sgd(0.3))

    def loss_of(params, key):
        logits = model.apply(params, t[:, :-1], rngs={"dropout": key})
        return _entropy(logits, t[:, 1:])

    params = model.init({"params": jax.random.key(0), "dropout": jax.random.key(1)}, t[:, :-1])

    @jax.jit
    def step(params, opt, key):
        loss, grads = jax.value_and_grad(loss_of)(params, key)
        updates, opt = optimizer.update(grads, opt)
        return optax.apply_updates(params, updates), opt, loss

    opt, losses = optimizer.init(params), []
    for n in range(10):
        params, opt, loss = step(params, opt, jax.random.fold_in(jax.random.key(3), n))
        losses.append(loss)
    return {"losses": jnp.stack(losses), "norm": optax.global_norm(params)}


class Counter(nn.Module):
    @nn.compact
    def __call__(self, x):
        h = nn.RNN(nn.OptimizedLSTMCell(12))(nn.Embed(16, 8)(x))
        return nn.Dense(16)(nn.RNN(nn.GRUCell(12), reverse=True, keep_order=True)(h))


@program()
def recurrent():
    t = tokens()
    model = Counter()
    params = model.init(jax.random.key(0), t[:, :-1])
    optimizer = optax.adam(1e-2)

    @jax.jit
    def step(params, opt):
        loss, grads = jax.value_and_grad(lambda p: _entropy(model.apply(p, t[:, :-1]), t[:, 1:]))(params)
        updates, opt = optimizer.update(grads, opt)
        return optax.apply_updates(params, updates), opt, loss

    opt, losses = optimizer.init(params), []
    for _ in range(10):
        params, opt, loss = step(params, opt)
        losses.append(loss)
    return {"losses": jnp.stack(losses)}


@program()
def lifted_transformations():
    x, _ = blobs(6)

    class Several(nn.Module):
        @nn.compact
        def __call__(self, x):
            many = nn.vmap(nn.Dense, in_axes=0, variable_axes={"params": 0}, split_rngs={"params": True})
            y = many(5)(jnp.stack([x, x]))
            self.sow("intermediates", "y", y)
            count = self.variable("state", "count", lambda: 0)
            count.value += 1

            def body(module, carry):
                return module(carry)

            z, back = nn.vjp(lambda m, v: m(v), nn.Dense(3), y[0])
            (*_, dy) = back(jnp.ones_like(z))
            looped = nn.fori_loop if hasattr(nn, "fori_loop") else None
            assert looped is None
            return nn.jit(nn.Dense)(2)(dy) + z[:, :2]

    model = Several()
    variables = model.init(jax.random.key(0), x)
    out, new = model.apply(variables, x, mutable=["state", "intermediates"])
    bound = model.bind(variables)
    spectral = nn.SpectralNorm(nn.Dense(3))
    spec_vars = spectral.init(jax.random.key(1), x, update_stats=False)
    return {
        "out": out,
        "count": new["state"]["count"],
        "sown": new["intermediates"]["y"][0].sum(),
        "bound": len(bound.variables),
        "spectral": spectral.apply(spec_vars, x, update_stats=True, mutable=["batch_stats"])[0],
        "shapes": [len(p.shape) for p in jax.tree.leaves(jax.eval_shape(model.init, jax.random.key(0), x))],
    }
