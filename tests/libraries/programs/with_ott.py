"""OTT: optimal transport by Sinkhorn's iterations, its derivatives, and what is made of it."""

import jax
import jax.numpy as jnp
from common import program
from ott.geometry import grid, pointcloud
from ott.initializers.linear.initializers_lr import RandomInitializer
from ott.problems.linear import linear_problem
from ott.problems.quadratic import quadratic_problem
from ott.solvers.linear import sinkhorn, sinkhorn_lr
from ott.solvers.quadratic import gromov_wasserstein
from ott.tools import sinkhorn_divergence, soft_sort


def clouds():
    x = jax.random.normal(jax.random.PRNGKey(0), (40, 3))
    return x, jax.random.normal(jax.random.PRNGKey(1), (50, 3)) + 1.0


def transported(x, y):
    return sinkhorn.Sinkhorn()(linear_problem.LinearProblem(pointcloud.PointCloud(x, y, epsilon=0.1)))


@program()
def transport():
    x, y = clouds()
    found = jax.jit(transported)(x, y)
    return {
        "cost": found.reg_ot_cost,
        "iterations": found.n_iters,
        "rows": found.matrix.sum(1),
        "slopes": jax.grad(lambda x: transported(x, y).reg_ot_cost)(x),
        "divergence": sinkhorn_divergence.sinkdiv(x, y, epsilon=0.5)[0],
    }


@program()
def on_a_grid():
    a, b = jnp.abs(jnp.sin(jnp.arange(64.0))), jnp.abs(jnp.cos(jnp.arange(64.0)))
    geometry = grid.Grid(grid_size=(8, 8), epsilon=0.1)
    found = sinkhorn.Sinkhorn()(linear_problem.LinearProblem(geometry, a / a.sum(), b / b.sum()))
    return {"cost": found.reg_ot_cost, "converged": found.converged}


@program(rtol=1e-3)
def of_low_rank_and_between_spaces():
    x, y = clouds()
    problem = linear_problem.LinearProblem(pointcloud.PointCloud(x, y, epsilon=0.1))
    low = sinkhorn_lr.LRSinkhorn(rank=5, initializer=RandomInitializer(5))(problem)
    spaces = quadratic_problem.QuadraticProblem(pointcloud.PointCloud(x, x), pointcloud.PointCloud(y, y))
    between = gromov_wasserstein.GromovWasserstein(sinkhorn.Sinkhorn(), epsilon=1.0)(spaces)
    return {"low": low.reg_ot_cost, "between": between.reg_gw_cost}


@program()
def soft_sorts():
    x = jnp.array([3.0, 1.0, 2.0, 2.5])
    return {"sorted": soft_sort.sort(x, epsilon=1e-2), "ranks": soft_sort.ranks(x)}
