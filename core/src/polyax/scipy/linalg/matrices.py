"""Matrices of a given form: Toeplitz, Hankel, circulant, companion and other ones."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from polyax import numpy as jnp
from polyax.ir import dtypes
from polyax.numpy.promotion import canonical_dtype, convert, ensure_array, inexact, of_one_dtype

__all__ = [
    "block_diag", "circulant", "companion", "convolution_matrix", "dft", "fiedler", "fiedler_companion", "hadamard",
    "hankel", "helmert", "hilbert", "invhilbert", "invpascal", "leslie", "pascal", "toeplitz",
]  # fmt: skip


def _vectors(name: str, x: Any) -> Any:
    """``x``, a scalar being a vector of length 1."""
    x = ensure_array(name, x)
    return x[None] if x.ndim == 0 else x


def _picked(x: Any, places: np.ndarray) -> Any:
    """The numbers of the last axis at these places; 0 where they are outside."""
    inside = (places >= 0) & (places < x.shape[-1])
    return jnp.where(inside, x[..., np.where(inside, places, 0)], jnp.zeros((), x.dtype))


def _positive(n: int) -> int:
    n = operator.index(n)
    if n < 1:
        raise ValueError(f"n must be a positive integer; got {n}.")
    return n


def block_diag(*arrs: Any) -> Any:
    """A matrix with these ones (or rows, or numbers) along its diagonal.

    Raises:
      ValueError: an array has more than two dimensions.

    >>> print(block_diag(1.0, np.array([[2.0, 3.0]])))
    [[1. 0. 0.]
     [0. 2. 3.]]
    """
    blocks = of_one_dtype("block_diag", *(arrs or (jnp.zeros((1, 0)),)))
    for i, x in enumerate(blocks):
        if x.ndim > 2:
            raise ValueError(
                f"Arguments to block_diag must have at most 2 dimensions, got shape {x.shape} at argument {i}."
            )
    blocks = [convert(jnp.atleast_2d(x), x.dtype) for x in blocks]
    width, left, rows = sum(x.shape[1] for x in blocks), 0, []
    for x in blocks:
        rows.append(jnp.pad(x, ((0, 0), (left, width - left - x.shape[1]))))
        left += x.shape[1]
    return jnp.concatenate(rows)


def toeplitz(c: Any, r: Any = None) -> Any:
    """Matrices with constant diagonals.

    Args:
      c: the first columns, in the last axis.
      r: the first rows, whose first number is ignored; the conjugate of ``c`` by default.

    >>> print(toeplitz(np.array([1, 2]), np.array([0, 5, 6])))
    [[1 5 6]
     [2 1 5]]
    """
    c = _vectors("toeplitz", c)
    r = jnp.conj(c) if r is None else _vectors("toeplitz", r)
    c, r = of_one_dtype("toeplitz", c, r)
    m, n = c.shape[-1], r.shape[-1]
    batch = np.broadcast_shapes(c.shape[:-1], r.shape[:-1])
    c, r = jnp.broadcast_to(c, (*batch, m)), jnp.broadcast_to(r, (*batch, n))
    diagonals = jnp.concatenate([c[..., ::-1], r[..., 1:]], axis=-1)
    return diagonals[..., np.arange(n) - np.arange(m)[:, None] + m - 1]


def hankel(c: Any, r: Any = None) -> Any:
    """Matrices with constant antidiagonals.

    Args:
      c: the first columns, in the last axis.
      r: the last rows, whose first number is ignored; zeros by default.
    """
    c = _vectors("hankel", c)
    r = jnp.zeros_like(c) if r is None else _vectors("hankel", r)
    c, r = of_one_dtype("hankel", c, r)
    m, n = c.shape[-1], r.shape[-1]
    batch = np.broadcast_shapes(c.shape[:-1], r.shape[:-1])
    c, r = jnp.broadcast_to(c, (*batch, m)), jnp.broadcast_to(r, (*batch, n))
    return jnp.concatenate([c, r[..., 1:]], axis=-1)[..., np.arange(n) + np.arange(m)[:, None]]


def circulant(c: Any) -> Any:
    """Square matrices whose columns are ``c``, turned one place further each."""
    c = _vectors("circulant", c)
    n = c.shape[-1]
    return c[..., (np.arange(n)[:, None] - np.arange(n)) % n]


def convolution_matrix(a: Any, n: int, mode: str = "full") -> Any:
    """The matrix whose product with a vector of length ``n`` is its convolution with ``a``.

    Args:
      mode: 'full', 'valid' or 'same', as of ``jnp.convolve``.

    Raises:
      ValueError: ``n`` isn't positive, ``a`` is empty, or another mode.
    """
    n, a = _positive(n), _vectors("convolution_matrix", a)
    m = a.shape[-1]
    if m == 0:
        raise ValueError("len(a) must be at least 1.")
    if mode not in ("full", "valid", "same"):
        raise ValueError(f"mode must be one of 'full', 'valid', 'same'; got {mode!r}.")
    rows = {"full": m + n - 1, "same": max(m, n), "valid": max(m, n) - min(m, n) + 1}[mode]
    first = {"full": 0, "same": (min(m, n) - 1) // 2, "valid": min(m, n) - 1}[mode]
    return _picked(a, np.arange(first, first + rows)[:, None] - np.arange(n))


# --- companions ------------------------------------------------------------------------------------------------------


def companion(a: Any) -> Any:
    """The matrices whose eigenvalues are the roots of polynomials with these coefficients, highest power first.

    Raises:
      ValueError: there are fewer than two coefficients.
    """
    a = _coefficients("companion", a, 2)
    n = a.shape[-1] - 1
    first = -a[..., 1:] / a[..., :1]
    below = jnp.broadcast_to(jnp.eye(n, k=-1, dtype=a.dtype), (*a.shape[:-1], n, n))
    return below.at[..., 0, :].set(first)


def _coefficients(name: str, a: Any, least: int) -> Any:
    a = inexact(name, a)[0]
    if a.ndim == 0 or a.shape[-1] < least:
        raise ValueError(f"The length of `a` along the last axis must be at least {least}; got shape {a.shape}.")
    return a


def fiedler_companion(a: Any) -> Any:
    """Companion matrices that are pentadiagonal (Fiedler, 2003).

    Raises:
      ValueError: there are fewer than two coefficients.
    """
    a = _coefficients("fiedler_companion", a, 2)
    n = a.shape[-1] - 1
    c = -a[..., 1:] / a[..., :1]
    k = np.arange(n)
    rows, columns = np.where(k % 2 == 0, k, k - 1), np.where(k % 2 == 0, np.maximum(k - 1, 0), k)
    even, odd = k[: max(n - 2, 0) : 2], k[3::2]
    ones = np.concatenate([even, odd, k[1:2]]), np.concatenate([even + 2, odd - 2, k[1:2] - 1])
    result = jnp.zeros((*a.shape[:-1], n, n), a.dtype).at[..., rows, columns].set(c)
    return result.at[..., *ones].set(1)


def leslie(f: Any, s: Any) -> Any:
    """The matrices that move populations on by one generation.

    Args:
      f: how many descendants an individual of each age has.
      s: how many of each age survive into the next.

    Raises:
      ValueError: ``s`` isn't shorter than ``f`` by one, or ``f`` too short.
    """
    f, s = of_one_dtype("leslie", f, s)
    if f.ndim == 0 or s.ndim == 0 or f.shape[-1] != s.shape[-1] + 1:
        raise ValueError(
            "Incorrect lengths for f and s. The length of s along the last axis must be one less than the length of f; "
            f"got f shape {f.shape} and s shape {s.shape}."
        )
    if s.shape[-1] == 0:
        raise ValueError("The length of s must be at least 1.")
    n = f.shape[-1]
    batch = np.broadcast_shapes(f.shape[:-1], s.shape[:-1])
    result = jnp.zeros((*batch, n, n), f.dtype).at[..., 0, :].set(f)
    return result.at[..., np.arange(1, n), np.arange(n - 1)].set(s)


def fiedler(a: Any) -> Any:
    """Symmetric matrices of the distances ``abs(a[i] - a[j])``."""
    a = _vectors("fiedler", a)
    return jnp.abs(a[..., :, None] - a[..., None, :])


# --- by size ---------------------------------------------------------------------------------------------------------


def _constant(x: Any) -> Any:
    return jnp.asarray(np.asarray(x, dtypes.canonicalize(np.float64)))


def dft(n: int, scale: str | None = None, *, dtype: Any = None) -> Any:
    """The matrix of the discrete Fourier transform.

    Args:
      scale: None, 'sqrtn' or 'n': by what it is divided.
      dtype: a complex one.

    Raises:
      ValueError: another ``scale``, or a dtype that isn't complex.
    """
    if scale not in (None, "sqrtn", "n"):
        raise ValueError(f"scale must be None, 'sqrtn', or 'n'; got {scale!r}.")
    kind = canonical_dtype(dtype, np.complex128)
    if not dtypes.is_complex(kind):
        raise ValueError(f"dtype must be a complex floating-point type; got {kind}.")
    k = np.arange(operator.index(n))
    size = {None: 1.0, "sqrtn": math.sqrt(max(n, 1)), "n": float(max(n, 1))}[scale]
    return jnp.asarray((np.exp(-2j * np.pi * (np.outer(k, k) % max(n, 1)) / max(n, 1)) / size).astype(kind))


def hadamard(n: int, dtype: Any = int) -> Any:
    """The matrix of 1 and -1 with orthogonal columns, of Sylvester's construction.

    Raises:
      ValueError: ``n`` is no power of 2.

    >>> print(hadamard(2))
    [[ 1  1]
     [ 1 -1]]
    """
    n = operator.index(n)
    if n < 1 or n & (n - 1):
        raise ValueError(f"n must be a positive power of 2; got {n}.")
    result = np.ones((1, 1))
    while len(result) < n:
        result = np.kron([[1, 1], [1, -1]], result)
    return jnp.asarray(result.astype(canonical_dtype(dtype)))


def helmert(n: int, full: bool = False) -> Any:
    """Helmert's orthogonal matrix, without its constant first row unless ``full``.

    Raises:
      ValueError: ``n`` isn't positive.
    """
    n = _positive(n)
    result = np.tril(np.ones((n, n)), -1) - np.diag(np.arange(n))
    result[0] = 1
    result /= np.sqrt(np.where(np.arange(n) == 0, n, np.arange(n) * (np.arange(n) + 1)))[:, None]
    return _constant(result if full else result[1:])


def hilbert(n: int) -> Any:
    """The matrix of the numbers ``1 / (i + j + 1)``."""
    k = np.arange(operator.index(n))
    return _constant(1 / (k[:, None] + k + 1))


def invhilbert(n: int) -> Any:
    """The inverse of ``hilbert(n)``."""
    n, comb = operator.index(n), math.comb
    entry = lambda i, j: (
        (-1) ** (i + j) * (i + j + 1) * comb(n + i, n - j - 1) * comb(n + j, n - i - 1) * comb(i + j, i) ** 2
    )
    return _constant(np.array([float(entry(i, j)) for i in range(n) for j in range(n)]).reshape(n, n))


_KINDS = ["symmetric", "lower", "upper"]


def pascal(n: int, kind: str | None = None) -> Any:
    """The matrix of binomial coefficients.

    Args:
      kind: 'symmetric' (by default), 'lower' or 'upper'.

    Raises:
      ValueError: another kind.

    >>> print(pascal(3, kind="lower"))
    [[1. 0. 0.]
     [1. 1. 0.]
     [1. 2. 1.]]
    """
    kind = kind or "symmetric"
    if kind not in _KINDS:
        raise ValueError(f"Expected kind to be one of: {_KINDS}; got {kind}")
    lower = _binomials(operator.index(n))
    return _constant(lower @ lower.T if kind == "symmetric" else lower if kind == "lower" else lower.T)


def _binomials(n: int) -> np.ndarray:
    return np.array([[float(math.comb(i, j)) for j in range(n)] for i in range(n)]).reshape(n, n)


def invpascal(n: int, kind: str | None = None) -> Any:
    """The inverse of ``pascal(n, kind)``.

    Raises:
      ValueError: another kind.
    """
    kind = kind or "symmetric"
    if kind not in _KINDS:
        raise ValueError(f"Expected kind to be one of: {_KINDS}; got {kind}")
    n = operator.index(n)
    lower = _binomials(n) * (-1.0) ** (np.arange(n)[:, None] + np.arange(n))
    return _constant(lower.T @ lower if kind == "symmetric" else lower if kind == "lower" else lower.T)
