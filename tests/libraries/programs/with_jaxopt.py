"""jaxopt: optimisation that can be differentiated."""

import jax
import jax.numpy as jnp
import jaxopt
from common import blobs, program


@program(rtol=1e-3, atol=1e-4)
def ridge_regression_through_its_solution():
    x, y = blobs()
    y = y.astype(jnp.float32)

    def objective(w, lam):
        return jnp.mean((x @ w - y) ** 2) + lam * jnp.sum(w**2)

    def solve(lam):
        return jaxopt.LBFGS(objective, maxiter=100, tol=1e-6, implicit_diff=True).run(jnp.zeros(8), lam).params

    return {"w": solve(0.1), "jacobian": jax.jacobian(solve)(0.1)}


@program(rtol=1e-3, atol=1e-3)
def many_solvers():
    x, y = blobs()
    target = y.astype(jnp.float32)

    def loss(w):
        return jnp.mean((x @ w - target) ** 2)

    w = jnp.zeros(8)
    projected = jaxopt.ProjectedGradient(loss, jaxopt.projection.projection_non_negative, maxiter=300, tol=1e-6)
    lasso = jaxopt.ProximalGradient(lambda w: 0.5 * loss(w), jaxopt.prox.prox_lasso, maxiter=300, tol=1e-6)
    newton = jaxopt.GaussNewton(lambda w: x @ w - target, maxiter=10)
    root = jaxopt.Broyden(lambda z: jnp.stack([z[0] ** 2 - 2, z[0] * z[1] - 1]), maxiter=50, tol=1e-5)
    qp = jaxopt.OSQP(maxiter=2000, tol=1e-5).run(
        params_obj=(jnp.array([[2.0, 0.5], [0.5, 1.0]]), jnp.array([1.0, 1.0])),
        params_eq=(jnp.array([[1.0, 1.0]]), jnp.array([1.0])),
        params_ineq=(-jnp.eye(2), jnp.zeros(2)),
    )
    return {
        "descent": jaxopt.GradientDescent(loss, maxiter=300, tol=1e-6).run(w).params,
        "projected": projected.run(w).params,
        "lasso": lasso.run(w, 0.1).params,
        "newton": newton.run(w).params,
        "root": root.run(jnp.array([1.0, 1.0])).params,
        "qp": qp.params.primal,
        "bisection": jaxopt.Bisection(lambda z: z**3 - 2, 0.0, 2.0, tol=1e-6).run().params,
        "anderson": jaxopt.AndersonAcceleration(jnp.cos, tol=1e-6).run(jnp.array(0.5)).params,
    }


@program(rtol=1e-3, atol=1e-3)
def projections_and_losses():
    x = jnp.array([0.5, 1.5, -0.3])
    return {
        "simplex": jaxopt.projection.projection_simplex(x),
        "simplex_jacobian": jax.jacobian(jaxopt.projection.projection_simplex)(x),
        "l1": jaxopt.projection.projection_l1_ball(x, 1.0),
        "l2": jaxopt.projection.projection_l2_ball(x, 1.0),
        "box": jaxopt.projection.projection_box(x, (jnp.zeros(3), jnp.ones(3))),
        "logistic": jaxopt.loss.multiclass_logistic_loss(1, x),
        "sparsemax": jaxopt.loss.multiclass_sparsemax_loss(1, x),
        "isotonic": jaxopt.isotonic.isotonic_l2_pav(x),
    }
