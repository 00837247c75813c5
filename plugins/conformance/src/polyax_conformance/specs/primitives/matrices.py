"""Linear algebra and Fourier transforms."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyax import lax
from polyax_conformance.specs.case import Case, case, values
from polyax_conformance.specs.primitives.data import CUBE, RNG, SQUARE, WELL, X, Z

SIZES = (3, 3), (4, 2), (2, 4)
SOLVES = [(1, 1, 0, 0), (1, 0, 1, 1), (0, 1, 1, 0), (0, 0, 0, 0)]


def positive_definite(x: Any) -> Any:
    adjoint = lax.transpose(lax.conj(x) if x.dtype.kind == "c" else x, (1, 0))
    return lax.add(lax.dot(x, adjoint), np.eye(3).astype(x.dtype))


def triangular_solve(left: int, lower: int, transposed: int, unit: int) -> Case:
    flags = {"left_side": left, "lower": lower, "transpose_a": transposed, "unit_diagonal": unit}
    b = RNG.uniform(-1, 1, (3, 4) if left else (4, 3))
    return case(lambda a, b: lax.linalg.triangular_solve(a, b, **flags), SQUARE + 2 * np.eye(3), b)


def sign(vectors: Any) -> Any:
    """1 or -1 for each column, by which its first component is positive: libraries choose either."""
    return lax.select(lax.lt(vectors[:1], 0.0), -lax.full_like(vectors[:1], 1), lax.full_like(vectors[:1], 1))


def eigenvectors(x: Any) -> Any:
    vectors, values = lax.linalg.eigh(x)
    return vectors * sign(vectors), values


def singular_vectors(x: Any) -> Any:
    u, s, vt = lax.linalg.svd(x, full_matrices=False)
    return u * sign(u), s, vt * sign(u).T


def turned(vectors: Any) -> Any:
    """Each column turned so that its first component is positive: LAPACK's choice depends on rounding errors."""
    first = vectors[:1]
    return vectors * lax.conj(first) / lax.convert_element_type(lax.abs(first), vectors.dtype)


def general_eigenvectors(x: Any, **flags: bool) -> Any:
    values, *vectors = lax.linalg.eig(x, **flags)
    return values, *map(turned, vectors)


CASES: dict[str, Case] = {
    "cholesky": case(lambda x: lax.linalg.cholesky(positive_definite(x)), SQUARE),
    "cholesky, complex": case(lambda x: lax.linalg.cholesky(positive_definite(x)), SQUARE + 1j * SQUARE.T),
    **{
        f"triangular_solve left={a} lower={b} transpose={c} unit={d}": triangular_solve(a, b, c, d)
        for a, b, c, d in SOLVES
    },
    "triangular_solve, conjugated": case(
        lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True, lower=True, conjugate_a=True),
        SQUARE + 2 * np.eye(3) + 0.3j,
        Z,
    ),
    **{f"lu {m} x {n}": case(lambda x: lax.linalg.lu(x)[0], RNG.uniform(-1, 1, (m, n))) for m, n in SIZES},
    "qr": case(lambda x: lax.linalg.qr(x, full_matrices=False), RNG.uniform(-1, 1, (4, 3))),
    "qr, complex": case(lambda x: lax.linalg.qr(x), SQUARE + 1j * SQUARE.T),
    "eigh": case(eigenvectors, SQUARE),
    "eig": case(general_eigenvectors, WELL),
    "eig, complex": case(lambda x: general_eigenvectors(x, compute_left_eigenvectors=False), SQUARE + 1j * SQUARE.T),
    "eigenvalues": case(
        lambda x: lax.linalg.eig(x, compute_left_eigenvectors=False, compute_right_eigenvectors=False), SQUARE
    ),
    **{f"svd {m} x {n}": case(singular_vectors, RNG.uniform(-1, 1, (m, n))) for m, n in SIZES},
    "singular values": case(lambda x: lax.linalg.svd(x, compute_uv=False), RNG.uniform(-1, 1, (3, 2))),
    "householder_product": values(lax.linalg.householder_product, X.T, X[:, 0]),
    "qr with pivoting": case(lambda x: lax.linalg.qr(x, pivoting=True)[:2], WELL),
    "geqrf": values(lax.linalg.geqrf, X.T),
    "ormqr": values(lax.linalg.ormqr, X.T, X[:, 0], X.T),
    "hessenberg": values(lax.linalg.hessenberg, SQUARE),
    "tridiagonal": values(lax.linalg.tridiagonal, SQUARE),
    "schur": values(lambda x: lax.abs(lax.linalg.schur(x)[0]), SQUARE),
    "cholesky_update": values(lax.linalg.cholesky_update, WELL, SQUARE[0]),
    "symmetric_product": values(lax.linalg.symmetric_product, X, SQUARE),
    "lu_pivots_to_permutation": values(
        lambda p: lax.linalg.lu_pivots_to_permutation(p, 4), np.array([[2, 3], [2, 3]], np.int32)
    ),
    "tridiagonal_solve": case(lax.linalg.tridiagonal_solve, X[0], X[1] + 2, X[2], Z.real.T),
    "fft": case(lambda z: lax.fft(z, "fft", (3, 4)), Z),
    "ifft": case(lambda z: lax.fft(z, "ifft", (4,)), Z),
    **{f"rfft of {n}": case(lambda x, n=n: lax.fft(x, "rfft", (3, n)), CUBE[..., :n]) for n in (3, 4)},
    **{f"irfft to {n}": case(lambda z, n=n: lax.fft(z, "irfft", (3, n)), Z[:, : n // 2 + 1]) for n in (4, 5)},
}
