"""tinygp: Gaussian processes."""

import jax
import jax.numpy as jnp
from common import program
from tinygp import GaussianProcess, kernels

X = jnp.sort(jnp.sin(jnp.arange(20.0) * 7) * 3)
Y = jnp.sin(X) + 0.1 * jnp.cos(5 * X)


@program(rtol=1e-3, atol=1e-3)
def fitted():
    def process(p):
        kernel = jnp.exp(p["amp"]) * kernels.Matern52(jnp.exp(p["scale"])) + kernels.ExpSquared(2.0) * 0.1
        return GaussianProcess(kernel, X, diag=jnp.exp(p["noise"]), mean=p["mean"])

    def loss(p):
        return -process(p).log_probability(Y)

    params = {"amp": jnp.array(0.0), "scale": jnp.array(0.0), "noise": jnp.array(-2.0), "mean": jnp.array(0.0)}

    @jax.jit
    def step(p):
        value, grads = jax.value_and_grad(loss)(p)
        return jax.tree.map(lambda x, g: x - 0.01 * g, p, grads), value

    values = []
    for _ in range(10):
        params, value = step(params)
        values.append(value)
    _, conditioned = process(params).condition(Y, jnp.linspace(-2, 2, 5))
    return {"values": jnp.stack(values), "mean": conditioned.loc, "variance": conditioned.variance}


@program(rtol=1e-3, atol=1e-3)
def quasiseparable():
    kernel = kernels.quasisep.Matern32(1.5) + kernels.quasisep.SHO(omega=2.0, quality=3.0)
    process = GaussianProcess(kernel, X, diag=0.1)
    grad = jax.grad(lambda s: GaussianProcess(kernels.quasisep.Matern32(s), X, diag=0.1).log_probability(Y))(1.5)
    carma = kernels.quasisep.CARMA(alpha=jnp.array([1.2, 0.8]), beta=jnp.array([1.0, 0.5]))
    return {
        "log": jax.jit(lambda y: process.log_probability(y))(Y),
        "grad": grad,
        "sample": process.sample(jax.random.PRNGKey(0))[:5],
        "carma": GaussianProcess(carma, X, diag=0.1).log_probability(Y),
    }
