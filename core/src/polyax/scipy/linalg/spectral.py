"""Forms of square matrices that show their eigenvalues, and the polar decomposition."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyax import numpy as jnp
from polyax.control.flow.looping import fori_loop
from polyax.ir import dtypes
from polyax.lax import lenient as lax
from polyax.lax import linalg as primitives
from polyax.numpy.promotion import inexact
from polyax.scipy.linalg.factorizations import adjoint, inexact_arrays
from polyax.scipy.linalg.tridiagonal import hermitian, tridiagonal_eigenvalues

__all__ = ["eigh_tridiagonal", "hessenberg", "polar", "rsf2csf", "schur"]


def to_complex(a: Any) -> Any:
    return a.astype(dtypes.wider(a.dtype, np.complex64))


def schur(a: Any, output: str = "real") -> tuple[Any, Any]:
    """``(T, Z)`` with unitary ``Z`` and ``Z T Z^H = a``.

    Args:
      output: 'real' leaves blocks of two rows in ``T`` for the complex eigenvalues of real matrices; with 'complex',
        ``T`` is triangular.

    Raises:
      ValueError: another ``output``.
    """
    if output not in ("real", "complex"):
        raise ValueError(f"Expected 'output' to be either 'real' or 'complex', got {output=}.")
    a = inexact("schur", a)[0]
    t, z = primitives.schur(to_complex(a) if output == "complex" else a)
    return t, z


def hessenberg(a: Any, *, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """``H``, which is zero below its first subdiagonal, with ``Q H Q^H = a``; or ``(H, Q)`` with ``calc_q``."""
    a = inexact("hessenberg", a)[0]
    packed, taus = primitives.hessenberg(a)
    h = jnp.triu(packed, -1)
    if not calc_q:
        return h
    n = a.shape[-1]
    q = jnp.broadcast_to(jnp.eye(n, dtype=a.dtype), a.shape)
    if n > 1:
        q = q.at[..., 1:, 1:].set(primitives.householder_product(packed[..., 1:, :-1], taus))
    return h, q


def rsf2csf(T: Any, Z: Any, check_finite: bool = True) -> tuple[Any, Any]:
    """The complex Schur form from a real one, by a rotation for each block of two rows.

    Raises:
      ValueError: the matrices aren't square, or of different size.
    """
    t, z = (to_complex(x) for x in inexact_arrays("rsf2csf", T, Z))
    for name, x in (("T", t), ("Z", z)):
        if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
            raise ValueError(f"Input '{name}' must be square.")
    if t.shape[-1] != z.shape[-1]:
        raise ValueError(f"Input array shapes must match: Z: {z.shape} vs. T: {t.shape}")
    if t.shape[-1] < 2:  # there are no blocks of two rows
        return t, z
    return jnp.vectorize(_triangular, signature="(n,n),(n,n)->(n,n),(n,n)")(t, z)


def _triangular(t: Any, z: Any) -> tuple[Any, Any]:
    n = t.shape[0]

    def step(i: Any, pair: Any) -> Any:
        t, z = pair
        k = n - 2 - i
        turn = _rotation(lax.dynamic_slice(t, (k, k), (2, 2)))
        rows = lax.dynamic_slice(t, (k, 0), (2, n))
        t = lax.dynamic_update_slice(t, turn @ rows, (k, 0))
        t, z = (_turned_columns(x, turn, k) for x in (t, z))
        return jnp.where((jnp.arange(n)[:, None] == k + 1) & (jnp.arange(n) == k), 0, t), z

    t, z = fori_loop(0, n - 1, step, (t, z))
    return jnp.triu(t), z


def _turned_columns(x: Any, turn: Any, k: Any) -> Any:
    columns = lax.dynamic_slice(x, (0, k), (x.shape[0], 2))
    return lax.dynamic_update_slice(x, columns @ adjoint(turn), (0, k))


def _rotation(block: Any) -> Any:
    """The unitary matrix that makes a block triangular; the identity if it is."""
    (a, b), (c, d) = block
    half = (a - d) / 2
    root = jnp.sqrt(half * half + b * c)
    gap = half + jnp.where(jnp.abs(half + root) >= jnp.abs(half - root), root, -root)  # an eigenvalue less d
    size = jnp.sqrt(jnp.abs(gap) ** 2 + jnp.abs(c) ** 2).astype(gap.dtype)
    flat = (c == 0) | (size == 0)
    safe = jnp.where(flat, 1, size)
    x, y = jnp.where(flat, 1, gap / safe), jnp.where(flat, 0, c / safe)
    return jnp.stack([jnp.stack([jnp.conj(x), jnp.conj(y)]), jnp.stack([-y, x])])


def polar(
    a: Any, side: str = "right", *, method: str = "qdwh", eps: float | None = None, max_iterations: int | None = None
) -> tuple[Any, Any]:
    """A matrix with orthonormal columns (or rows) and a positive semidefinite one, whose product is ``a``.

    Args:
      side: where the latter stands.
      method: 'qdwh' or 'svd'.
      eps, max_iterations: when 'qdwh' stops.

    Raises:
      ValueError: another ``side`` or ``method``.
      NotImplementedError: 'qdwh' of a matrix that is too wide for ``side``.
    """
    if side not in ("right", "left"):
        raise ValueError("The argument `side` must be either 'right' or 'left'.")
    a = inexact_arrays("polar", a)[0]
    m, n = a.shape[-2:]
    if method == "svd":
        return _by_svd(a, side)
    if method != "qdwh":
        raise ValueError(f"Unknown polar decomposition method {method}.")
    if (m < n) if side == "right" else (m >= n and m != n):
        raise NotImplementedError(
            "method='qdwh' only supports mxn matrices where m >= n for side='right' and m <= n for side='left', "
            f"got {(m, n)} with {side=}; use method='svd'"
        )
    tall = a if side == "right" else adjoint(a)
    one = lambda x: primitives.qdwh(x, eps=eps, max_iterations=max_iterations)[:2]
    u, h = jnp.vectorize(one, signature="(m,n)->(m,n),(n,n)")(tall)
    return (u, h) if side == "right" else (adjoint(u), h)


def _by_svd(a: Any, side: str) -> tuple[Any, Any]:
    u, s, vh = jnp.linalg.svd(a, full_matrices=False)
    scaled = s[..., None, :].astype(a.dtype)
    return u @ vh, (adjoint(vh) * scaled) @ vh if side == "right" else (u * scaled) @ adjoint(u)


def eigh_tridiagonal(
    d: Any,
    e: Any,
    *,
    eigvals_only: bool = False,
    select: str = "a",
    select_range: tuple[int, int] | None = None,
    tol: float | None = None,
    key: Any = None,
) -> Any:
    """Eigenvalues in increasing order, and eigenvectors (columns), of a Hermitian tridiagonal matrix.

    Args:
      d, e: its diagonal, of which the real part counts, and the one below.
      select: 'a' for all, or 'i' for those whose indices ``select_range`` encloses.
      tol, key: mean nothing here: the eigenvalues are precise, and no start is drawn.

    Raises:
      NotImplementedError: ``select`` is 'v'.
      ValueError: another ``select``, or a range that isn't in order.
      TypeError: the lengths don't fit.
    """
    if select not in ("a", "i", "v"):
        raise ValueError("'select must have a value in {'a', 'i', 'v'}.")
    if select == "v":
        raise NotImplementedError("eigh_tridiagonal(..., select='v') is not implemented")
    d, e = jnp.asarray(d), jnp.asarray(e)
    if d.dtype != e.dtype:
        raise TypeError(f"diagonal and off-diagonal values must have same dtype, got {d.dtype} and {e.dtype}")
    d, e = inexact_arrays("eigh_tridiagonal", d, e)
    if d.ndim != 1 or e.shape != (d.shape[0] - 1,):
        raise TypeError(f"eigh_tridiagonal needs n numbers and n - 1 of them, got shapes {d.shape} and {e.shape}")
    subset = None
    if select == "i":
        if select_range is None or not 0 <= select_range[0] <= select_range[1] < d.shape[0]:
            raise ValueError(f"for select='i' select_range must be two indices in order, got {select_range}")
        subset = (select_range[0], select_range[1] + 1)
    if eigvals_only and d.size:
        return tridiagonal_eigenvalues(subset, d, e)
    vectors, values = primitives.eigh(hermitian(d, e), subset_by_index=subset)
    return values if eigvals_only else (values, vectors)
