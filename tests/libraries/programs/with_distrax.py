"""distrax: distributions and bijectors, and flows of them."""

import distrax
import jax
import jax.numpy as jnp
import optax
from common import program


@program(rtol=1e-3)
def distributions():
    key = jax.random.PRNGKey(0)
    normal = distrax.MultivariateNormalDiag(jnp.zeros(2), jnp.ones(2))
    categorical = distrax.Categorical(logits=jnp.arange(4.0))
    mixture = distrax.MixtureSameFamily(
        distrax.Categorical(probs=jnp.array([0.3, 0.7])), distrax.Normal(jnp.array([0.0, 2.0]), jnp.ones(2))
    )
    transformed = distrax.Transformed(distrax.Normal(0.0, 1.0), distrax.Tanh())
    x, density = jax.jit(lambda k: transformed.sample_and_log_prob(seed=k, sample_shape=3))(key)
    full = distrax.MultivariateNormalFullCovariance(jnp.zeros(2), jnp.array([[1.0, 0.2], [0.2, 1.0]]))
    return {
        "normal": normal.sample(seed=key, sample_shape=3),
        "density": normal.log_prob(jnp.ones(2)),
        "kl": normal.kl_divergence(distrax.MultivariateNormalDiag(jnp.ones(2), 2 * jnp.ones(2))),
        "categorical": categorical.sample(seed=key, sample_shape=6),
        "entropy": categorical.entropy(),
        "mixture": mixture.log_prob(jnp.linspace(-1, 3, 5)),
        "sampled": mixture.sample(seed=key, sample_shape=3),
        "x": x,
        "transformed": density,
        "beta": distrax.Beta(2.0, 3.0).log_prob(0.4),
        "gamma": distrax.Gamma(2.0, 3.0).sample(seed=key, sample_shape=3),
        "full": full.log_prob(jnp.ones(2)),
        "uniform": distrax.Uniform(0.0, 2.0).sample(seed=key, sample_shape=2),
        "von_mises": distrax.VonMises(0.1, 2.0).log_prob(jnp.array([0.3, 1.0])),
        "grad": jax.grad(lambda l: distrax.Categorical(logits=l).entropy())(jnp.arange(3.0)),
    }


@program(rtol=2e-3, atol=1e-3)
def coupling_flow_trained():
    data = jnp.stack([jnp.cos(jnp.arange(64.0)), jnp.sin(jnp.arange(64.0))], -1) * 1.5

    def conditioner(p):
        return lambda x: (jnp.tanh(x @ p["w1"]) @ p["w2"]).reshape(*x.shape[:-1], 2, 13)

    def flow(params):
        layers = []
        for i, p in enumerate(params):
            layers.append(
                distrax.MaskedCoupling(
                    mask=jnp.arange(2) % 2 == i % 2,
                    bijector=lambda q: distrax.RationalQuadraticSpline(q, range_min=-3.0, range_max=3.0),
                    conditioner=conditioner(p),
                )
            )
        base = distrax.Independent(distrax.Normal(jnp.zeros(2), jnp.ones(2)), 1)
        return distrax.Transformed(base, distrax.Inverse(distrax.Chain(layers)))

    keys = jax.random.split(jax.random.PRNGKey(1), 4)
    params = [
        {"w1": 0.3 * jax.random.normal(keys[2 * i], (2, 8)), "w2": 0.3 * jax.random.normal(keys[2 * i + 1], (8, 26))}
        for i in range(2)
    ]
    optimizer = optax.adam(1e-2)

    @jax.jit
    def step(params, opt):
        loss, grads = jax.value_and_grad(lambda p: -flow(p).log_prob(data).mean())(params)
        updates, opt = optimizer.update(grads, opt)
        return optax.apply_updates(params, updates), opt, loss

    opt, losses = optimizer.init(params), []
    for _ in range(15):
        params, opt, loss = step(params, opt)
        losses.append(loss)
    return {"losses": jnp.stack(losses), "sample": flow(params).sample(seed=keys[0], sample_shape=2)}


@program(rtol=1e-3)
def hidden_markov_model():
    hmm = distrax.HMM(
        distrax.Categorical(probs=jnp.array([0.6, 0.4])),
        distrax.Categorical(probs=jnp.array([[0.7, 0.3], [0.2, 0.8]])),
        distrax.Normal(jnp.array([0.0, 2.0]), jnp.ones(2)),
    )
    seen = jnp.array([0.1, 1.9, 2.2, 0.3])
    alphas, betas, marginals, log_prob = jax.jit(hmm.forward_backward)(seen)
    return {"marginals": marginals, "log_prob": log_prob, "path": hmm.viterbi(seen)}
