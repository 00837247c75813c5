"""The polar decomposition by the iteration QDWH, and the names of algorithms.

Nakatsukasa and Higham, "Stable and efficient spectral divide and conquer algorithms for the symmetric eigenvalue
decomposition and the SVD" (2013). Each step is a rational function of the singular values that drives them to 1, by
a QR decomposition.
"""

from __future__ import annotations

import enum
from typing import Any

import numpy as np

from polyax import numpy as jnp
from polyax.control.flow.looping import while_loop
from polyax.ir import dtypes
from polyax.ir.aval import aval_of
from polyax.ops.matrices import adjoint, check_matrix, matmul
from polyax.ops.qr import qr
from polyax.ops.solve import symmetrized


class EigImplementation(enum.Enum):
    """How eigenvalues of general matrices are found; here, each device has one way."""

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


class EighImplementation(enum.Enum):
    """How eigenvalues of Hermitian matrices are found; here, each device has one way."""

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


class SvdAlgorithm(enum.Enum):
    """How singular values are found; here, each device has one way."""

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"


def qdwh(
    x: Any,
    *,
    is_hermitian: bool = False,
    max_iterations: int | None = None,
    eps: float | None = None,
    dynamic_shape: tuple[int, int] | None = None,
) -> tuple[Any, Any, Any, Any]:
    """The polar decomposition ``x = u h`` of a matrix with at least as many rows as columns.

    Args:
      is_hermitian: whether ``x`` is; not used.
      max_iterations: how many steps there are at most; 10 by default.
      eps: the precision that is asked for; that of the dtype by default.

    Returns:
      ``u`` with orthonormal columns, the positive semidefinite ``h``, the number of steps, and whether they converged.

    Raises:
      ValueError: there are more columns than rows.
      NotImplementedError: ``dynamic_shape`` is given.
    """
    if dynamic_shape is not None:
        raise NotImplementedError("qdwh with dynamic_shape is not built; cut the matrix")
    check_matrix("qdwh", aval_of(x))
    x = jnp.asarray(x)
    m, n = x.shape[-2:]
    if not x.size:
        return x, jnp.zeros((n, n), x.dtype), jnp.int32(0), jnp.asarray(True)
    if m < n:
        raise ValueError(f"The input matrix of shape M x N must have M >= N, got {m} x {n}")
    eps = float(jnp.finfo(x.dtype).eps) if eps is None else float(eps)
    dtype = x.dtype
    x = x.astype(dtypes.wider(dtype, np.float32))  # the weights exceed the range of narrow types
    scale = jnp.sqrt(jnp.max(jnp.sum(jnp.abs(x), -2)) * jnp.max(jnp.sum(jnp.abs(x), -1)))  # at least the norm
    scale = jnp.where(scale == 0, 1.0, scale).astype(jnp.finfo(x.dtype).dtype)
    u, steps, converged = _iterated(x / scale, eps, 10 if max_iterations is None else max_iterations)
    u = 1.5 * u - 0.5 * matmul(u, matmul(adjoint(u), u))  # Newton and Schulz's step, to full precision
    return u.astype(dtype), symmetrized(matmul(adjoint(u), x)).astype(dtype), steps, converged


def _iterated(u: Any, eps: float, at_most: int) -> tuple[Any, Any, Any]:
    tolerance = (4 * eps) ** (1 / 3)

    def step(state: Any) -> Any:
        u, low, k, _ = state
        a, b, c = _weights(low)
        new = _by_qr(u, a, b, c)
        moved = jnp.linalg.norm(new - u) / jnp.linalg.norm(new)
        low = low * (a + b * low * low) / (1 + c * low * low)
        return new, jnp.minimum(low, 1.0), k + 1, (jnp.abs(1.0 - low) < 10 * eps) & (moved < tolerance)

    first = u, jnp.asarray(eps, jnp.finfo(u.dtype).dtype), jnp.int32(0), jnp.asarray(False)
    u, _, steps, converged = while_loop(lambda s: ~s[3] & (s[2] < at_most), step, first)
    return u, steps, converged


def _weights(low: Any) -> tuple[Any, Any, Any]:
    """The best rational function for singular values between ``low`` and 1."""
    square = low * low
    d = jnp.cbrt(4.0 * (1.0 - square) / (square * square))
    root = jnp.sqrt(1.0 + d)
    a = root + jnp.sqrt(2.0 - d + 2.0 * (2.0 - square) / (square * root))
    a = jnp.where(low >= 1.0, 3.0, a)
    b = (a - 1.0) ** 2 / 4.0
    return a, b, a + b - 1.0


def _by_qr(u: Any, a: Any, b: Any, c: Any) -> Any:
    """b / c u + (a - b / c) u (1 + c u^H u)^-1, from the orthonormal basis of sqrt(c) u above the identity."""
    m, n = u.shape
    root = jnp.sqrt(c)
    q, _ = qr(jnp.concatenate([root * u, jnp.eye(n, dtype=u.dtype)]).astype(u.dtype), full_matrices=False)
    first, second = q[:m], q[m:]
    return (b / c * u + (a - b / c) / root * matmul(first, adjoint(second))).astype(u.dtype)
