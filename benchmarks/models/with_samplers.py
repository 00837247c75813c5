"""Samplers and inference: numpyro, blackjax and TFP."""

import blackjax
import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from common import normal, program, stepping, whole
from numpyro.infer import MCMC, NUTS, SVI, Trace_ELBO
from numpyro.infer.autoguide import AutoNormal
from tensorflow_probability.substrates import jax as tfp

EFFECTS = jnp.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
ERRORS = jnp.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


def eight_schools(y=None):
    mu = numpyro.sample("mu", dist.Normal(0, 5))
    tau = numpyro.sample("tau", dist.HalfCauchy(5))
    with numpyro.plate("schools", 8):
        theta = numpyro.sample("theta", dist.Normal(0, 1))
        numpyro.sample("obs", dist.Normal(mu + tau * theta, ERRORS), obs=y)


@program
def numpyro_run():
    """A run of 200 samples of the eight schools, as users call it: what it compiles, it compiles in each run anew."""

    def step():
        kernel = NUTS(eight_schools, step_size=0.2, adapt_step_size=False, adapt_mass_matrix=False, max_tree_depth=5)
        mcmc = MCMC(kernel, num_warmup=0, num_samples=200, progress_bar=False)
        mcmc.run(jax.random.PRNGKey(0), y=EFFECTS)
        return mcmc.get_samples()

    return step


@program
def numpyro_nuts():
    """Two hundred samples of the eight schools, in a loop that is compiled once."""
    kernel = NUTS(eight_schools, step_size=0.2, max_tree_depth=5)
    start = kernel.init(jax.random.PRNGKey(0), 100, None, (), {"y": EFFECTS})

    @jax.jit
    def many(state):
        return jax.lax.scan(lambda s, _: (kernel.sample(s, (), {"y": EFFECTS}),) * 2, state, None, length=200)[1].z

    return lambda: many(start)


@program
def numpyro_variational():
    """A step of variational inference on a regression."""
    x, y = normal(256, 16), whole(2, 256).astype("float32")

    def regression(x, y):
        w = numpyro.sample("w", dist.Normal(jnp.zeros(16), 1.0).to_event(1))
        b = numpyro.sample("b", dist.Normal(0.0, 1.0))
        with numpyro.plate("data", len(x)):
            numpyro.sample("y", dist.Bernoulli(logits=x @ w + b), obs=y)

    svi = SVI(regression, AutoNormal(regression), numpyro.optim.Adam(0.01), Trace_ELBO())
    update = jax.jit(lambda state: (svi.update(state, x, y)[0],))
    return stepping(update, svi.init(jax.random.PRNGKey(1), x, y))


def _density(w, x, y):
    logits = x @ w
    return jnp.sum(y * logits - jnp.logaddexp(0.0, logits)) - 0.5 * jnp.sum(w**2)


@program
def blackjax_nuts():
    """A hundred samples of a logistic regression."""
    x, y = normal(200, 8), whole(2, 200)
    algorithm = blackjax.nuts(lambda w: _density(w, x, y), step_size=0.1, inverse_mass_matrix=jnp.ones(8))

    @jax.jit
    def many(state, keys):
        return jax.lax.scan(lambda s, k: (algorithm.step(k, s)[0],) * 2, state, keys)[1].position

    state = algorithm.init(jnp.zeros(8))
    keys = jax.random.split(jax.random.key(0), 100)
    return lambda: many(state, keys)


@program
def tfp_hamiltonian():
    """A hundred samples of a logistic regression in four chains."""
    x, y = normal(200, 8), whole(2, 200)
    kernel = tfp.mcmc.HamiltonianMonteCarlo(jax.vmap(lambda w: _density(w, x, y)), step_size=0.05, num_leapfrog_steps=5)

    @jax.jit
    def run(key, start):
        return tfp.mcmc.sample_chain(100, start, kernel=kernel, trace_fn=None, seed=key)

    return lambda: run(jax.random.key(0), jnp.zeros((4, 8)))
