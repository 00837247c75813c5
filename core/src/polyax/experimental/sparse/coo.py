"""``COO``: matrices as stored elements with their rows and columns. Simpler than ``BCOO``, and rarely better."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from polyax import numpy as jnp
from polyax.experimental.sparse.base import JAXSparse
from polyax.experimental.sparse.composed import composed
from polyax.experimental.sparse.layout import concrete
from polyax.lax import lenient as lax
from polyax.trace.register import register_pytree_node_class


class COOInfo(NamedTuple):
    """What a ``COO`` is, besides its numbers."""

    shape: tuple[int, ...]
    rows_sorted: bool = False
    cols_sorted: bool = False


@register_pytree_node_class
class COO(JAXSparse):
    """A sparse matrix in coordinate format.

    Args:
      args: ``data``, rows and columns, each of shape ``[nse]``.
      shape: that of the matrix.
      rows_sorted, cols_sorted: whether elements are promised to be ordered by row, or by column.

    >>> COO.fromdense(np.eye(3, dtype=np.float32))
    COO(float32[3, 3], nse=3)
    """

    data: Any
    row: Any
    col: Any

    def __init__(
        self, args: Any, *, shape: Sequence[int], rows_sorted: bool = False, cols_sorted: bool = False
    ) -> None:
        self.data, self.row, self.col = map(jnp.asarray, args)
        self._rows_sorted, self._cols_sorted = rows_sorted, cols_sorted
        super().__init__(args, shape=shape)

    @property
    def _info(self) -> COOInfo:
        return COOInfo(self.shape, self._rows_sorted, self._cols_sorted)

    @property
    def _bufs(self) -> tuple[Any, Any, Any]:
        return self.data, self.row, self.col

    @property
    def nse(self) -> int:
        return self.data.size

    @classmethod
    def fromdense(cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> COO:
        """That of a dense matrix."""
        return coo_fromdense(mat, nse=nse, index_dtype=index_dtype)

    def _sort_indices(self) -> COO:
        if self._rows_sorted:
            return self
        row, col, data = lax.sort((self.row, self.col, self.data), num_keys=2)
        return COO((data, row, col), shape=self.shape, rows_sorted=True)

    @classmethod
    def _empty(cls, shape: Sequence[int], *, dtype: Any = None, index_dtype: Any = "int32") -> COO:
        shape = tuple(shape)
        if len(shape) != 2:
            raise ValueError(f"COO must have ndim=2; got {shape=}")
        none = jnp.zeros(0, index_dtype)
        return cls((jnp.zeros(0, dtype), none, none), shape=shape, rows_sorted=True, cols_sorted=True)

    @classmethod
    def _eye(cls, N: int, M: int, k: int, *, dtype: Any = None, index_dtype: Any = "int32") -> COO:
        along = np.arange(max(min(N, M - k) if k > 0 else min(N + k, M), 0))
        row, col = ((along + by).astype(index_dtype) for by in (-min(k, 0), max(k, 0)))
        bufs = jnp.ones(len(along), dtype), row, col
        return cls(bufs, shape=(N, M), rows_sorted=True, cols_sorted=True)

    def todense(self) -> Any:
        """The dense matrix."""
        return coo_todense(self)

    def transpose(self, axes: Sequence[int] | None = None) -> COO:
        """With rows as columns."""
        if axes is not None:
            raise NotImplementedError("axes argument to transpose()")
        sides = {"rows_sorted": self._cols_sorted, "cols_sorted": self._rows_sorted}
        return COO((self.data, self.col, self.row), shape=self.shape[::-1], **sides)

    def tree_flatten(self) -> tuple[Any, COOInfo]:
        return self._bufs, self._info

    @classmethod
    def tree_unflatten(cls, aux_data: Any, children: Any) -> COO:
        new = object.__new__(cls)
        new.data, new.row, new.col = children
        new.shape, new._rows_sorted, new._cols_sorted = aux_data
        return new

    def __matmul__(self, other: Any) -> Any:
        return times(self, other, coo_matvec, coo_matmat)


def times(mat: Any, other: Any, matvec: Any, matmat: Any, transpose: bool = False) -> Any:
    """The product of a matrix with a dense vector or matrix, of one dtype.

    Raises:
      NotImplementedError: ``other`` is anything else.
    """
    if isinstance(other, JAXSparse):
        raise NotImplementedError("matmul between two sparse objects.")
    other = jnp.asarray(other)
    if other.ndim not in (1, 2):
        raise NotImplementedError(f"matmul with object of shape {other.shape}")
    dtype = jnp.result_type(mat.data, other)
    leaves, aux = mat.tree_flatten()
    same = type(mat).tree_unflatten(aux, (leaves[0].astype(dtype), *leaves[1:]))
    return (matvec if other.ndim == 1 else matmat)(same, other.astype(dtype), transpose=transpose)


# --- dense ------------------------------------------------------------------------------------------------------------


def at_places(row: Any, col: Any, data: Any, shape: Sequence[int]) -> Any:
    """The dense matrix of elements at these places."""
    return jnp.zeros(shape, data.dtype).at[row, col].add(data, mode="drop")


def _fromdense(mat: Any, *, nse: int, index_dtype: Any) -> list[Any]:
    row, col = jnp.nonzero(mat, size=nse, fill_value=mat.shape)
    found = mat.at[row, col].get(mode="fill", fill_value=0)
    return [found, row.astype(index_dtype), col.astype(index_dtype)]


coo_fromdense_p = composed("coo_fromdense", _fromdense, several=True)
coo_todense_p = composed("coo_todense", lambda data, row, col, *, spinfo: [at_places(row, col, data, spinfo.shape)])


def coo_fromdense(mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> COO:
    """The sparse form of a dense matrix.

    Args:
      nse: how many elements to store; by default as many as are not 0.
    """
    mat = jnp.asarray(mat)
    count = concrete((mat != 0).sum() if nse is None else nse, "coo_fromdense nse argument")
    bufs = coo_fromdense_p.bind(mat, nse=count, index_dtype=np.dtype(index_dtype))
    return COO(bufs, shape=mat.shape, rows_sorted=True)


def coo_todense(mat: COO) -> Any:
    """The dense matrix that ``mat`` stands for."""
    return coo_todense_p.bind1(*mat._bufs, spinfo=mat._info)


# --- products ---------------------------------------------------------------------------------------------------------


def product_of(data: Any, row: Any, col: Any, other: Any, shape: Sequence[int], transpose: bool) -> Any:
    """The matrix of elements at these places, or its transpose, times ``other``."""
    to, along = (col, row) if transpose else (row, col)
    found = other.at[along].get(mode="fill", fill_value=0)
    each = data.reshape(-1, *(1,) * (other.ndim - 1)) * found
    return jnp.zeros((shape[1 if transpose else 0], *other.shape[1:]), data.dtype).at[to].add(each, mode="drop")


def _product(data: Any, row: Any, col: Any, other: Any, *, spinfo: COOInfo, transpose: bool) -> list[Any]:
    check_product(data, other, spinfo.shape, transpose)
    return [product_of(data, row, col, other, spinfo.shape, transpose)]


def check_product(data: Any, other: Any, shape: Sequence[int], transpose: bool) -> None:
    """Raises ``ValueError`` unless the sizes and dtypes go together."""
    inner = shape[0 if transpose else 1]
    if other.shape[0] != inner or data.dtype != other.dtype:
        of = "the transpose of " if transpose else ""
        raise ValueError(
            f"the product of {of}a sparse matrix {data.dtype}{list(shape)} with {other.dtype}{list(other.shape)} needs "
            f"{inner} rows of the same dtype"
        )


coo_matvec_p = composed("coo_matvec", _product)
coo_matmat_p = composed("coo_matmat", _product)


def coo_matvec(mat: COO, v: Any, transpose: bool = False) -> Any:
    """``mat @ v``, or ``mat.T @ v``, for a vector of the same dtype."""
    return coo_matvec_p.bind1(*mat._bufs, jnp.asarray(v), spinfo=mat._info, transpose=transpose)


def coo_matmat(mat: COO, B: Any, *, transpose: bool = False) -> Any:
    """``mat @ B``, or ``mat.T @ B``, for a matrix of the same dtype."""
    return coo_matmat_p.bind1(*mat._bufs, jnp.asarray(B), spinfo=mat._info, transpose=transpose)
