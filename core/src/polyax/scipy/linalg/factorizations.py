"""Factorizations of (stacks of) matrices and systems solved with them, with SciPy's parameters.

``overwrite_...``, ``check_finite``, ``lwork``, ``turbo``, ``debug`` and ``lapack_driver`` mean nothing here.
"""

from __future__ import annotations

from typing import Any

from polyax import numpy as jnp
from polyax.control.solving import custom_linear_solve
from polyax.lax import lenient as lax
from polyax.lax import linalg as primitives
from polyax.numpy.promotion import inexact
from polyax.runtime.contract.tracebacks import warn_user

__all__ = [
    "cho_factor", "cho_solve", "cholesky", "det", "eigh", "inv", "lu", "lu_factor", "lu_solve", "qr", "qr_multiply",
    "solve", "solve_triangular", "svd",
]  # fmt: skip


def inexact_arrays(name: str, *args: Any) -> list[Any]:
    """Arrays of one inexact dtype, of which nested lists may be given."""
    return inexact(name, *(jnp.asarray(x) if isinstance(x, (list, tuple)) else x for x in args))


def _square(name: str, a: Any) -> Any:
    a = inexact_arrays(name, a)[0]
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(f"{name}: expected square matrices, (..., n, n), got shape {a.shape}")
    return a


def adjoint(a: Any) -> Any:
    """The conjugate transpose of each matrix."""
    return jnp.conj(jnp.swapaxes(a, -1, -2))


def _system(name: str, a: Any, b: Any) -> tuple[Any, Any, bool]:
    """Matrices and right sides of one dtype, which fit, and whether these were one vector each."""
    a, b = inexact_arrays(name, a, b)
    a = _square(name, a)
    vector = b.ndim == 1 or (b.ndim == a.ndim - 1 and b.shape[-1] == a.shape[-1])
    if b.ndim == 0 or b.shape[-1 if vector else -2] != a.shape[-1]:
        raise ValueError(f"{name}: the shapes of the matrix and of b don't fit: {a.shape} and {b.shape}")
    if vector and b.ndim > 1:
        warn_user(
            f"{name}: b of shape {b.shape} will be taken for a matrix; ask for vectors by b[..., None]", FutureWarning
        )
    b = b[..., None] if vector else b
    batch = lax.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    wide = [jnp.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (a, b)]
    return wide[0], wide[1], vector


def _unwrapped(x: Any, vector: bool) -> Any:
    return x[..., 0] if vector else x


# --- Cholesky --------------------------------------------------------------------------------------------------------


def cholesky(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """The triangular factor of positive definite matrices: upper ``U`` with ``U^H U = a``, or ``lower``; else NaN.

    Of ``a``, only the same triangle is read.

    >>> import numpy as np
    >>> print(cholesky(np.array([[4.0, 2.0], [2.0, 2.0]])))
    [[2. 1.]
     [0. 1.]]
    """
    a = _square("cholesky", a)
    factor = primitives.cholesky(a if lower else adjoint(a), symmetrize_input=False)
    return factor if lower else adjoint(factor)


def cho_factor(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Any, bool]:
    """What ``cho_solve`` takes: the factor, and whether it is the lower one."""
    return cholesky(a, lower), lower


def cho_solve(c_and_lower: tuple[Any, bool], b: Any, overwrite_b: bool = False, check_finite: bool = True) -> Any:
    """``x`` with ``a x = b``, from ``cho_factor(a)``."""
    factor, lower = c_and_lower
    c, b, vector = _system("cho_solve", factor, b)
    flags = {"left_side": True, "lower": bool(lower)}
    y = primitives.triangular_solve(c, b, transpose_a=not lower, conjugate_a=not lower, **flags)
    x = primitives.triangular_solve(c, y, transpose_a=bool(lower), conjugate_a=bool(lower), **flags)
    return _unwrapped(x, vector)


# --- LU and general systems ------------------------------------------------------------------------------------------


def lu_factor(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Any, Any]:
    """What ``lu_solve`` takes: both factors in one matrix, and the row exchanges."""
    factors, pivots, _ = primitives.lu(inexact_arrays("lu_factor", a)[0])
    return factors, pivots


def lu_solve(
    lu_and_piv: tuple[Any, Any], b: Any, trans: int = 0, overwrite_b: bool = False, check_finite: bool = True
) -> Any:
    """``x`` with ``a x = b``, from ``lu_factor(a)``.

    Args:
      trans: 0 for ``a``, 1 for its transpose, 2 for its adjoint.

    Raises:
      ValueError: another ``trans``, or shapes that don't fit.
    """
    factors, b, vector = _system("lu_solve", lu_and_piv[0], b)
    if trans not in (0, 1, 2):
        raise ValueError(f"'trans' value must be 0, 1, or 2, got {trans}")
    order = primitives.lu_pivots_to_permutation(lu_and_piv[1], factors.shape[-1])
    order = jnp.broadcast_to(order, factors.shape[:-1])
    how = {"left_side": True, "transpose_a": trans > 0, "conjugate_a": trans == 2}
    if trans == 0:
        y = jnp.take_along_axis(b, order[..., None], axis=-2)
        y = primitives.triangular_solve(factors, y, lower=True, unit_diagonal=True, **how)
        return _unwrapped(primitives.triangular_solve(factors, y, **how), vector)
    y = primitives.triangular_solve(factors, b, **how)
    y = primitives.triangular_solve(factors, y, lower=True, unit_diagonal=True, **how)
    return _unwrapped(jnp.take_along_axis(y, jnp.argsort(order, axis=-1)[..., None], axis=-2), vector)


def lu(a: Any, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Any, ...]:
    """``(P, L, U)`` with ``P L U = a``; or ``(P L, U)`` with ``permute_l``."""
    a = inexact_arrays("lu", a)[0]
    factors, _, order = primitives.lu(a)
    m, n = a.shape[-2:]
    k = min(m, n)
    left = jnp.tril(factors[..., :, :k], -1) + jnp.eye(m, k, dtype=a.dtype)
    right = jnp.triu(factors[..., :k, :])
    permutation = (order[..., None, :] == jnp.arange(m, dtype=order.dtype)[:, None]).astype(left.real.dtype)
    return (permutation @ left, right) if permute_l else (permutation, left, right)


def solve(
    a: Any,
    b: Any,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    debug: bool = False,
    check_finite: bool = True,
    assume_a: str = "gen",
) -> Any:
    """``x`` with ``a x = b``.

    Args:
      lower: which triangle of ``a`` is read where it is assumed to be positive definite.
      assume_a: 'gen', 'sym', 'her' (all one here) or 'pos' (positive definite).

    Raises:
      ValueError: another ``assume_a``, or shapes that don't fit.

    >>> import numpy as np
    >>> print(solve(np.array([[2.0, 0.0], [0.0, 4.0]]), np.ones(2)))
    [0.5  0.25]
    """
    kinds = ["gen", "sym", "her", "pos"]
    if assume_a not in kinds:
        raise ValueError(f"Expected assume_a to be one of {kinds}; got {assume_a!r}")
    if assume_a != "pos":
        return jnp.linalg.solve(a, b)
    a, b, vector = _system("solve", *inexact("jnp.linalg.solve", a, b))
    factors = cho_factor(lax.stop_gradient(a), lower=lower)
    # Derivatives solve with the same factor, and are of all of a, not of one triangle.
    x = custom_linear_solve(lambda x: a @ x, b, lambda _, b: cho_solve(factors, b), symmetric=True)
    return _unwrapped(x, vector)


def solve_triangular(
    a: Any,
    b: Any,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    debug: Any = None,
    check_finite: bool = True,
) -> Any:
    """``x`` with ``op(a) x = b`` for triangular ``a``.

    Args:
      trans: 0 or 'N' for ``a``, 1 or 'T' for its transpose, 2 or 'C' for its adjoint.
      lower: which triangle is read; the upper one by default.
      unit_diagonal: whether the diagonal is taken for ones.

    Raises:
      ValueError: another ``trans``, or shapes that don't fit.
    """
    if trans not in (0, 1, 2, "N", "T", "C"):
        raise ValueError(f"Invalid 'trans' value {trans}")
    a, b, vector = _system("solve_triangular", a, b)
    x = primitives.triangular_solve(
        a,
        b,
        left_side=True,
        lower=lower,
        transpose_a=trans not in (0, "N"),
        conjugate_a=trans in (2, "C"),
        unit_diagonal=unit_diagonal,
    )
    return _unwrapped(x, vector)


def inv(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """The inverse of square matrices."""
    return jnp.linalg.inv(a)


def det(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """The determinant of square matrices."""
    return jnp.linalg.det(a)


# --- orthogonal factorizations ---------------------------------------------------------------------------------------


def svd(
    a: Any,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Any:
    """``(U, s, V^H)``, or the singular values alone."""
    found = jnp.linalg.svd(inexact_arrays("svd", a)[0], full_matrices=full_matrices, compute_uv=compute_uv)
    return tuple(found) if compute_uv else found


def eigh(
    a: Any,
    b: Any = None,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: None = None,
    type: int = 1,
    check_finite: bool = True,
) -> Any:
    """Eigenvalues in increasing order and eigenvectors (columns) of Hermitian matrices, or the eigenvalues alone.

    Args:
      a: matrices, of which the Hermitian part ``(a + a^H) / 2`` counts.
      lower: which triangle of it is read.

    Raises:
      NotImplementedError: a generalised problem (``b``, ``type``), or a range (``eigvals``) is asked for.
    """
    if b is not None:
        raise NotImplementedError("Only the b=None case of eigh is implemented")
    if type != 1:
        raise NotImplementedError("Only the type=1 case of eigh is implemented.")
    if eigvals is not None:
        raise NotImplementedError("Only the eigvals=None case of eigh is implemented.")
    vectors, values = primitives.eigh(_square("eigh", a), lower=lower)
    return values if eigvals_only else (values, vectors)


_MODES = ("full", "economic", "r")


def qr(
    a: Any,
    overwrite_a: bool = False,
    lwork: Any = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> tuple[Any, ...]:
    """``(Q, R)`` with ``Q R = a``, and the order of the columns with ``pivoting``.

    Args:
      mode: 'full', 'economic', or 'r' for the full one without ``Q``.

    Raises:
      ValueError: another mode.
    """
    if mode not in _MODES:
        raise ValueError(f"Unsupported QR decomposition mode '{mode}'")
    found = primitives.qr(inexact_arrays("qr", a)[0], pivoting=pivoting, full_matrices=mode != "economic")
    return tuple(found[1:] if mode == "r" else found)


def qr_multiply(
    a: Any,
    c: Any,
    mode: str = "right",
    pivoting: bool = False,
    conjugate: bool = False,
    overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> tuple[Any, ...]:
    """``Q c`` (mode 'left') or ``c Q`` ('right') for the economic ``Q`` of ``a``, then ``R``; and the order of columns.

    Args:
      c: matrices, or one vector.
      conjugate: whether the conjugate of ``Q`` is meant.

    Raises:
      ValueError: another mode.
    """
    if mode not in ("right", "left"):
        raise ValueError(f"mode must be 'right' or 'left', got {mode!r}")
    a, c = inexact_arrays("qr_multiply", a, c)
    _check_factor(a.shape, c.shape, mode)
    q, *rest = primitives.qr(a, pivoting=pivoting, full_matrices=False)
    q = jnp.conj(q) if conjugate else q
    return (q @ c if mode == "left" else c @ q, *rest)


def _check_factor(a: tuple[int, ...], c: tuple[int, ...], mode: str) -> None:
    left = mode == "left"
    has, wanted = (c[-2:][0], min(a[-2:])) if left else (c[-1], a[-2])
    if has != wanted:
        product, of_q, of_c = ("Q @ c", "columns", "rows") if left else ("c @ Q", "rows", "columns")
        raise ValueError(
            f"Array shapes are not compatible for {product} operation: a has shape {a} so Q has {wanted} {of_q}, "
            f"but c has {has} {of_c} (expected {wanted})."
        )
