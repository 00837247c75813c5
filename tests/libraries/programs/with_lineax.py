"""lineax: linear equations by many solvers."""

import jax
import jax.numpy as jnp
import lineax as lx
from common import program

A = jnp.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]])
B = jnp.array([1.0, -2.0, 0.5])


@program(rtol=1e-3)
def direct():
    tall = jnp.sin(jnp.arange(12.0)).reshape(4, 3) + jnp.eye(4, 3)
    right = jnp.arange(4.0)

    def solve(solver, matrix, vector, *tags):
        return lx.linear_solve(lx.MatrixLinearOperator(matrix, *tags), vector, solver).value

    lu = jax.jit(lambda a, b: solve(lx.LU(), a, b))
    return {
        "lu": lu(A, B),
        "lu_batched": jax.vmap(lu, in_axes=(0, None))(jnp.stack([A, 2 * A]), B),
        "lu_grad": jax.grad(lambda a: lu(a, B).sum())(A),
        "qr": jax.jit(lambda a: solve(lx.QR(), a, right))(tall),
        "qr_grad": jax.grad(lambda a: solve(lx.QR(), a, right).sum())(tall),
        "svd": jax.jit(lambda a: solve(lx.SVD(), a, right))(tall),
        "cholesky": solve(lx.Cholesky(), A, B, lx.positive_semidefinite_tag),
        "triangular": solve(lx.Triangular(), jnp.tril(A), B, lx.lower_triangular_tag),
        "auto": solve(lx.AutoLinearSolver(well_posed=None), A, B),
    }


@program(rtol=1e-3)
def iterative():
    def operator(a):
        return lx.FunctionLinearOperator(lambda v: a @ v, jax.eval_shape(lambda: B), lx.positive_semidefinite_tag)

    def cg(a):
        return lx.linear_solve(operator(a), B, lx.CG(rtol=1e-6, atol=1e-6)).value

    return {
        "cg": jax.jit(cg)(A),
        "cg_grad": jax.jit(jax.grad(lambda a: jnp.sum(cg(a) ** 2)))(A),
        "gmres": lx.linear_solve(lx.MatrixLinearOperator(A), B, lx.GMRES(rtol=1e-6, atol=1e-6)).value,
        "bicgstab": lx.linear_solve(lx.MatrixLinearOperator(A), B, lx.BiCGStab(rtol=1e-6, atol=1e-6)).value,
    }


@program(rtol=1e-3)
def operators():
    tri = lx.TridiagonalLinearOperator(jnp.array([4.0, 5.0, 6.0]), jnp.array([1.0, 1.0]), jnp.array([0.5, 0.5]))
    jac = lx.JacobianLinearOperator(lambda x, _: jnp.stack([x[0] ** 2, x[0] * x[1]]), jnp.array([1.0, 2.0]))
    refused = 0
    try:
        lx.linear_solve(lx.MatrixLinearOperator(jnp.zeros((2, 2))), jnp.ones(2), lx.LU()).value.block_until_ready()
    except Exception:
        refused = 1
    return {
        "tridiagonal": lx.linear_solve(tri, B).value,
        "jacobian": jac.as_matrix(),
        "transposed": jac.T.mv(jnp.array([1.0, 1.0])),
        "composed": (lx.MatrixLinearOperator(A) @ lx.DiagonalLinearOperator(B)).as_matrix(),
        "refused": refused,
    }
