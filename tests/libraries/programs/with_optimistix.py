"""optimistix: roots, minima, fixed points and least squares."""

import jax
import jax.numpy as jnp
import optimistix as optx
from common import program


@program(rtol=1e-3)
def roots_with_gradients():
    def f(y, args):
        return jnp.stack([y[0] ** 2 + y[1] - args, y[0] - y[1] ** 3])

    @jax.jit
    def solve(args):
        return optx.root_find(f, optx.Newton(1e-6, 1e-6), jnp.array([1.0, 1.0]), args).value

    return {
        "root": solve(3.0),
        "grad": jax.grad(lambda a: solve(a).sum())(3.0),
        "chord": optx.root_find(f, optx.Chord(1e-6, 1e-6), jnp.array([1.3, 1.1]), 3.0).value,
        "bisection": optx.root_find(
            lambda x, _: x**3 - 2, optx.Bisection(1e-5, 1e-5), 1.0, options={"lower": 0.0, "upper": 2.0}
        ).value,
        "fixed": optx.fixed_point(lambda x, a: jnp.cos(x * a), optx.FixedPointIteration(1e-6, 1e-6), 0.5, 1.0).value,
    }


@program(rtol=1e-3, atol=1e-3)
def curves_fitted():
    t = jnp.linspace(0.0, 2.0, 20)
    data = 2.0 * jnp.exp(-1.3 * t) + 0.5

    def residuals(p, t):
        return p["a"] * jnp.exp(-p["k"] * t) + p["c"] - data

    first = {"a": jnp.array(1.0), "k": jnp.array(1.0), "c": jnp.array(0.0)}
    levenberg = optx.least_squares(residuals, optx.LevenbergMarquardt(1e-6, 1e-6), first, t)
    dogleg = optx.least_squares(residuals, optx.Dogleg(1e-6, 1e-6), first, t)
    return {"levenberg": levenberg.value, "dogleg": dogleg.value}


@program(rtol=1e-3, atol=1e-3)
def minima():
    def rosenbrock(y, _):
        return jnp.sum(100.0 * (y[1:] - y[:-1] ** 2) ** 2 + (1 - y[:-1]) ** 2)

    y = jnp.array([-0.5, 0.7])
    bfgs = optx.minimise(rosenbrock, optx.BFGS(1e-5, 1e-5), y, max_steps=500)
    simplex = optx.minimise(rosenbrock, optx.NelderMead(1e-5, 1e-5), y, max_steps=1000)
    return {"bfgs": bfgs.value, "simplex": jnp.round(simplex.value, 2)}
