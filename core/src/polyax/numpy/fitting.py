"""Polynomials divided, solved, and fitted to points."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.lax import lenient as lax
from polyax.numpy import linalg
from polyax.numpy.arrays import asarray
from polyax.numpy.broadcast import choose
from polyax.numpy.polynomials import vander
from polyax.numpy.products import matmul, outer
from polyax.numpy.promotion import convert, ensure_arrays, inexact, refuse_traced, to_complex
from polyax.numpy.reductions import sum as total
from polyax.numpy.shapes import atleast_1d
from polyax.numpy.ufuncs import sqrt

__all__ = ["polydiv", "polyfit", "roots"]


def polydiv(u: Any, v: Any, *, trim_leading_zeros: bool = False) -> tuple[Any, Any]:
    """Quotient and remainder of two polynomials, highest powers first.

    Args:
      trim_leading_zeros: leave out zeros before the remainder, which then can't be traced; else it is as long as ``u``.

    >>> quotient, rest = polydiv(np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0]))
    >>> quotient.tolist(), rest.tolist()
    ([1.0, 1.0], [0.0, 0.0, 2.0])
    """
    rest, divisor = (atleast_1d(x) for x in inexact("polydiv", u, v))
    places = rest.shape[0] - divisor.shape[0] + 1
    lead = lax.index_in_dim(divisor, 0, 0, keepdims=False)
    found = []
    for k in range(places):
        factor = lax.div(lax.index_in_dim(rest, k, 0, keepdims=False), lead)
        found.append(factor)
        ends = [(k, rest.shape[0] - k - divisor.shape[0], 0)]
        rest = lax.sub(rest, lax.pad(lax.mul(divisor, factor), rest.dtype.type(0), ends))
        rest = _with_zero(rest, k)  # which it is but for rounding, and unless it is no number
    quotient = lax.concatenate([lax.expand_dims(f, (0,)) for f in found], 0) if found else _nothing(rest)
    if trim_leading_zeros:
        refuse_traced(rest, "jnp.polydiv with trim_leading_zeros needs values: leave it out under transformations.")
        rest = asarray(np.trim_zeros(np.asarray(rest), "f"))
    return quotient, rest


def _with_zero(x: Any, k: int) -> Any:
    return choose(np.arange(x.shape[0]) == k, lax.sub(x, x), x)


def _nothing(x: Any) -> Any:
    return lax.full((1,), 0, x.dtype)


def roots(p: Any, *, strip_zeros: bool = True) -> Any:
    """The zeros of a polynomial, complex, by the eigenvalues of its companion matrix.

    Args:
      strip_zeros: leave out leading zeros of ``p``, which then can't be traced; else as many of the results are NaN.

    Raises:
      ValueError: ``p`` isn't of one dimension.

    >>> print(np.sort(roots(np.array([1.0, -3.0, 2.0])).real).round(4))
    [1. 2.]
    """
    p = atleast_1d(inexact("roots", p)[0])
    if p.ndim != 1:
        raise ValueError(f"roots: Input must be a rank-1 array, got {p.aval}.")
    if p.shape[0] < 2:
        return lax.full((0,), 0, to_complex(p.dtype))
    if not strip_zeros:
        return _roots_after_zeros(p)
    refuse_traced(
        p, "jnp.roots needs values to strip leading zeros: pass strip_zeros=False, then as many results are NaN."
    )
    host = np.asarray(p)
    places = np.flatnonzero(host)
    if len(places) < 1:
        return lax.full((0,), 0, to_complex(p.dtype))
    return _roots(lax.slice_in_dim(p, int(places[0]), len(host)))


def _roots(p: Any) -> Any:
    """Those of a polynomial whose first coefficient isn't zero."""
    n = p.shape[0] - 1
    if n < 1:
        return lax.full((0,), 0, to_complex(p.dtype))
    lead = lax.index_in_dim(p, 0, 0, keepdims=False)
    row = lax.neg(lax.div(lax.slice_in_dim(p, 1, n + 1), lead))
    below = asarray(np.eye(n - 1, n), p.dtype)
    return linalg.eigvals(lax.concatenate([lax.expand_dims(row, (0,)), below], 0))


def _roots_after_zeros(p: Any) -> Any:
    """Leading zeros are moved to the end, where they make zeros of the polynomial at 0: these are the NaN."""
    size = p.shape[0]
    seen = lax.cummax(convert(lax.ne(p, 0), np.dtype("int32")))
    leading = lax.sub(np.int32(size), lax.reduce_sum(seen, (0,)))
    moved = lax.dynamic_slice_in_dim(lax.concatenate([p, lax.full_like(p, 0)], 0), leading, size, 0)
    first = lax.eq(lax.iota(np.int32, size), 0)
    nothing = lax.eq(leading, size)
    safe = choose(lax.bitwise_and(first, lax.broadcast(nothing, (size,))), 1, moved)
    found = _roots(safe)
    at_zero = convert(lax.eq(found, 0), np.dtype("int32"))
    _, real, imaginary = lax.sort([at_zero, lax.real(found), lax.imag(found)], num_keys=1)
    known = lax.lt(lax.iota(np.int32, size - 1), size - 1 - leading)
    return lax.complex(choose(known, real, np.nan), choose(known, imaginary, np.nan))


def polyfit(
    x: Any, y: Any, deg: int, rcond: float | None = None, full: bool = False, w: Any = None, cov: bool | str = False
) -> Any:
    """The polynomial of degree ``deg`` that is nearest to points, in the sum of squares.

    Args:
      x: their abscissas, of one dimension.
      y: their ordinates; columns of two dimensions are fitted one by one.
      rcond: singular values smaller than this times the largest count as zero; by default rounding errors do.
      full: return also the sums of squares that are left, the rank, the singular values and ``rcond``.
      w: weights of the ordinates, not of their squares.
      cov: return also the covariance of the coefficients, scaled by what is left unless this is "unscaled".

    Returns:
      Coefficients, highest power first; a tuple of these and more if asked for.

    Raises:
      ValueError: ``deg`` is negative, or there are too few points for a covariance.
      TypeError: shapes don't belong together, or ``deg`` is no integer.

    >>> np.abs(polyfit(np.arange(4.0), np.arange(4.0) ** 2, 2)).round(3).tolist()
    [1.0, 0.0, 0.0]
    """
    deg = operator.index(deg)
    x, y = _points(x, y, deg)
    rcond = x.shape[0] * float(dtypes.finfo(x.dtype).eps) if rcond is None else rcond
    left, right = vander(x, deg + 1), y
    if w is not None:
        weights = inexact("polyfit", w, x)[0]
        if weights.ndim != 1:
            raise TypeError(f"polyfit: expected a 1-d array for weights, got {weights.aval}")
        if weights.shape[0] != y.shape[0]:
            raise TypeError(f"polyfit: expected w and y to have the same length, got {weights.aval} and {y.aval}")
        left, right = left * weights[:, None], right * (weights[:, None] if y.ndim == 2 else weights)
    scale = sqrt(total(left * left, 0))
    left = left / scale
    found, residuals, rank, singular = linalg.lstsq(left, right, rcond)
    found = (found.T / scale).T
    if full:
        return found, residuals, rank, singular, asarray(rcond)
    if not cov:
        return found
    covariance = _covariance(left, scale, residuals, x.shape[0], deg + 1, cov)
    return found, covariance if y.ndim == 2 else covariance[:, :, 0]


def _points(x: Any, y: Any, deg: int) -> tuple[Any, Any]:
    if deg < 0:
        raise ValueError(f"polyfit: expected deg >= 0, got {deg}")
    x, y = inexact("polyfit", *ensure_arrays("polyfit", x, y))
    if x.ndim != 1:
        raise TypeError(f"polyfit: expected 1D vector for x, got {x.aval}")
    if x.size == 0:
        raise TypeError("polyfit: expected non-empty vector for x")
    if y.ndim not in (1, 2):
        raise TypeError(f"polyfit: expected 1D or 2D array for y, got {y.aval}")
    if x.shape[0] != y.shape[0]:
        raise TypeError(f"polyfit: expected x and y to have same length, got {x.aval} and {y.aval}")
    return x, y


def _covariance(left: Any, scale: Any, residuals: Any, points: int, order: int, cov: Any) -> Any:
    """Of each column on its own: the last dimension, which is of size 1 where the columns don't differ."""
    base = linalg.inv(matmul(left.T, left))[:, :, None] / outer(scale, scale)[:, :, None]
    if cov == "unscaled":
        return base
    if points <= order:
        raise ValueError(
            f"polyfit: the number of data points must exceed order to scale the covariance matrix, got {points} points "
            f"for {order} coefficients"
        )
    factor = residuals / (points - order)
    return base * factor
