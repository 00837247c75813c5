"""flax.nnx: modules as objects that change."""

import jax
import jax.numpy as jnp
import optax
from common import blobs, images, program, tokens
from flax import nnx


def _entropy(logits, labels):
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


class MLP(nnx.Module):
    def __init__(self, rngs):
        self.first = nnx.Linear(8, 16, rngs=rngs)
        self.norm = nnx.LayerNorm(16, rngs=rngs)
        self.last = nnx.Linear(16, 4, rngs=rngs)
        self.calls = nnx.Variable(jnp.array(0))

    def __call__(self, x):
        self.calls[...] += 1
        return self.last(self.norm(nnx.relu(self.first(x))))


@program()
def mlp():
    x, y = blobs()
    model = MLP(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(1e-2), wrt=nnx.Param)

    @nnx.jit
    def step(model, optimizer):
        loss, grads = nnx.value_and_grad(lambda m: _entropy(m(x), y))(model)
        optimizer.update(model, grads)
        return loss

    losses = [step(model, optimizer) for _ in range(15)]
    graph, state = nnx.split(model)
    again = nnx.merge(graph, jax.tree.map(lambda v: v, state))
    return {"losses": jnp.stack(losses), "calls": model.calls[...], "again": again(x[:3])}


class CNN(nnx.Module):
    def __init__(self, rngs):
        self.conv1 = nnx.Conv(1, 8, (3, 3), rngs=rngs)
        self.norm = nnx.BatchNorm(8, momentum=0.9, rngs=rngs)
        self.conv2 = nnx.Conv(8, 8, (3, 3), strides=2, rngs=rngs)
        self.drop = nnx.Dropout(0.2, rngs=rngs)
        self.head = nnx.Linear(128, 2, rngs=rngs)

    def __call__(self, x):
        x = nnx.relu(self.norm(self.conv1(x)))
        x = nnx.relu(self.conv2(x))
        return self.head(self.drop(x.reshape(x.shape[0], -1)))


@program(rtol=1e-3, atol=1e-4)
def cnn_with_batch_norm_and_dropout():
    x, y = images()
    model = CNN(nnx.Rngs(params=0, dropout=1))
    optimizer = nnx.Optimizer(model, optax.sgd(0.05), wrt=nnx.Param)

    @nnx.jit
    def step(model, optimizer):
        loss, grads = nnx.value_and_grad(lambda m: _entropy(m(x), y))(model)
        optimizer.update(model, grads)
        return loss

    losses = [step(model, optimizer) for _ in range(8)]
    model.eval()
    return {"losses": jnp.stack(losses), "logits": model(x), "mean": model.norm.mean[...]}


class Block(nnx.Module):
    def __init__(self, rngs):
        self.attend = nnx.MultiHeadAttention(2, 16, decode=False, rngs=rngs)
        self.norm1, self.norm2 = nnx.LayerNorm(16, rngs=rngs), nnx.LayerNorm(16, rngs=rngs)
        self.up, self.down = nnx.Linear(16, 32, rngs=rngs), nnx.Linear(32, 16, rngs=rngs)
        self.drop = nnx.Dropout(0.1, rngs=rngs)

    def __call__(self, x):
        x = x + self.attend(self.norm1(x), mask=nnx.make_causal_mask(jnp.ones(x.shape[:2])))
        return x + self.drop(self.down(nnx.gelu(self.up(self.norm2(x)))))


class Transformer(nnx.Module):
    def __init__(self, rngs):
        self.embed = nnx.Embed(16, 16, rngs=rngs)
        self.blocks = nnx.List([Block(rngs) for _ in range(2)])
        self.head = nnx.Linear(16, 16, rngs=rngs)

    def __call__(self, t):
        x = self.embed(t)
        for block in self.blocks:
            x = nnx.remat(Block.__call__)(block, x)
        return self.head(x)


@program(rtol=1e-3, atol=1e-4)
def transformer_rematerialized():
    t = tokens()
    model = Transformer(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.sgd(0.2), wrt=nnx.Param)

    @nnx.jit
    def step(model, optimizer):
        loss, grads = nnx.value_and_grad(lambda m: _entropy(m(t[:, :-1]), t[:, 1:]))(model)
        optimizer.update(model, grads)
        return loss

    return {"losses": jnp.stack([step(model, optimizer) for _ in range(8)])}


@program()
def lifted_transformations():
    @nnx.split_rngs(splits=4)
    @nnx.vmap
    def several(rngs):
        return nnx.Linear(3, 3, rngs=rngs)

    layers = several(nnx.Rngs(0))

    @nnx.scan(in_axes=(0, nnx.Carry), out_axes=nnx.Carry)
    def through(layer, x):
        return jnp.tanh(layer(x))

    x = through(layers, jnp.ones(3))
    lstm = nnx.RNN(nnx.OptimizedLSTMCell(4, 5, rngs=nnx.Rngs(1)))
    state = nnx.state(layers)
    counted = nnx.cond(True, lambda m: m(jnp.ones(3)), lambda m: m(jnp.zeros(3)), nnx.Linear(3, 2, rngs=nnx.Rngs(2)))
    return {
        "x": x,
        "kernel": layers.kernel[...].shape[0],
        "lstm": lstm(jnp.sin(jnp.arange(24.0)).reshape(1, 6, 4))[0, -1],
        "leaves": len(jax.tree.leaves(state)),
        "cond": counted,
        "shapes": nnx.eval_shape(lambda: MLP(nnx.Rngs(0))).first.kernel.shape[0],
        "drawn": len(nnx.tabulate(nnx.Linear(3, 2, rngs=nnx.Rngs(2)), jnp.ones((1, 3)))) > 50,
    }
