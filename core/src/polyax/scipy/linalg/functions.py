"""Functions of matrices: exponential, square root, any other; and Sylvester's equation."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from polyax import numpy as jnp
from polyax.api import jvp
from polyax.control.flow.looping import fori_loop
from polyax.ir import dtypes
from polyax.lax import linalg as primitives
from polyax.numpy.promotion import inexact
from polyax.scipy.linalg.factorizations import adjoint, inexact_arrays
from polyax.scipy.linalg.spectral import schur

__all__ = ["expm", "expm_frechet", "funm", "solve_sylvester", "sqrtm"]

_DEGREE = {"f": (7, 3.925724783138660), "d": (13, 5.371920351148152)}
"""Of the Padé approximant for a precision, and up to which norm it serves: Higham, "The scaling and squaring method for
the matrix exponential revisited" (2005)."""


def expm(A: Any, *, upper_triangular: bool = False, max_squarings: int = 16) -> Any:
    """The exponential of (a stack of) square matrices, by scaling and squaring; NaN where the norm is too large for it.

    Args:
      upper_triangular: whether ``A`` is, so that a system is solved more cheaply.
      max_squarings: how often at most.

    Raises:
      ValueError: ``A`` isn't of square matrices.

    >>> import numpy as np
    >>> print(expm(np.zeros((2, 2))))
    [[1. 0.]
     [0. 1.]]
    """
    a = inexact("expm", A)[0]
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(f"Expected A to be a (batched) square matrix, got A.shape={a.shape}.")
    if 0 in a.shape:
        return a
    degree, reach = _DEGREE["d" if jnp.finfo(a.dtype).bits == 64 else "f"]
    norm = jnp.max(jnp.sum(jnp.abs(a), -2), -1)
    needed = jnp.ceil(jnp.log2(jnp.maximum(norm, reach) / reach))
    needed = jnp.where(norm > reach, needed, 0.0)[..., None, None]
    result = _pade(a * jnp.exp2(-needed).astype(a.dtype), degree, upper_triangular)
    result = fori_loop(0, max_squarings + 1, lambda i, r: jnp.where(i < needed, r @ r, r), result)
    # A norm of up to twice the reach counts as within it: the limit is JAX's, while one squaring more is more precise.
    return jnp.where(needed > max_squarings + 1, jnp.nan, result)


def _pade(a: Any, degree: int, upper_triangular: bool) -> Any:
    """The quotient of p(a) and p(-a), whose even and odd parts are summed apart."""
    f = math.factorial
    weights = [f(2 * degree - k) * f(degree) / (f(2 * degree) * f(k) * f(degree - k)) for k in range(degree + 1)]
    unit = jnp.broadcast_to(jnp.eye(a.shape[-1], dtype=a.dtype), a.shape)
    square = a @ a
    odd, even = unit * weights[degree], unit * weights[degree - 1]
    for k in range(degree - 2, 0, -2):
        odd, even = odd @ square + unit * weights[k], even @ square + unit * weights[k - 1]
    odd = a @ odd
    if upper_triangular:
        return primitives.triangular_solve(even - odd, even + odd, left_side=True)
    return jnp.linalg.solve(even - odd, even + odd)


def expm_frechet(A: Any, E: Any, *, method: str | None = None, compute_expm: bool = True) -> Any:
    """The exponential of ``A`` and its derivative in the direction ``E``; the latter alone unless ``compute_expm``.

    Args:
      method: means nothing here.

    Raises:
      ValueError: the matrices aren't square, or differ in shape.
    """
    a, e = inexact_arrays("expm_frechet", A, E)
    for name, x in (("A", a), ("E", e)):
        if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
            raise ValueError(f"expected {name} to be a square matrix, got shape {x.shape}")
    if a.shape != e.shape:
        raise ValueError(f"expected A and E to be the same shape, got {a.shape} and {e.shape}")
    value, slope = jvp(expm, (a,), (e,))
    return (value, slope) if compute_expm else slope


# --- by diagonals of the Schur form ----------------------------------------------------------------------------------


def _by_diagonals(first: Any, next_one: Callable[[Any], Any]) -> Any:
    """A triangular matrix, diagonal after diagonal, each from those below it."""
    n = first.shape[-1]
    offset = jnp.arange(n) - jnp.arange(n)[:, None]
    return fori_loop(1, n, lambda k, x: jnp.where(offset == k, next_one(x), x), first)


def sqrtm(A: Any, blocksize: int = 1) -> Any:
    """The principal square root of a square matrix, which is complex (Björck and Hammarling, 1983).

    Raises:
      NotImplementedError: ``blocksize`` is above 1.
      ValueError: ``A`` isn't one square matrix.
    """
    if blocksize > 1:
        raise NotImplementedError("Blocked version is not implemented yet.")
    t, z = schur(_one_square("sqrtm", A), output="complex")
    roots = jnp.sqrt(jnp.diagonal(t))
    sums = roots[:, None] + roots
    sums = jnp.where(sums == 0, 1, sums)
    root = _by_diagonals(jnp.diag(roots), lambda r: (t - r @ r) / sums)
    return z @ root @ adjoint(z)


def _one_square(name: str, a: Any) -> Any:
    a = inexact(name, a)[0]
    if a.ndim != 2 or a.shape[0] != a.shape[1]:
        raise ValueError(f"{name}: expected a square array, got shape {a.shape}")
    return a


def funm(A: Any, func: Callable[[Any], Any], disp: bool = True) -> Any:
    """The function ``func`` of a square matrix, by Parlett's recurrence, which is complex.

    Args:
      func: takes the array of the eigenvalues.
      disp: without it, an estimate of the error is the second result.

    Raises:
      ValueError: ``A`` isn't one square matrix.
    """
    t, z = schur(_one_square("funm", inexact_arrays("funm", A)[0]), output="complex")
    values = jnp.diagonal(t)
    gaps = values[:, None] - values
    close = gaps == 0
    safe = jnp.where(close, 1, gaps)
    result = _by_diagonals(jnp.diag(func(values)).astype(t.dtype), lambda f: (f @ t - t @ f) / safe)
    result = z @ result @ adjoint(z)
    if disp:
        return result
    eps = float(jnp.finfo(t.dtype).eps)
    tolerance = {np.dtype(np.complex64): 1e3, np.dtype(np.complex128): 1e6}[np.dtype(t.dtype)] * eps
    least = jnp.minimum(jnp.min(jnp.where(jnp.eye(len(values), dtype=bool), jnp.inf, jnp.abs(gaps))), 1.0)
    least = jnp.where(least == 0, tolerance, least)
    above = jnp.max(jnp.sum(jnp.abs(jnp.triu(t, 1)), 0))
    error = jnp.minimum(1.0, jnp.maximum(tolerance, tolerance / least * above))
    return result, jnp.where(jnp.all(jnp.isfinite(result)), error, jnp.inf)


# --- Sylvester's equation --------------------------------------------------------------------------------------------


def solve_sylvester(A: Any, B: Any, C: Any, *, method: str = "schur", tol: float = 1e-8) -> Any:
    """``X`` with ``A X + X B = C``; NaN where an eigenvalue of ``A`` and one of ``B`` nearly cancel.

    Args:
      method: 'schur', or 'eigen', which is faster and needs eigenvectors that aren't nearly parallel.
      tol: how near 0 such a sum may come.

    Raises:
      ValueError: another method, or shapes that don't fit.
    """
    if method not in ("schur", "eigen"):
        raise ValueError(f'Unrecognized method {method}. The two valid methods are either "schur" or "eigen".')
    a, b, c = inexact_arrays("solve_sylvester", A, B, C)
    m, n = c.shape[-2:]
    if a.shape[-2:] != (m, m) or b.shape[-2:] != (n, n):
        raise ValueError(f"Incompatible shapes for Sylvester equation:\nA: {a.shape}\nB: {b.shape}\nC: {c.shape}")
    one = _by_schur if method == "schur" else _by_eigenvectors
    x = jnp.vectorize(partial(one, tol=tol), signature="(m,m),(n,n),(m,n)->(m,n)")(a, b, c)
    return x if dtypes.is_complex(c.dtype) else jnp.real(x)


def _by_eigenvectors(a: Any, b: Any, c: Any, tol: float) -> Any:
    (p, u), (q, v) = jnp.linalg.eig(a), jnp.linalg.eig(b)
    inner = jnp.linalg.solve(u, c.astype(u.dtype) @ v)
    return u @ (inner / _sums(p, q, tol)) @ jnp.linalg.inv(v)


def _sums(p: Any, q: Any, tol: float) -> Any:
    sums = p[:, None] + q
    return jnp.where(jnp.any(jnp.abs(sums) < tol), jnp.nan, sums)


def _by_schur(a: Any, b: Any, c: Any, tol: float) -> Any:
    """With a = U R U^H and b = V S V^H: R Y + Y S = U^H c V, column after column."""
    (r, u), (s, v) = schur(a, output="complex"), schur(b, output="complex")
    right = adjoint(u) @ c.astype(r.dtype) @ v
    unit = jnp.eye(r.shape[0], dtype=r.dtype)
    columns = jnp.arange(s.shape[0])

    def step(k: Any, y: Any) -> Any:
        mine = jnp.take(right, k, axis=1) - y @ jnp.take(s, k, axis=1)
        shifted = r + unit * jnp.take(jnp.diagonal(s), k)
        return jnp.where(columns == k, primitives.triangular_solve(shifted, mine[:, None], left_side=True), y)

    y = fori_loop(0, s.shape[0], step, jnp.zeros_like(right))
    bad = jnp.any(jnp.isnan(_sums(jnp.diagonal(r), jnp.diagonal(s), tol)))
    return jnp.where(bad, jnp.nan, u @ y @ adjoint(v))
