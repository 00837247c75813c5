"""Polynomials by their coefficients, highest power first; convolution of vectors."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.lax import lenient as lax
from polyax.numpy.arrays import asarray
from polyax.numpy.broadcast import broadcast_to
from polyax.numpy.decompositions import eigvals
from polyax.numpy.joining import stack
from polyax.numpy.promotion import convert, ensure_array, inexact, of_one_dtype, refuse_traced, strong
from polyax.numpy.shapes import atleast_1d
from polyax.numpy.ufuncs import add, multiply, negative

__all__ = ["convolve", "correlate", "poly", "polyadd", "polyder", "polyint", "polymul", "polysub", "polyval", "vander"]

# --- convolution ------------------------------------------------------------------------------------------------------


def convolve(a: Any, v: Any, mode: str = "full", *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """The sums of ``a[i] * v[k - i]`` for all places ``k`` ('full'), the middle ('same'), or inner ones ('valid').

    >>> import polyax.numpy as jnp
    >>> jnp.convolve(jnp.array([1, 2, 3]), jnp.array([1, 1])).tolist()
    [1.0, 3.0, 5.0, 3.0]
    """
    x, y = _vectors("convolve", a, v, preferred_element_type)
    if x.shape[0] < y.shape[0]:
        x, y = y, x
    return _correlated(x, lax.rev(y, (0,)), mode, precision, preferred_element_type)


def correlate(a: Any, v: Any, mode: str = "valid", *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """The sums of ``a[i + k] * conj(v[i])`` for all places ``k``, as chosen by ``mode``."""
    x, y = _vectors("correlate", a, v, preferred_element_type)
    y = lax.conj(y) if y.dtype in dtypes.COMPLEX else y
    if x.shape[0] >= y.shape[0]:
        return _correlated(x, y, mode, precision, preferred_element_type)
    return lax.rev(_correlated(y, x, mode, precision, preferred_element_type), (0,))


def _vectors(name: str, a: Any, v: Any, preferred: Any) -> tuple[Any, Any]:
    """Inexact ones, as NumPy convolves, unless the caller says what to convolve in."""
    x, y = (inexact if preferred is None else of_one_dtype)(name, a, v)
    if x.ndim != 1 or y.ndim != 1:
        raise ValueError(f"{name}() only support 1-dimensional inputs.")
    if not x.size or not y.size:
        raise ValueError(f"{name}: inputs cannot be empty, got shapes {x.shape} and {y.shape}.")
    return x, y


def _correlated(x: Any, y: Any, mode: str, precision: Any, preferred: Any) -> Any:
    """One convolution with a single channel; ``x`` is the longer vector."""
    n = y.shape[0]
    paddings = {"full": (n - 1, n - 1), "same": (n // 2, n - n // 2 - 1), "valid": (0, 0)}
    if mode not in paddings:
        raise ValueError(f"mode must be one of {list(paddings)}, got {mode!r}")
    image, kernel = lax.reshape(x, (1, 1, x.shape[0])), lax.reshape(y, (1, 1, n))
    result = lax.conv_general_dilated(
        image, kernel, (1,), [paddings[mode]], precision=precision, preferred_element_type=preferred
    )
    return lax.reshape(result, (result.shape[-1],))


# --- polynomials ------------------------------------------------------------------------------------------------------


def polyval(p: Any, x: Any, *, unroll: int = 16) -> Any:
    """The polynomial with coefficients ``p`` at ``x``, by Horner's rule.

    >>> import polyax.numpy as jnp
    >>> jnp.polyval(jnp.array([1, 2, 3]), 2).item()
    11
    """
    p, x = map(strong, of_one_dtype("polyval", p, x))
    y = lax.full_like(x, 0)
    for i in range(p.shape[0]):
        y = add(multiply(y, x), lax.index_in_dim(p, i, 0, keepdims=False))
    return y


def polyadd(a1: Any, a2: Any) -> Any:
    """The sum of two polynomials, or of as many as there are behind the first dimension."""
    a, b = (atleast_1d(x) for x in of_one_dtype("polyadd", a1, a2))
    if a.shape[0] < b.shape[0]:
        a, b = b, a
    rest = a.shape[0] - b.shape[0]
    low = add(lax.slice_in_dim(a, rest, a.shape[0]), b)
    return lax.concatenate([lax.slice_in_dim(a, 0, rest), low], 0) if rest else low


def polysub(a1: Any, a2: Any) -> Any:
    """The difference of two polynomials."""
    a, b = of_one_dtype("polysub", a1, a2)
    return polyadd(a, negative(b))


def polymul(a1: Any, a2: Any, *, trim_leading_zeros: bool = False) -> Any:
    """The product of two polynomials."""
    a, b = (atleast_1d(x) for x in inexact("polymul", a1, a2))
    if trim_leading_zeros:
        for x in (a, b):
            refuse_traced(x, "jnp.polymul with trim_leading_zeros needs values: leave it out under transformations.")
        a, b = (asarray(np.trim_zeros(np.asarray(x), "f")) for x in (a, b))
    return convolve(*(x if x.size else lax.full((1,), 0, x.dtype) for x in (a, b)))


def _coefficients(name: str, p: Any) -> Any:
    (p,) = inexact(name, p)
    if not p.ndim:
        raise TypeError(f"{name}: coefficients are given as a vector, got {p.aval.str_short()}.")
    return p


def polyder(p: Any, m: int = 1) -> Any:
    """The ``m``-th derivative of a polynomial."""
    m = operator.index(m)
    if m < 0:
        raise ValueError("Order of derivative must be positive")
    p = _coefficients("polyder", p)
    for _ in range(m):
        size = max(p.shape[0] - 1, 0)
        powers = lax.rev(lax.add(lax.iota(p.dtype, size), 1.0), (0,))
        p = lax.mul(lax.slice_in_dim(p, 0, size), powers)
    return p


def polyint(p: Any, m: int = 1, k: Any = None) -> Any:
    """The ``m``-th integral of a polynomial, with the constants ``k`` (zero by default)."""
    m = operator.index(m)
    if m < 0:
        raise ValueError(f"Order of integral must be positive (see polyder), got {m}")
    p = _coefficients("polyint", p)
    p, k = inexact("polyint", p, k) if k is not None else (p, None)
    if k is not None and (np.ndim(k) > 1 or np.size(k) not in (1, m)):
        raise ValueError(f"k must be a scalar or a rank-1 array of length 1 or m, got shape {np.shape(k)} for m={m}.")
    constants = broadcast_to(lax.full((), 0, p.dtype) if k is None else k, (m,))
    for i in range(m):
        powers = lax.rev(lax.add(lax.iota(p.dtype, p.shape[0]), 1.0), (0,))
        p = lax.concatenate([lax.div(p, powers), lax.slice_in_dim(constants, i, i + 1)], 0)
    return p


def vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:
    """The matrix whose rows are the powers of each element of ``x``, highest first unless ``increasing``.

    >>> import polyax.numpy as jnp
    >>> jnp.vander(jnp.array([2, 3]), 3).tolist()
    [[4, 2, 1], [9, 3, 1]]
    """
    x = strong(ensure_array("vander", x))
    if x.ndim != 1:
        raise ValueError("x must be a one-dimensional array")
    count = x.shape[0] if N is None else operator.index(N)
    if count < 0:
        raise ValueError("N must be nonnegative")
    columns = [lax.integer_pow(x, i) for i in (range(count) if increasing else range(count - 1, -1, -1))]
    return stack(columns, 1) if columns else lax.full((x.shape[0], 0), 0, x.dtype)


def poly(seq_of_zeros: Any) -> Any:
    """The polynomial with these zeros, or with the eigenvalues of a matrix; the leading coefficient is one."""
    zeros = atleast_1d(inexact("poly", seq_of_zeros)[0])
    if zeros.ndim == 2 and zeros.shape[0] == zeros.shape[1] > 0:
        zeros = eigvals(zeros)
    if zeros.ndim != 1:
        raise ValueError(f"input must be 1d or non-empty square 2d array, got shape {zeros.shape}.")
    if not zeros.size:
        return lax.full((), 1, zeros.dtype)
    p = lax.full((1,), 1, zeros.dtype)
    for i in range(zeros.shape[0]):
        factor = lax.concatenate([lax.full((1,), 1, zeros.dtype), lax.neg(lax.slice_in_dim(zeros, i, i + 1))], 0)
        p = convolve(p, factor)
    return convert(p, zeros.dtype)
