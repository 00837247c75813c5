"""Differential equations (diffrax), equations (lineax, optimistix, jaxopt), graphs (jraph), processes (tinygp)."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import jaxopt
import jraph
import lineax as lx
import numpy as np
import optax
import optimistix as optx
from common import normal, program, stepping, whole
from tinygp import GaussianProcess, kernels


def _solve(term, solver, y0, t1, args, **options):
    return diffrax.diffeqsolve(
        diffrax.ODETerm(term),
        solver,
        t0=0.0,
        t1=t1,
        dt0=0.01,
        y0=y0,
        args=args,
        stepsize_controller=diffrax.PIDController(rtol=1e-4, atol=1e-6),
        **options,
    ).ys


@program
def diffrax_stiff():
    """A stiff oscillator, implicitly, and the gradient of its end."""

    def term(t, y, mu):
        return jnp.stack([y[1], mu * (1 - y[0] ** 2) * y[1] - y[0]])

    def end(mu):
        return _solve(term, diffrax.Kvaerno5(), jnp.array([2.0, 0.0]), 1.5, mu, max_steps=256).sum()

    f = jax.jit(jax.value_and_grad(end))
    # Ten steps, none of them rejected. Below 25, float32 decides how many there are: rounding that is as good in the
    # last bit makes 11 of them, or 80.
    return lambda: f(30.0)


@program
def diffrax_neural():
    """A neural differential equation, trained on 32 paths."""
    ts, ys = jnp.linspace(0.0, 1.0, 20), normal(32, 20, 2) * 0.1 + 1
    model, optimizer = eqx.nn.MLP(2, 2, 64, 2, jax.nn.softplus, key=jax.random.key(0)), optax.adam(1e-3)

    def loss_of(model, ys):
        def path(y0):
            return _solve(lambda t, y, m: m(y), diffrax.Tsit5(), y0, 1.0, model, saveat=diffrax.SaveAt(ts=ts))

        return jnp.mean((jax.vmap(path)(ys[:, 0]) - ys) ** 2)

    @eqx.filter_jit
    def step(model, opt):
        updates, opt = optimizer.update(eqx.filter_grad(loss_of)(model, ys), opt)
        return eqx.apply_updates(model, updates), opt

    return stepping(step, model, optimizer.init(eqx.filter(model, eqx.is_inexact_array)))


@program
def diffrax_stochastic():
    """A hundred paths of a stochastic equation."""

    def path(key, sigma):
        noise = diffrax.VirtualBrownianTree(0.0, 1.0, tol=1e-3, shape=(2,), key=key)
        terms = diffrax.MultiTerm(
            diffrax.ODETerm(lambda t, y, a: -y), diffrax.ControlTerm(lambda t, y, a: a * jnp.eye(2), noise)
        )
        ts = diffrax.SaveAt(ts=jnp.linspace(0, 1, 5))
        return diffrax.diffeqsolve(terms, diffrax.Heun(), 0.0, 1.0, 0.02, jnp.ones(2), sigma, saveat=ts).ys

    f = jax.jit(jax.vmap(path, in_axes=(0, None)))
    keys = jax.random.split(jax.random.key(0), 100)
    return lambda: f(keys, 0.3)


@program
def lineax_solves():
    """Two hundred equations, directly and by conjugate gradients, and a gradient through both."""
    a, b = normal(200, 200) / 20, normal(200)

    def solved(a):
        a = a @ a.T + jnp.eye(200)
        operator = lx.MatrixLinearOperator(a, lx.positive_semidefinite_tag)
        direct = lx.linear_solve(operator, b, lx.Cholesky()).value
        return jnp.sum(direct**2) + jnp.sum(lx.linear_solve(operator, b, lx.CG(rtol=1e-5, atol=1e-5)).value ** 2)

    f = jax.jit(jax.value_and_grad(solved))
    return lambda: f(a)


@program
def optimistix_curve():
    """A curve fitted by Levenberg-Marquardt."""
    x = jnp.linspace(0.0, 4.0, 200)
    y = 2.5 * jnp.exp(-1.3 * x) + 0.5 + 0.01 * normal(200)

    @jax.jit
    def fit(start):
        solver = optx.LevenbergMarquardt(rtol=1e-5, atol=1e-5)
        return optx.least_squares(lambda p, _: p[0] * jnp.exp(-p[1] * x) + p[2] - y, solver, start, throw=False).value

    return lambda: fit(jnp.ones(3))


@program
def jaxopt_ridge():
    """The gradient of a ridge regression's solution, by implicit differentiation."""
    x, y = normal(256, 16), normal(256, seed=1)

    def objective(w, lam):
        return jnp.mean((x @ w - y) ** 2) + lam * jnp.sum(w**2)

    def solve(lam):
        return jaxopt.LBFGS(objective, maxiter=50, tol=1e-5, implicit_diff=True).run(jnp.zeros(16), lam).params.sum()

    f = jax.jit(jax.value_and_grad(solve))
    return lambda: f(0.1)


@program
def jraph_network():
    """Messages on a graph of 500 nodes and 2000 edges, trained."""
    graph = jraph.GraphsTuple(
        nodes=normal(500, 16),
        edges=normal(2000, 8),
        senders=whole(500, 2000),
        receivers=whole(500, 2000, seed=1),
        globals=np.ones((1, 4), np.float32),
        n_node=np.array([500]),
        n_edge=np.array([2000]),
    )
    params = {"edge": normal(44, 8) / 7, "node": normal(36, 16) / 6, "all": normal(28, 4) / 5}

    def dense(p, *xs):
        return jnp.tanh(jnp.concatenate(xs, -1) @ p)

    def loss_of(p):
        net = jraph.GraphNetwork(
            update_edge_fn=lambda e, s, r, u: dense(p["edge"], e, s, r, u),
            update_node_fn=lambda n, s, r, u: dense(p["node"], n, s, r, u),
            update_global_fn=lambda n, e, u: dense(p["all"], n, e, u),
        )
        return jnp.mean(net(net(graph)).nodes ** 2)

    optimizer = optax.adam(1e-3)

    @jax.jit
    def step(p, opt):
        updates, opt = optimizer.update(jax.grad(loss_of)(p), opt)
        return optax.apply_updates(p, updates), opt

    return stepping(step, params, optimizer.init(params))


@program
def tinygp_fit():
    """A step of fitting a Gaussian process on 200 points."""
    x = jnp.sort(normal(200))
    y = jnp.sin(3 * x) + 0.1 * normal(200, seed=1)

    def loss_of(p):
        kernel = jnp.exp(p["amp"]) * kernels.Matern52(jnp.exp(p["scale"])) + 0.1 * kernels.ExpSquared(2.0)
        return -GaussianProcess(kernel, x, diag=jnp.exp(p["noise"]), mean=p["mean"]).log_probability(y)

    @jax.jit
    def step(p):
        return (jax.tree.map(lambda v, g: v - 1e-3 * g, p, jax.grad(loss_of)(p)),)

    return stepping(step, {"amp": 0.0, "scale": 0.0, "noise": -2.0, "mean": 0.0})
