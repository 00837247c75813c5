"""TensorFlow Probability's substrate for JAX."""

import jax
import jax.numpy as jnp
from common import program
from tensorflow_probability.substrates import jax as tfp

tfd, tfb = tfp.distributions, tfp.bijectors


@program(rtol=1e-3, atol=1e-3)
def hmc():
    density = tfd.JointDistributionSequential([tfd.Normal(0.0, 1.0), lambda m: tfd.Normal(m, 0.5)])
    kernel = tfp.mcmc.HamiltonianMonteCarlo(lambda a, b: density.log_prob(a, b), step_size=0.2, num_leapfrog_steps=4)

    @jax.jit
    def run(key):
        return tfp.mcmc.sample_chain(
            20,
            current_state=[jnp.zeros(()), jnp.ones(())],
            kernel=kernel,
            trace_fn=lambda _, r: r.is_accepted,
            seed=key,
        )

    (a, b), accepted = run(jax.random.PRNGKey(0))
    return {"a": a, "b": b, "accepted": accepted}


@program(rtol=1e-3)
def distributions_and_bijectors():
    key = jax.random.PRNGKey(1)
    x = jnp.array([0.2, 0.5, 0.9])
    process = tfd.GaussianProcess(
        tfp.math.psd_kernels.ExponentiatedQuadratic(), x[:, None], observation_noise_variance=0.1
    )
    return {
        "gamma": tfd.Gamma(2.0, 1.0).log_prob(x),
        "gamma_sample": tfd.Gamma(2.0, 1.0).sample(3, seed=key),
        "gamma_grad": jax.grad(lambda a: tfd.Gamma(a, 1.0).sample(seed=key))(2.0),
        "beta_cdf": tfd.Beta(2.0, 3.0).cdf(x),
        "student": tfd.StudentT(3.0, 0.0, 1.0).log_prob(x),
        "wishart": tfd.WishartTriL(4, jnp.eye(2)).sample(seed=key),
        "negative": tfd.NegativeBinomial(3.0, probs=0.4).log_prob(jnp.arange(3.0)),
        "process": process.log_prob(jnp.sin(x)),
        "kl": tfd.kl_divergence(tfd.Normal(0.0, 1.0), tfd.Normal(1.0, 2.0)),
        "softplus": tfb.Softplus().forward_log_det_jacobian(x),
        "chain": tfb.Chain([tfb.Exp(), tfb.Scale(2.0), tfb.Shift(0.1)]).inverse(x),
        "fill": tfb.FillScaleTriL().forward(x),
        "root": tfp.math.find_root_chandrupatla(lambda z: z**3 - 2.0, 0.0, 2.0).estimated_root,
        "betainc": tfp.math.betainc(2.0, 3.0, x),
        "bessel": tfp.math.bessel_iv_ratio(1.5, x),
    }


@program(rtol=1e-3, atol=1e-3)
def optimizers_and_interpolation():
    found = tfp.optimizer.lbfgs_minimize(
        lambda z: tfp.math.value_and_gradient(lambda v: jnp.sum((v - jnp.array([1.0, -2.0])) ** 4 + v**2), z),
        initial_position=jnp.zeros(2),
        max_iterations=20,
    )
    grid = jnp.sin(jnp.linspace(0.0, 3.0, 10))
    return {
        "lbfgs": found.position,
        "interpolated": tfp.math.interp_regular_1d_grid(jnp.array([0.4, 1.7]), 0.0, 3.0, grid),
        "percentile": tfp.stats.percentile(grid, jnp.array([25.0, 50.0])),
        "correlation": tfp.stats.correlation(jnp.stack([grid, grid**2], -1)),
    }
