"""The triangles of matrices, as masks and as what is left of a matrix, and the identity."""

from __future__ import annotations

from collections.abc import Callable
from operator import index
from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.ir.dims import is_symbolic_dim
from polyax.lax import lenient as lax
from polyax.numpy.arrays import placed
from polyax.numpy.broadcast import broadcast_to
from polyax.numpy.offsets import check_scalar_integer, diagonal_offset, refuse_too_far
from polyax.numpy.promotion import as_array, canonical_dtype, concrete_shape, convert, ensure_array, is_traced, shape_of
from polyax.numpy.selection import nonzero

__all__ = [
    "eye", "identity", "mask_indices", "tri", "tril", "tril_indices", "tril_indices_from", "triu", "triu_indices",
    "triu_indices_from",
]  # fmt: skip


def eye(N: Any, M: Any = None, k: Any = 0, dtype: Any = None, *, device: Any = None) -> Any:
    """A matrix of shape (N, M) with ones on the ``k``-th diagonal.

    Raises:
      ValueError: ``k`` is no scalar integer, or a dimension is negative.

    >>> import polyax.numpy as jnp
    >>> jnp.eye(2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    kind = canonical_dtype(dtype, np.float64)
    shape = concrete_shape((N, N if M is None else M))
    if any(n < 0 for n in shape):
        raise ValueError(f"negative dimensions are not allowed, got {N} and {M}")
    if not isinstance(k, int) and not is_symbolic_dim(k):
        check_scalar_integer(k)
    return placed(convert(lax.eq(*_row_and_column(shape, k)), kind), device)


def identity(n: Any, dtype: Any = None) -> Any:
    """The identity matrix of size ``n``."""
    return eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> Any:
    """Ones at and below the ``k``-th diagonal, zeros above.

    >>> import polyax.numpy as jnp
    >>> jnp.tri(2).tolist()
    [[1.0, 0.0], [1.0, 1.0]]
    """
    kind = canonical_dtype(dtype, np.float32)
    refuse_too_far(k)
    return convert(lax.ge(*_row_and_column(concrete_shape((N, N if M is None else M)), k)), kind)


def _row_and_column(shape: tuple[int, ...], k: Any) -> tuple[Any, Any]:
    """Row index plus ``k``, and column index, of each element."""
    row, column = (lax.broadcasted_iota(np.int32, shape, n) for n in (0, 1))
    offset = diagonal_offset(k)
    return (lax.add(row, offset) if is_traced(k) or k else row), column


def tril(m: Any, k: int = 0) -> Any:
    """``m`` with zeros above its ``k``-th diagonal.

    >>> import polyax.numpy as jnp
    >>> jnp.tril(jnp.ones((2, 2), int)).tolist()
    [[1, 0], [1, 1]]
    """
    return _triangle("tril", m, k, lower=True)


def triu(m: Any, k: int = 0) -> Any:
    """``m`` with zeros below its ``k``-th diagonal.

    >>> import polyax.numpy as jnp
    >>> jnp.triu(jnp.ones((2, 2), int)).tolist()
    [[1, 1], [0, 1]]
    """
    return _triangle("triu", m, k, lower=False)


def _triangle(name: str, m: Any, k: int, lower: bool) -> Any:
    m = ensure_array(name, m)
    if m.ndim < 2:
        raise ValueError(f"Argument to jax.numpy.{name} must be at least 2D")
    keep = lax.ge(*_row_and_column(m.shape[-2:], k if lower else k - 1))
    keep = broadcast_to(keep if lower else lax.bitwise_not(keep), m.shape)
    return lax.select(keep, m, lax.full_like(m, 0))


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Any, Any]:
    """Row and column indices of the elements at and below the ``k``-th diagonal of an (n, m) matrix."""
    return _host_pair(np.tril_indices(*_sizes(n, k, m)))


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Any, Any]:
    """Row and column indices of the elements at and above the ``k``-th diagonal of an (n, m) matrix."""
    return _host_pair(np.triu_indices(*_sizes(n, k, m)))


def _sizes(n: Any, k: Any, m: Any) -> tuple[int, int, int]:
    return index(n), index(k), index(n if m is None else m)


def _host_pair(pair: tuple[np.ndarray, np.ndarray]) -> tuple[Any, Any]:
    rows, columns = (as_array(indices.astype(dtypes.default_int())) for indices in pair)
    return rows, columns


def _matrix_shape(name: str, arr: Any) -> tuple[int, int]:
    shape = tuple(arr.shape) if hasattr(arr, "shape") else shape_of(ensure_array(name, arr))
    if len(shape) != 2:
        raise ValueError("Only 2-D inputs are accepted")
    return shape[0], shape[1]


def tril_indices_from(arr: Any, k: int = 0) -> tuple[Any, Any]:
    """``tril_indices`` for the shape of a matrix."""
    rows, columns = _matrix_shape("tril_indices_from", arr)
    return tril_indices(rows, k, columns)


def triu_indices_from(arr: Any, k: int = 0) -> tuple[Any, Any]:
    """``triu_indices`` for the shape of a matrix."""
    rows, columns = _matrix_shape("triu_indices_from", arr)
    return triu_indices(rows, k, columns)


def mask_indices(n: int, mask_func: Callable[..., Any], k: int = 0, *, size: int | None = None) -> tuple[Any, ...]:
    """Indices of the nonzero elements of ``mask_func(ones((n, n)), k)``."""
    return nonzero(mask_func(tri(n, n, n), k), size=size)
