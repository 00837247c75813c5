"""numpyro: probabilistic programs."""

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from common import blobs, program
from numpyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO, log_likelihood
from numpyro.infer.autoguide import AutoNormal
from numpyro.infer.reparam import LocScaleReparam

EFFECTS = jnp.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
ERRORS = jnp.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


@numpyro.handlers.reparam(config={"theta": LocScaleReparam(0)})
def eight_schools(y=None):
    mu = numpyro.sample("mu", dist.Normal(0, 5))
    tau = numpyro.sample("tau", dist.HalfCauchy(5))
    with numpyro.plate("schools", 8):
        theta = numpyro.sample("theta", dist.Normal(mu, tau))
        numpyro.sample("obs", dist.Normal(theta, ERRORS), obs=y)


@program(rtol=1e-3, atol=1e-3)
def nuts_on_eight_schools_without_adaptation():
    """Adaptation is chaotic, so what is compared number by number is a run with a fixed step."""
    kernel = NUTS(eight_schools, step_size=0.2, adapt_step_size=False, adapt_mass_matrix=False, max_tree_depth=4)
    mcmc = MCMC(kernel, num_warmup=0, num_samples=20, progress_bar=False)
    mcmc.run(jax.random.PRNGKey(0), y=EFFECTS, extra_fields=("num_steps",))
    samples = mcmc.get_samples()
    return {"mu": samples["mu"], "tau": samples["tau"], "steps": mcmc.get_extra_fields()["num_steps"]}


@program(rtol=0.25, atol=0.6)
def nuts_on_eight_schools():
    """The means of many samples, which any right run gives, within what chance allows."""
    mcmc = MCMC(NUTS(eight_schools), num_warmup=500, num_samples=2000, progress_bar=False)
    mcmc.run(jax.random.PRNGKey(0), y=EFFECTS)
    samples = mcmc.get_samples()
    summary = numpyro.diagnostics.summary(mcmc.get_samples(group_by_chain=True))
    return {
        "mu": samples["mu"].mean(),
        "tau": samples["tau"].mean(),
        "theta": samples["theta"].mean(0),
        "converged": all(bool((v["r_hat"] < 1.05).all()) for v in summary.values()),
    }


def _regression(x, y=None):
    w = numpyro.sample("w", dist.Normal(jnp.zeros(8), 1.0).to_event(1))
    b = numpyro.sample("b", dist.Normal(0.0, 1.0))
    with numpyro.plate("data", len(x)):
        numpyro.sample("y", dist.Bernoulli(logits=x @ w + b), obs=y)


@program()
def variational_inference():
    x, labels = blobs()
    y = (labels > 1).astype(jnp.float32)
    guide = AutoNormal(_regression)
    svi = SVI(_regression, guide, numpyro.optim.Adam(0.02), Trace_ELBO())
    result = svi.run(jax.random.PRNGKey(1), 100, x, y, progress_bar=False)
    posterior = guide.sample_posterior(jax.random.PRNGKey(2), result.params, sample_shape=(5,))
    predicted = Predictive(_regression, posterior)(jax.random.PRNGKey(3), x)
    likelihood = log_likelihood(_regression, posterior, x, y)
    return {
        "losses": result.losses[::10],
        "w": guide.median(result.params)["w"],
        "predicted": predicted["y"].sum(1),
        "likelihood": likelihood["y"].sum(1),
    }


@program(rtol=1e-3)
def distributions():
    key = jax.random.PRNGKey(4)
    x = jnp.array([0.2, 0.5, 0.7])
    cases = {
        "normal": dist.Normal(0.3, 1.2),
        "gamma": dist.Gamma(2.0, 1.5),
        "beta": dist.Beta(2.0, 3.0),
        "student": dist.StudentT(4.0, 0.1, 1.0),
        "cauchy": dist.Cauchy(0.0, 1.0),
        "gumbel": dist.Gumbel(0.0, 1.0),
        "laplace": dist.Laplace(0.1, 1.0),
        "weibull": dist.Weibull(1.0, 2.0),
        "truncated": dist.TruncatedNormal(0.2, 1.0, low=0.0, high=1.0),
        "mises": dist.VonMises(0.1, 2.0),
        "transformed": dist.TransformedDistribution(dist.Normal(0, 1), dist.transforms.ExpTransform()),
        "mixture": dist.MixtureSameFamily(
            dist.Categorical(jnp.array([0.4, 0.6])), dist.Normal(jnp.array([0.0, 1.0]), 0.5)
        ),
    }
    told = {f"{name}_density": d.log_prob(x) for name, d in cases.items()}
    told |= {f"{name}_sample": d.sample(key, (3,)) for name, d in cases.items() if name != "mises"}
    covariance = jnp.array([[1.0, 0.3], [0.3, 2.0]])
    told["multivariate"] = dist.MultivariateNormal(jnp.zeros(2), covariance).log_prob(jnp.ones(2))
    told["lkj"] = dist.LKJCholesky(3, 1.5).sample(key)
    told["dirichlet"] = dist.Dirichlet(jnp.array([1.0, 2.0, 3.0])).sample(key)
    told["binomial"] = dist.Binomial(10, 0.3).log_prob(jnp.arange(4))
    told["poisson"] = dist.Poisson(3.0).sample(key, (4,))
    told["kl"] = dist.kl_divergence(dist.Normal(0.0, 1.0), dist.Normal(1.0, 2.0))
    return told
