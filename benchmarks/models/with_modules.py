"""Networks of haiku and equinox, what optax, rlax, distrax and penzai do with networks, and checkpoints of orbax."""

import tempfile

import chex
import distrax
import equinox as eqx
import haiku as hk
import jax
import jax.numpy as jnp
import optax
import orbax.checkpoint
import rlax
from common import normal, program, stepping, whole
from einops import rearrange
from penzai import pz
from penzai.models import simple_mlp


def entropy(logits, labels):
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def _trained(loss_of, params, optimizer):
    @jax.jit
    def step(params, opt, key):
        key, k = jax.random.split(key)
        updates, opt = optimizer.update(jax.grad(loss_of)(params, k), opt, params)
        return optax.apply_updates(params, updates), opt, key

    return stepping(step, params, optimizer.init(params), jax.random.PRNGKey(1))


@program
def haiku_lstm():
    t = whole(64, 16, 65)

    def net(t):
        core = hk.DeepRNN([hk.LSTM(128), jax.nn.relu, hk.GRU(64)])
        x = hk.Embed(64, 64)(t).transpose(1, 0, 2)
        out, _ = hk.dynamic_unroll(core, x, core.initial_state(t.shape[0]))
        return hk.BatchApply(hk.Linear(64))(out).transpose(1, 0, 2)

    model = hk.without_apply_rng(hk.transform(net))
    params = model.init(jax.random.PRNGKey(0), t[:, :-1])
    return _trained(lambda p, _: entropy(model.apply(p, t[:, :-1]), t[:, 1:]), params, optax.adam(1e-3))


@program
def haiku_transformer():
    t = whole(128, 8, 65)

    def block(x):
        y = hk.LayerNorm(-1, True, True)(x)
        mask = jnp.tril(jnp.ones((1, 1, x.shape[1], x.shape[1])))
        x = x + hk.MultiHeadAttention(4, 32, w_init=hk.initializers.VarianceScaling(1.0))(y, y, y, mask)
        return x + hk.dropout(hk.next_rng_key(), 0.1, hk.nets.MLP([256, 128])(hk.LayerNorm(-1, True, True)(x)))

    def net(t):
        x = hk.Embed(128, 128)(t)
        x = hk.layer_stack(3)(hk.remat(block))(x)
        return hk.Linear(128)(x)

    model = hk.transform(net)
    params = model.init(jax.random.PRNGKey(0), t[:, :-1])
    return _trained(lambda p, key: entropy(model.apply(p, key, t[:, :-1]), t[:, 1:]), params, optax.sgd(0.1))


class Encoder(eqx.Module):
    embed: eqx.nn.Conv2d
    attend: eqx.nn.MultiheadAttention
    norm: eqx.nn.LayerNorm
    mlp: eqx.nn.MLP
    head: eqx.nn.Linear

    def __init__(self, key):
        a, b, c, d = jax.random.split(key, 4)
        self.embed = eqx.nn.Conv2d(3, 64, 4, stride=4, key=a)
        self.attend = eqx.nn.MultiheadAttention(4, 64, key=b)
        self.norm = eqx.nn.LayerNorm(64)
        self.mlp = eqx.nn.MLP(64, 64, 128, 1, jax.nn.gelu, key=c)
        self.head = eqx.nn.Linear(64, 10, key=d)

    def __call__(self, image):
        x = rearrange(self.embed(image), "c h w -> (h w) c")
        y = jax.vmap(self.norm)(x)
        x = x + self.attend(y, y, y)
        return self.head((x + jax.vmap(self.mlp)(jax.vmap(self.norm)(x))).mean(0))


@program
def equinox_vision():
    """A vision transformer of one layer."""
    x, y = normal(16, 3, 32, 32), whole(10, 16)
    model, optimizer = Encoder(jax.random.key(0)), optax.adam(1e-3)

    @eqx.filter_jit
    def step(model, opt):
        grads = eqx.filter_grad(lambda m: entropy(jax.vmap(m)(x), y))(model)
        updates, opt = optimizer.update(grads, opt, model)
        return eqx.apply_updates(model, updates), opt

    return stepping(step, model, optimizer.init(eqx.filter(model, eqx.is_array)))


@program
def optax_lbfgs():
    """Twenty steps on a logistic regression, with a line search each."""
    x, y = normal(512, 32), whole(2, 512).astype("float32")

    def loss_of(w):
        return optax.sigmoid_binary_cross_entropy(x @ w, y).mean() + 1e-3 * jnp.sum(w**2)

    optimizer = optax.lbfgs()
    value_and_grad = optax.value_and_grad_from_state(loss_of)

    def step(carry, _):
        w, opt = carry
        value, grad = value_and_grad(w, state=opt)
        updates, opt = optimizer.update(grad, opt, w, value=value, grad=grad, value_fn=loss_of)
        return (optax.apply_updates(w, updates), opt), value

    @jax.jit
    def run(w):
        return jax.lax.scan(step, (w, optimizer.init(w)), None, length=20)[1]

    return lambda: run(jnp.zeros(32))


@chex.dataclass(frozen=True)
class Played:
    """What was seen: states, actions, rewards, discounts, of many games."""

    seen: chex.Array
    actions: chex.Array
    rewards: chex.Array


@program
def rlax_actor_critic():
    played = Played(seen=normal(32, 21, 16), actions=whole(4, 32, 20), rewards=normal(32, 20, seed=1))
    model = hk.without_apply_rng(hk.transform(lambda x: (hk.nets.MLP([64, 4])(x), hk.nets.MLP([64, 1])(x)[..., 0])))
    params = model.init(jax.random.PRNGKey(0), played.seen)

    def loss_of(params, _):
        logits, values = model.apply(params, played.seen)
        chex.assert_shape(values, (32, 21))
        advantages = jax.vmap(rlax.truncated_generalized_advantage_estimation, (0, None, None, 0))(
            played.rewards, jnp.full(20, 0.99), 0.95, values
        )
        policy = jax.vmap(rlax.policy_gradient_loss)(logits[:, :-1], played.actions, advantages, jnp.ones((32, 20)))
        entropies = jax.vmap(rlax.entropy_loss)(logits[:, :-1], jnp.ones((32, 20)))
        returns = jax.lax.stop_gradient(advantages + values[:, :-1])
        return policy.mean() + 0.01 * entropies.mean() + rlax.l2_loss(values[:, :-1], returns).mean()

    return _trained(loss_of, params, optax.rmsprop(1e-3))


@program
def distrax_flow():
    """A flow of six couplings, trained."""
    x = normal(256, 8)

    def conditioner(v):
        return hk.Sequential([hk.nets.MLP([64, 64]), jax.nn.relu, hk.Linear(16), lambda h: h.reshape(-1, 8, 2)])(v)

    def bijector(p):
        return distrax.ScalarAffine(shift=p[..., 0], log_scale=0.1 * jnp.tanh(p[..., 1]))

    def log_prob(x):
        mask = jnp.arange(8) % 2 == 0
        layers = [
            distrax.MaskedCoupling(mask=mask if n % 2 else ~mask, bijector=bijector, conditioner=conditioner)
            for n in range(6)
        ]
        base = distrax.Independent(distrax.Normal(jnp.zeros(8), jnp.ones(8)), 1)
        return distrax.Transformed(base, distrax.Inverse(distrax.Chain(layers))).log_prob(x)

    model = hk.without_apply_rng(hk.transform(log_prob))
    params = model.init(jax.random.PRNGKey(0), x)
    return _trained(lambda p, _: -model.apply(p, x).mean(), params, optax.adam(1e-3))


@program
def penzai_mlp():
    model = simple_mlp.MLP.from_config(
        name="mlp", init_base_rng=jax.random.key(0), feature_sizes=[64, 128, 10], activation_fn=jax.nn.relu
    )
    model, variables = pz.unbind_params(model)
    x, y = pz.nx.wrap(normal(128, 64), "batch", "features"), whole(10, 128)

    @jax.jit
    def step(variables):
        def loss_of(variables):
            return entropy(pz.bind_variables(model, variables)(x).unwrap("batch", "features"), y)

        return (jax.tree.map(lambda v, g: v - 0.1 * g, variables, jax.grad(loss_of)(variables)),)

    return stepping(step, tuple(v.freeze() for v in variables))


@program
def orbax_checkpoint():
    """A tree of forty arrays saved and restored."""
    tree = {f"layer{n}": {"w": jnp.asarray(normal(128, 128, seed=n)), "b": jnp.zeros(128)} for n in range(20)}
    folder = tempfile.TemporaryDirectory()
    checkpointer = orbax.checkpoint.StandardCheckpointer()

    def step():
        path = f"{folder.name}/saved"
        checkpointer.save(path, tree, force=True)
        checkpointer.wait_until_finished()
        return checkpointer.restore(path, tree)

    return step
