"""blackjax: samplers as functions."""

import blackjax
import jax
import jax.numpy as jnp
from common import program


def _density(x):
    return -0.5 * jnp.sum(x["a"] ** 2 / jnp.array([1.0, 4.0])) - 0.5 * jnp.sum((x["b"] - x["a"][0]) ** 2)


START = {"a": jnp.array([0.5, -0.5]), "b": jnp.array([1.0])}


def _run(algorithm, steps=20):
    state = algorithm.init(START)

    @jax.jit
    def many(state, keys):
        return jax.lax.scan(lambda s, k: (algorithm.step(k, s)[0],) * 2, state, keys)[1].position

    return many(state, jax.random.split(jax.random.key(0), steps))


@program(rtol=1e-3, atol=1e-3)
def samplers():
    walk = blackjax.additive_step_random_walk(_density, blackjax.mcmc.random_walk.normal(jnp.full(3, 0.3)))
    towards_one = lambda x: -0.5 * jnp.sum((x - 1) ** 2)
    slices = blackjax.elliptical_slice(towards_one, mean=jnp.zeros(2), cov=jnp.eye(2))
    return {
        "nuts": _run(blackjax.nuts(_density, 0.4, jnp.ones(3)))["a"],
        "hmc": _run(blackjax.hmc(_density, 0.3, jnp.ones(3), 6))["a"],
        "mala": _run(blackjax.mala(_density, 0.1))["a"],
        "walk": _run(walk)["a"],
        "slice": slices.step(jax.random.key(1), slices.init(jnp.zeros(2)))[0].position,
    }


@program(rtol=0.3, atol=0.35)
def adapted_in_windows():
    """Means and spreads, which any right run gives, within what chance allows."""
    warmup = blackjax.window_adaptation(blackjax.nuts, _density)
    (state, parameters), _ = warmup.run(jax.random.key(2), START, num_steps=300)
    step = blackjax.nuts(_density, **parameters).step
    keys = jax.random.split(jax.random.key(3), 2000)
    _, positions = jax.lax.scan(lambda s, k: (step(k, s)[0],) * 2, state, keys)
    a = positions.position["a"]
    return {"mean": a.mean(0), "spread": a.std(0), "ess": blackjax.ess(a[None, :, 0]) > 200}


@program(rtol=1e-3, atol=1e-3)
def particles_drawn_again():
    weights = jnp.array([0.1, 0.4, 0.2, 0.3])
    key = jax.random.key(4)
    resampling = blackjax.smc.resampling
    return {
        "systematic": resampling.systematic(key, weights, 8),
        "stratified": resampling.stratified(key, weights, 8),
        "multinomial": resampling.multinomial(key, weights, 8),
        "residual": resampling.residual(key, weights, 8),
    }
