"""equinox: models as trees."""

import io

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from common import blobs, images, program, tokens


def _entropy(logits, labels):
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


@program()
def mlp():
    x, y = blobs()
    model = eqx.nn.MLP(8, 4, 16, 2, key=jax.random.key(0))
    optimizer = optax.adam(1e-2)
    opt = optimizer.init(eqx.filter(model, eqx.is_array))

    @eqx.filter_jit
    def step(model, opt):
        loss, grads = eqx.filter_value_and_grad(lambda m: _entropy(jax.vmap(m)(x), y))(model)
        updates, opt = optimizer.update(grads, opt, model)
        return eqx.apply_updates(model, updates), opt, loss

    losses = []
    for _ in range(20):
        model, opt, loss = step(model, opt)
        losses.append(loss)
    file = io.BytesIO()
    eqx.tree_serialise_leaves(file, model)
    file.seek(0)
    again = eqx.tree_deserialise_leaves(file, eqx.nn.MLP(8, 4, 16, 2, key=jax.random.key(1)))
    changed = eqx.tree_at(lambda m: m.layers[0].bias, again, jnp.ones(16))
    return {"losses": jnp.stack(losses), "again": jax.vmap(again)(x[:3]), "changed": jax.vmap(changed)(x[:3])}


class CNN(eqx.Module):
    conv1: eqx.nn.Conv2d
    norm: eqx.nn.BatchNorm
    conv2: eqx.nn.Conv2d
    drop: eqx.nn.Dropout
    head: eqx.nn.Linear

    def __init__(self, key):
        a, b, c = jax.random.split(key, 3)
        self.conv1 = eqx.nn.Conv2d(1, 8, 3, padding=1, key=a)
        self.norm = eqx.nn.BatchNorm(8, axis_name="batch", mode="batch")
        self.conv2 = eqx.nn.Conv2d(8, 8, 3, stride=2, key=b)
        self.drop = eqx.nn.Dropout(0.2)
        self.head = eqx.nn.Linear(72, 2, key=c)

    def __call__(self, x, state, key):
        x, state = self.norm(self.conv1(x), state)
        x = jax.nn.relu(self.conv2(jax.nn.relu(x))).reshape(-1)
        return self.head(self.drop(x, key=key)), state


@program(rtol=1e-3, atol=1e-4)
def cnn_with_batch_norm_and_dropout():
    x, y = images()
    x = x.transpose(0, 3, 1, 2)
    model, state = eqx.nn.make_with_state(CNN)(jax.random.key(0))
    optimizer = optax.sgd(0.05)
    opt = optimizer.init(eqx.filter(model, eqx.is_inexact_array))

    @eqx.filter_value_and_grad(has_aux=True)
    def loss_of(model, state, keys):
        logits, state = jax.vmap(model, axis_name="batch", in_axes=(0, None, 0), out_axes=(0, None))(x, state, keys)
        return _entropy(logits, y), state

    @eqx.filter_jit
    def step(model, state, opt, key):
        (loss, state), grads = loss_of(model, state, jax.random.split(key, len(x)))
        updates, opt = optimizer.update(grads, opt)
        return eqx.apply_updates(model, updates), state, opt, loss

    losses = []
    for n in range(8):
        model, state, opt, loss = step(model, state, opt, jax.random.key(n))
        losses.append(loss)
    quiet = eqx.nn.inference_mode(model)
    logits, _ = jax.vmap(quiet, axis_name="batch", in_axes=(0, None, None), out_axes=(0, None))(x, state, None)
    return {"losses": jnp.stack(losses), "logits": logits}


@program()
def attention():
    t = tokens(4)
    keys = jax.random.split(jax.random.key(0), 3)
    embed = eqx.nn.Embedding(16, 8, key=keys[0])
    attend = eqx.nn.MultiheadAttention(2, 8, key=keys[1])
    norm, rotary = eqx.nn.LayerNorm(8), eqx.nn.RotaryPositionalEmbedding(8)

    def f(parts, t):
        embed, attend = parts
        x = jax.vmap(norm)(rotary(jax.vmap(embed)(t)))
        return attend(x, x, x, mask=jnp.tril(jnp.ones((12, 12), bool)))

    loss, grads = eqx.filter_jit(
        eqx.filter_value_and_grad(lambda parts: jnp.mean(jax.vmap(f, in_axes=(None, 0))(parts, t) ** 2))
    )((embed, attend))
    return {"loss": loss, "embed": grads[0].weight, "query": grads[1].query_proj.weight}


@program()
def loops_and_errors():
    def loop(kind, x):
        def body(carry):
            x, n = carry
            return jnp.sin(x) * 1.5, n + 1

        out, _ = eqx.internal.while_loop(lambda c: c[1] < 7, body, (x, 0), max_steps=16, kind=kind)
        return out.sum()

    x = jnp.linspace(0.1, 1.0, 4)
    refused = 0
    try:
        jax.block_until_ready(eqx.filter_jit(lambda x: eqx.error_if(x, x > 0.5, "too large"))(x))
    except Exception as e:
        refused = int("too large" in str(e))
    primal, tangent = eqx.filter_jvp(
        lambda x: eqx.internal.scan(lambda c, y: (c * y, c), 1.0, x, kind="lax")[1], (x,), (x,)
    )
    return {
        "lax": eqx.filter_jit(loop)("lax", x),
        "checkpointed": jax.jit(jax.grad(lambda x: loop("checkpointed", x)))(x),
        "bounded": jax.jit(jax.grad(lambda x: loop("bounded", x)))(x),
        "refused": refused,
        "ok": eqx.filter_jit(lambda x: eqx.error_if(x, x > 5, "too large"))(x),
        "primal": primal,
        "tangent": tangent,
        "traced": len(eqx.filter_make_jaxpr(lambda x: x * 2)(x)[0].jaxpr.eqns),
        "shape": len(eqx.filter_eval_shape(eqx.nn.Linear, 3, 4, key=jax.random.key(0)).weight.shape),
    }


@program()
def transformations():
    @eqx.filter_custom_vjp
    def clip(x, bound):
        return x

    @clip.def_fwd
    def _(perturbed, x, bound):
        return x, None

    @clip.def_bwd
    def _(residuals, ct, perturbed, x, bound):
        return jnp.clip(ct, -bound, bound)

    models = eqx.filter_vmap(lambda k: eqx.nn.Linear(3, 2, key=k))(jax.random.split(jax.random.key(0), 4))
    out = eqx.filter_vmap(lambda m, x: m(x), in_axes=(eqx.if_array(0), None))(models, jnp.ones(3))
    hessian = eqx.filter_hessian(lambda x: jnp.sum(x**3))(jnp.arange(3.0))
    converted = eqx.filter_closure_convert(lambda x: x * 3, jnp.ones(2))
    return {
        "clipped": eqx.filter_grad(lambda x: jnp.sum(clip(x, 0.5) ** 2))(jnp.arange(3.0)),
        "out": out,
        "hessian": hessian,
        "converted": converted(jnp.arange(2.0)),
        "checkpointed": jax.grad(eqx.filter_checkpoint(lambda x: jnp.sum(jnp.tanh(x) ** 2)))(jnp.arange(3.0)),
    }
