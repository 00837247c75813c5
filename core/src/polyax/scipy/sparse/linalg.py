"""Linear systems solved by products with their matrix alone: CG, BiCGSTAB and GMRES on vectors that are trees.

Solutions are differentiated by solving further systems (``custom_linear_solve``). Saad, "Iterative methods for sparse
linear systems" (2003).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

from polyax import numpy as jnp
from polyax.control.flow.looping import fori_loop, while_loop
from polyax.control.solving import custom_linear_solve
from polyax.flatten_util import ravel_pytree
from polyax.ir import dtypes
from polyax.ir.aval import aval_of
from polyax.trace.tree import tree_leaves, tree_map, tree_structure

__all__ = ["bicgstab", "cg", "gmres"]

Product = Callable[[Any], Any]


def _dot(x: Any, y: Any) -> Any:
    """The inner product of trees; ``x`` is conjugated."""
    return sum(jnp.vdot(a, b) for a, b in zip(tree_leaves(x), tree_leaves(y), strict=True))


def _size(x: Any) -> Any:
    return _dot(x, x).real


def _plus(x: Any, factor: Any, y: Any) -> Any:
    """x + factor y."""
    return tree_map(lambda a, b: (a + factor * b).astype(a.dtype), x, y)


def _minus(x: Any, y: Any) -> Any:
    return tree_map(lambda a, b: a - b, x, y)


def _product(matrix: Any) -> Product:
    """Products with ``matrix``: a function, an array, or anything else that ``@`` multiplies, such as sparse arrays."""
    if callable(matrix):
        return matrix
    if matrix is None:
        return lambda x: x
    if not hasattr(matrix, "shape"):
        raise TypeError(f"linear operator must be either a function or ndarray: {matrix}")
    if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"linear operator must be a square matrix, but has shape: {matrix.shape}")
    return partial(operator.matmul if hasattr(matrix, "todense") else jnp.matmul, matrix)


def _solved(
    name: str, solver: Any, A: Any, b: Any, x0: Any, M: Any, maxiter: int | None, symmetric: bool, **params: Any
) -> tuple[Any, None]:
    """The solution, and None for the missing status."""
    b = tree_map(jnp.asarray, b)
    if not all(dtypes.is_inexact(x.dtype) for x in tree_leaves(b)):
        raise TypeError(f"{name} solves in floating-point numbers; got b = {tree_map(aval_of, b)}: convert it")
    x0 = tree_map(jnp.zeros_like, b) if x0 is None else tree_map(jnp.asarray, x0)
    if tree_structure(x0) != tree_structure(b):
        raise ValueError(f"x0 and b must have matching tree structure: {tree_structure(x0)} vs {tree_structure(b)}")
    shapes = [[aval_of(x).shape for x in tree_leaves(t)] for t in (x0, b)]
    if shapes[0] != shapes[1]:
        raise ValueError(f"arrays in x0 and b must have matching shapes: {shapes[0]} vs {shapes[1]}")
    x0 = tree_map(lambda x, y: x.astype(jnp.result_type(x, y)), x0, b)
    count = sum(x.size for x in tree_leaves(b))
    params["maxiter"] = 10 * count if maxiter is None else maxiter
    inner = partial(solver, x0=x0, precondition=_product(M), **params)
    x = custom_linear_solve(_product(A), b, inner, transpose_solve=inner, symmetric=symmetric)
    return x, None


def cg(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
) -> tuple[Any, None]:
    """Solves ``A x = b`` for a Hermitian positive definite ``A`` by conjugate gradients.

    Args:
      A: a matrix, or a function that multiplies with it.
      b: the right side, a tree of arrays.
      x0: where to begin; 0 by default.
      tol, atol: the residual is to be smaller than ``max(tol * norm(b), atol)``.
      maxiter: the most steps; ten times the number of unknowns by default.
      M: what approximates the inverse of ``A``.

    Returns:
      The solution, and None.

    Raises:
      ValueError: ``A`` isn't square, or ``x0`` not like ``b``.
      TypeError: ``b`` holds integers.

    >>> import numpy as np
    >>> x, _ = cg(np.diag(np.array([2.0, 4.0])), np.array([2.0, 2.0]))
    >>> print(x)
    [1.  0.5]
    """
    return _solved("cg", _cg, A, b, x0, M, maxiter, True, tol=tol, atol=atol)


def _cg(product: Product, b: Any, x0: Any, precondition: Product, tol: float, atol: float, maxiter: int) -> Any:
    bound = jnp.maximum(tol**2 * _size(b), atol**2)

    def step(state: Any) -> Any:
        x, r, gamma, p, k = state
        ap = product(p)
        alpha = gamma / _dot(p, ap).real
        x, r = _plus(x, alpha, p), _plus(r, -alpha, ap)
        z = precondition(r)
        new = _dot(r, z).real
        return x, r, new, _plus(z, new / gamma, p), k + 1

    r = _minus(b, product(x0))
    z = precondition(r)
    first = x0, r, _dot(r, z).real, z, 0
    return while_loop(lambda s: (_size(s[1]) > bound) & (s[4] < maxiter), step, first)[0]


def bicgstab(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
) -> tuple[Any, None]:
    """Solves ``A x = b`` for any ``A`` by stabilised biconjugate gradients; the rest is as of ``cg``."""
    return _solved("bicgstab", _bicgstab, A, b, x0, M, maxiter, False, tol=tol, atol=atol)


def _bicgstab(product: Product, b: Any, x0: Any, precondition: Product, tol: float, atol: float, maxiter: int) -> Any:
    bound = jnp.maximum(tol**2 * _size(b), atol**2)

    def step(state: Any) -> Any:
        x, r, shadow, alpha, omega, rho, p, q, k = state
        new = _dot(shadow, r)
        p = _plus(r, new / rho * alpha / omega, _plus(p, -omega, q))
        direction = precondition(p)
        q = product(direction)
        alpha = new / _dot(shadow, q)
        s = _plus(r, -alpha, q)
        enough = _size(s) < bound
        second = precondition(s)
        t = product(second)
        omega = jnp.where(enough, 0.0, _dot(t, s) / jnp.where(_size(t) == 0, 1, _size(t)))
        x = _plus(_plus(x, alpha, direction), omega, second)
        r = _plus(s, -omega, t)
        broken = (new == 0) | (omega == 0)
        return x, r, shadow, alpha, omega, new, p, q, jnp.where(broken, -1, k + 1)

    r = _minus(b, product(x0))
    one = jnp.ones((), jnp.result_type(*tree_leaves(b)))
    zero = tree_map(jnp.zeros_like, r)
    first = x0, r, r, one, one, one, zero, zero, jnp.int32(0)
    again = lambda s: (_size(s[1]) > bound) & (s[8] < maxiter) & (s[8] >= 0)
    return while_loop(again, step, first)[0]


def gmres(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    restart: int = 20,
    maxiter: int | None = None,
    M: Any = None,
    solve_method: str = "batched",
) -> tuple[Any, Any]:
    """Solves ``A x = b`` for any ``A`` by minimal residuals; other arguments are those of ``cg``.

    Args:
      restart: of how many products with ``A`` a step is made.
      maxiter: the most steps.
      solve_method: 'batched' or 'incremental'; both are one way here.

    Returns:
      The solution, and 0, or -1 if it isn't a number.

    Raises:
      ValueError: another ``solve_method``.
    """
    if solve_method not in ("batched", "incremental"):
        raise ValueError(f"invalid solve_method {solve_method}, must be either 'incremental' or 'batched'")
    count = sum(jnp.size(x) for x in tree_leaves(b))
    x, _ = _solved("gmres", _gmres, A, b, x0, M, maxiter, False, tol=tol, atol=atol, restart=min(restart, count))
    return x, jnp.where(jnp.isnan(_size(x)), -1, 0)


def _gmres(
    product: Product, b: Any, x0: Any, precondition: Product, tol: float, atol: float, maxiter: int, restart: int
) -> Any:
    flat_b, back = ravel_pytree(b)
    times = lambda v: ravel_pytree(precondition(product(back(v))))[0]
    plain = lambda v: ravel_pytree(product(back(v)))[0]
    bound = jnp.maximum(tol * jnp.linalg.norm(flat_b), atol)

    def step(state: Any) -> Any:
        x, _, k = state
        r = ravel_pytree(precondition(back(flat_b - plain(x))))[0]
        x = x + _best(times, r, restart)
        return x, jnp.linalg.norm(flat_b - plain(x)), k + 1

    x = ravel_pytree(x0)[0]
    first = x, jnp.linalg.norm(flat_b - plain(x)), 0
    return back(while_loop(lambda s: (s[1] > bound) & (s[2] < maxiter), step, first)[0])


def _best(times: Product, r: Any, count: int) -> Any:
    """What of the space of r, A r, A^2 r, ... leaves the least residual; the space is from Arnoldi's process."""
    size = jnp.linalg.norm(r)
    basis = jnp.zeros((count + 1, r.shape[0]), r.dtype).at[0].set(r / jnp.where(size == 0, 1, size))

    def extend(k: Any, state: Any) -> Any:
        basis, columns = state
        v = times(basis[k])
        column = jnp.zeros(count + 1, r.dtype)
        for _ in range(2):
            part = jnp.conj(basis) @ v
            v, column = v - part @ basis, column + part
        rest = jnp.linalg.norm(v)
        new = rest > 4 * float(jnp.finfo(r.dtype).eps) * jnp.linalg.norm(column)
        v = jnp.where(new, v / jnp.where(new, rest, 1), 0)
        column = column.at[k + 1].set(jnp.where(new, rest, 0).astype(r.dtype))
        return basis.at[k + 1].set(v), columns.at[k].set(column)

    basis, columns = fori_loop(0, count, extend, (basis, jnp.zeros((count, count + 1), r.dtype)))
    target = jnp.zeros(count + 1, r.dtype).at[0].set(size.astype(r.dtype))
    weights = jnp.linalg.lstsq(columns.T, target)[0]
    return weights @ basis[:-1]
