"""flax, with its layers as dataclasses (linen) and as objects (nnx), and a model of diffusion."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from common import normal, program, stepping, whole
from flax import nnx
from flax.training import train_state


def entropy(logits, labels):
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


class MLP(nn.Module):
    @nn.compact
    def __call__(self, x):
        for features in (512, 256):
            x = nn.LayerNorm()(nn.relu(nn.Dense(features)(x)))
        return nn.Dense(10)(x)


@program
def flax_mlp():
    x, y = normal(128, 784), whole(10, 128)
    model = MLP()
    schedule = optax.warmup_cosine_decay_schedule(0.0, 1e-3, 10, 1000)
    tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule))
    params = model.init(jax.random.key(0), x)

    @jax.jit
    def step(state):
        grads = jax.grad(lambda p: entropy(state.apply_fn(p, x), y))(state.params)
        return (state.apply_gradients(grads=grads),)

    return stepping(step, train_state.TrainState.create(apply_fn=model.apply, params=params, tx=tx))


class CNN(nn.Module):
    @nn.compact
    def __call__(self, x, train):
        for features in (32, 64):
            x = nn.Conv(features, (3, 3))(x)
            x = nn.relu(nn.BatchNorm(use_running_average=not train, momentum=0.9)(x))
            x = nn.max_pool(x, (2, 2), (2, 2))
        x = nn.relu(nn.Dense(128)(x.reshape(x.shape[0], -1)))
        return nn.Dense(10)(nn.Dropout(0.2, deterministic=not train)(x))


@program
def flax_cnn():
    x, y = normal(32, 28, 28, 1), whole(10, 32)
    model, optimizer = CNN(), optax.sgd(0.05, momentum=0.9)
    variables = model.init({"params": jax.random.key(0), "dropout": jax.random.key(1)}, x, train=True)

    def loss_of(params, stats, key):
        variables, rngs = {"params": params, "batch_stats": stats}, {"dropout": key}
        logits, new = model.apply(variables, x, train=True, mutable=["batch_stats"], rngs=rngs)
        return entropy(logits, y), new["batch_stats"]

    @jax.jit
    def step(params, stats, opt, key):
        key, k = jax.random.split(key)
        grads, stats = jax.grad(loss_of, has_aux=True)(params, stats, k)
        updates, opt = optimizer.update(grads, opt)
        return optax.apply_updates(params, updates), stats, opt, key

    params = variables["params"]
    return stepping(step, params, variables["batch_stats"], optimizer.init(params), jax.random.key(2))


class Block(nn.Module):
    @nn.compact
    def __call__(self, x, _):
        mask = nn.make_causal_mask(jnp.ones(x.shape[:2]))
        y = nn.LayerNorm()(x)
        x = x + nn.MultiHeadDotProductAttention(num_heads=4, dropout_rate=0.1, deterministic=False)(y, y, mask=mask)
        y = nn.Dense(512)(nn.LayerNorm()(x))
        return x + nn.Dropout(0.1, deterministic=False)(nn.Dense(128)(nn.gelu(y))), None


class Transformer(nn.Module):
    @nn.compact
    def __call__(self, t):
        x = nn.Embed(256, 128)(t) + self.param("positions", nn.initializers.normal(0.02), (t.shape[1], 128))
        layers = nn.scan(
            nn.remat(Block), variable_axes={"params": 0}, split_rngs={"params": True, "dropout": True}, length=4
        )
        return nn.Dense(256)(nn.LayerNorm()(layers()(x, None)[0]))


@program
def flax_transformer():
    t = whole(256, 8, 65)
    model, optimizer = Transformer(), optax.adamw(1e-3)
    params = model.init({"params": jax.random.key(0), "dropout": jax.random.key(1)}, t[:, :-1])

    def loss_of(params, key):
        return entropy(model.apply(params, t[:, :-1], rngs={"dropout": key}), t[:, 1:])

    @jax.jit
    def step(params, opt, key):
        key, k = jax.random.split(key)
        updates, opt = optimizer.update(jax.grad(loss_of)(params, k), opt, params)
        return optax.apply_updates(params, updates), opt, key

    return stepping(step, params, optimizer.init(params), jax.random.key(3))


class Network(nnx.Module):
    def __init__(self, rngs):
        self.first = nnx.Linear(784, 256, rngs=rngs)
        self.norm = nnx.BatchNorm(256, rngs=rngs)
        self.drop = nnx.Dropout(0.1, rngs=rngs)
        self.last = nnx.Linear(256, 10, rngs=rngs)

    def __call__(self, x):
        return self.last(self.drop(nnx.relu(self.norm(self.first(x)))))


@program
def nnx_mlp():
    x, y = normal(128, 784), whole(10, 128)
    model = Network(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)

    @nnx.jit
    def step(model, optimizer):
        loss, grads = nnx.value_and_grad(lambda m: entropy(m(x), y))(model)
        optimizer.update(model, grads)
        return loss

    return lambda: step(model, optimizer)


class ResBlock(nn.Module):
    features: int

    @nn.compact
    def __call__(self, x, time):
        h = nn.Conv(self.features, (3, 3))(nn.swish(nn.GroupNorm(num_groups=4)(x)))
        h = h + nn.Dense(self.features)(nn.swish(time))[:, None, None]
        h = nn.Conv(self.features, (3, 3))(nn.swish(nn.GroupNorm(num_groups=4)(h)))
        return h + (x if x.shape[-1] == self.features else nn.Conv(self.features, (1, 1))(x))


class UNet(nn.Module):
    @nn.compact
    def __call__(self, x, t):
        angles = t.astype(jnp.float32)[:, None] * jnp.exp(-jnp.arange(16) / 4.0)
        time = nn.Dense(64)(jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], -1))
        down = ResBlock(16)(nn.Conv(16, (3, 3))(x), time)
        y = ResBlock(32)(nn.Conv(32, (3, 3), strides=(2, 2))(down), time)
        b, h, w, c = y.shape
        y = y + nn.SelfAttention(num_heads=2)(nn.GroupNorm(num_groups=4)(y).reshape(b, h * w, c)).reshape(y.shape)
        up = nn.Conv(16, (3, 3))(jax.image.resize(y, (b, 2 * h, 2 * w, c), "nearest"))
        return nn.Conv(1, (3, 3))(nn.swish(ResBlock(16)(jnp.concatenate([up, down], -1), time)))


def _diffusion():
    model = UNet()
    x = normal(8, 16, 16, 1)
    params = model.init(jax.random.key(0), x, jnp.zeros(8, jnp.int32))
    return model, x, params, jnp.cumprod(1 - jnp.linspace(1e-3, 0.2, 20))


@program
def flax_diffusion():
    model, x, params, kept = _diffusion()
    optimizer = optax.adam(1e-3)

    def loss_of(params, key):
        k1, k2 = jax.random.split(key)
        t, noise = jax.random.randint(k1, (8,), 0, 20), jax.random.normal(k2, x.shape)
        a = kept[t][:, None, None, None]
        return jnp.mean((model.apply(params, jnp.sqrt(a) * x + jnp.sqrt(1 - a) * noise, t) - noise) ** 2)

    @jax.jit
    def step(params, opt, key):
        key, k = jax.random.split(key)
        updates, opt = optimizer.update(jax.grad(loss_of)(params, k), opt)
        return optax.apply_updates(params, updates), opt, key

    return stepping(step, params, optimizer.init(params), jax.random.key(1))


@program
def flax_diffusion_sampled():
    model, x, params, kept = _diffusion()

    @jax.jit
    def sample(params, x, key):
        def back(i, carry):
            x, key = carry
            key, k = jax.random.split(key)
            noise = model.apply(params, x, jnp.full(8, 19 - i))
            x = (x - 0.1 / jnp.sqrt(1 - kept[19 - i]) * noise) * 1.01
            return x + jnp.where(i < 19, 0.1, 0.0) * jax.random.normal(k, x.shape), key

        return jax.lax.fori_loop(0, 20, back, (x, key))

    return lambda: sample(params, x, jax.random.key(2))
