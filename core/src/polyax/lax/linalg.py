"""Linear algebra primitives and the functions that apply them (``jax.lax.linalg``). Re-exports only."""

from typing import Any

from polyax import late
from polyax.ops.eig import eig, eig_p
from polyax.ops.qr import qr, qr_p
from polyax.ops.solve import cholesky, cholesky_p, lu, lu_p, triangular_solve, triangular_solve_p
from polyax.ops.spectral import eigh, eigh_p, householder_product, householder_product_p, svd, svd_p

__all__ = [
    "cholesky", "cholesky_p", "eig", "eig_p", "eigh", "eigh_p", "householder_product", "householder_product_p", "lu",
    "lu_p", "qr", "qr_p", "svd", "svd_p", "triangular_solve", "triangular_solve_p",
]  # fmt: skip

_LATE = (
    late.names_of("polyax.lax.polar", "EigImplementation", "EighImplementation", "SvdAlgorithm", "qdwh")
    | late.names_of("polyax.ops.reflections", "geqrf", "geqrf_p", "hessenberg", "hessenberg_p", "ormqr", "ormqr_p")
    | late.names_of("polyax.ops.reflections", "tridiagonal", "tridiagonal_p")
    | late.names_of("polyax.ops.schur", "schur", "schur_p")
    | late.names_of("polyax.lax.updates", "cholesky_update", "cholesky_update_p", "symmetric_product")
    | late.names_of("polyax.lax.updates", "lu_pivots_to_permutation", "lu_pivots_to_permutation_p")
    | late.names_of("polyax.lax.updates", "symmetric_product_p", "tridiagonal_solve", "tridiagonal_solve_p")
)


def __getattr__(name: str) -> Any:
    return late.load(__name__, _LATE, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATE})
