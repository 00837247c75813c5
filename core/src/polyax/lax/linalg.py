"""Linear algebra primitives and the functions that apply them (``jax.lax.linalg``). Re-exports only."""

from polyax.ops.eig import eig, eig_p
from polyax.ops.solve import cholesky, cholesky_p, lu, lu_p, triangular_solve, triangular_solve_p
from polyax.ops.spectral import eigh, eigh_p, householder_product, householder_product_p, qr, qr_p, svd, svd_p

__all__ = [
    "cholesky", "cholesky_p", "eig", "eig_p", "eigh", "eigh_p", "householder_product", "householder_product_p", "lu",
    "lu_p", "qr", "qr_p", "svd", "svd_p", "triangular_solve", "triangular_solve_p",
]  # fmt: skip
