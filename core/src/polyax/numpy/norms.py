"""Norms of vectors and matrices, and the condition number."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.lax import lenient as lax
from polyax.numpy import reductions, shapes, ufuncs
from polyax.numpy.axes import reduction_axes
from polyax.numpy.decompositions import inexact_matrix, largest, svdvals
from polyax.numpy.promotion import convert, ensure_array, inexact
from polyax.numpy.solutions import inv

__all__ = ["cond", "matrix_norm", "norm", "vector_norm"]


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """The norm of vectors (one axis) or matrices (two axes); of all elements if neither ``ord`` nor ``axis`` is given.

    Raises:
      ValueError: an unknown ``ord``, or a wrong number of axes.

    >>> import polyax.numpy as jnp
    >>> jnp.linalg.norm(jnp.array([3.0, 4.0])).item()
    5.0
    """
    x = inexact("jnp.linalg.norm", x)[0]
    if axis is None and ord is None:
        return lax.sqrt(_square_sum(x, tuple(range(x.ndim)), keepdims))
    axes = reduction_axes(axis, x.ndim, "linalg.norm")
    if len(axes) == 1:
        return _vector_norm(x, axes, ord, keepdims)
    if len(axes) != 2:
        raise ValueError(
            f"Improper number of axes for norm: axis={axes}. Pass one axis to compute a vector-norm, or two axes to "
            "compute a matrix-norm."
        )
    return _matrix_norm(x, axes, "fro" if ord is None else ord, keepdims)


def _square_sum(x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    squares = lax.real(lax.mul(x, lax.conj(x))) if x.dtype in dtypes.COMPLEX else lax.square(x)
    return reductions.sum(squares, axes, keepdims=keepdims)


def _vector_norm(x: Any, axes: tuple[int, ...], ord: Any, keepdims: bool) -> Any:
    if ord is None or ord == 2:
        return lax.sqrt(_square_sum(x, axes, keepdims))
    size = ufuncs.absolute(x)
    if ord == np.inf:
        return largest(size, axes, keepdims=keepdims)
    if ord == -np.inf:
        return reductions.min(size, axes, keepdims=keepdims)
    if ord == 0:
        return reductions.sum(convert(lax.ne(size, 0.0), size.dtype), axes, keepdims=keepdims)
    if ord == 1:
        return reductions.sum(size, axes, keepdims=keepdims)
    if isinstance(ord, str):
        raise ValueError(f"Invalid order '{ord}' for vector norm.")
    total = reductions.sum(ufuncs.power(size, ord), axes, keepdims=keepdims)
    return ufuncs.power(total, 1.0 / ord)


def _matrix_norm(x: Any, axes: tuple[int, ...], ord: Any, keepdims: bool) -> Any:
    row, column = axes
    if ord in ("f", "fro"):
        return lax.sqrt(_square_sum(x, axes, keepdims))
    if ord in (1, -1, np.inf, -np.inf):
        summed, searched = (row, column) if abs(ord) == 1 else (column, row)
        sums = reductions.sum(lax.abs(x), summed, keepdims=True)
        result = (largest if ord > 0 else reductions.min)(sums, searched, keepdims=True)
    elif ord in (2, -2, "nuc"):
        s = svdvals(shapes.moveaxis(x, axes, (-2, -1)))
        reduce = {2: largest, -2: reductions.min, "nuc": reductions.sum}[ord]
        result = lax.expand_dims(reduce(s, -1), sorted(axes))
    else:
        raise ValueError(f"Invalid order '{ord}' for matrix norm.")
    return result if keepdims else lax.squeeze(result, axes)


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """The norm over one or several axes as one long vector; that of integers is one where it needs no root."""
    x = ensure_array("jnp.linalg.vector_norm", x)
    if ord not in (1, np.inf, -np.inf) and not dtypes.is_inexact(x.dtype):
        x = convert(x, dtypes.default_float())  # the sums of squares are of the widest integers
    return _vector_norm(x, reduction_axes(axis, x.ndim, "linalg.vector_norm"), ord, keepdims)


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """The norm of the matrices of the last two axes."""
    x = ensure_array("jnp.linalg.matrix_norm", x)
    return norm(x, ord, (-2, -1), keepdims)


def cond(x: Any, p: Any = None) -> Any:
    """The condition number: the norm of the matrix times that of its inverse; by default from singular values."""
    x = inexact_matrix("cond", x)
    if x.ndim < 2:
        raise ValueError(f"jnp.linalg.cond: input array must be at least 2D; got arr.shape={x.shape}")
    if 0 in x.shape[-2:]:
        raise ValueError(f"jnp.linalg.cond: input array must not be empty; got arr.shape={x.shape}")
    if p in (None, 2, -2):
        s = svdvals(x)
        first, last = (
            lax.index_in_dim(s, 0, s.ndim - 1, keepdims=False),
            lax.index_in_dim(s, -1, s.ndim - 1, keepdims=False),
        )
        return lax.div(last, first) if p == -2 else lax.div(first, last)
    if x.shape[-2] != x.shape[-1]:
        raise ValueError(f"jnp.linalg.cond: for p={p}, array must be square; got arr.shape={x.shape}")
    return lax.mul(norm(x, p, (-2, -1)), norm(inv(x), p, (-2, -1)))
