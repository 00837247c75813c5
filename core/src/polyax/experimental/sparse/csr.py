"""``CSR`` and ``CSC``: matrices in compressed rows, and in compressed columns. Simpler than ``BCSR``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polyax import numpy as jnp
from polyax.experimental.sparse.base import JAXSparse
from polyax.experimental.sparse.bcsr import pointers, rows_of
from polyax.experimental.sparse.composed import composed
from polyax.experimental.sparse.coo import COO, at_places, check_product, product_of, times
from polyax.experimental.sparse.layout import concrete
from polyax.trace.register import register_pytree_node_class


class _Compressed(JAXSparse):
    """Stored elements, where they stand along the other dimension, and where each row (column) of them begins."""

    data: Any
    indices: Any
    indptr: Any

    def __init__(self, args: Any, *, shape: Sequence[int]) -> None:
        self.data, self.indices, self.indptr = map(jnp.asarray, args)
        super().__init__(args, shape=shape)

    @property
    def nse(self) -> int:
        return self.data.size

    @property
    def _bufs(self) -> tuple[Any, Any, Any]:
        return self.data, self.indices, self.indptr

    @classmethod
    def _empty(cls, shape: Sequence[int], *, dtype: Any = None, index_dtype: Any = "int32") -> Any:
        shape = tuple(shape)
        if len(shape) != 2:
            raise ValueError(f"{cls.__name__} must have ndim=2; got {shape=}")
        count = shape[0 if cls is CSR else 1]
        bufs = jnp.zeros(0, dtype), jnp.zeros(0, index_dtype), jnp.zeros(count + 1, index_dtype)
        return cls(bufs, shape=shape)

    def tree_flatten(self) -> tuple[Any, tuple[int, ...]]:
        return self._bufs, self.shape

    @classmethod
    def tree_unflatten(cls, aux_data: Any, children: Any) -> Any:
        new = object.__new__(cls)
        new.data, new.indices, new.indptr = children
        new.shape = aux_data
        return new


@register_pytree_node_class
class CSR(_Compressed):
    """A sparse matrix in compressed row format.

    Args:
      args: ``data`` and columns of shape ``[nse]``, and where rows begin, of shape ``[rows + 1]``.
      shape: that of the matrix.

    >>> CSR.fromdense(np.eye(3, dtype=np.float32)).indptr.tolist()
    [0, 1, 2, 3]
    """

    @classmethod
    def fromdense(cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> CSR:
        """That of a dense matrix."""
        return csr_fromdense(mat, nse=nse, index_dtype=index_dtype)

    @classmethod
    def _eye(cls, N: int, M: int, k: int, *, dtype: Any = None, index_dtype: Any = "int32") -> CSR:
        coo = COO._eye(N, M, k, dtype=dtype, index_dtype=index_dtype)
        return cls((coo.data, coo.col, pointers(coo.row, N, np.dtype(index_dtype))), shape=(N, M))

    def todense(self) -> Any:
        """The dense matrix."""
        return csr_todense(self)

    def transpose(self, axes: Sequence[int] | None = None) -> CSC:
        """With rows as columns."""
        if axes is not None:
            raise NotImplementedError("axes argument to transpose()")
        return CSC(self._bufs, shape=self.shape[::-1])

    def __matmul__(self, other: Any) -> Any:
        return times(self, other, csr_matvec, csr_matmat)


@register_pytree_node_class
class CSC(_Compressed):
    """A sparse matrix in compressed column format.

    Args:
      args: ``data`` and rows of shape ``[nse]``, and where columns begin, of shape ``[columns + 1]``.
      shape: that of the matrix.
    """

    @classmethod
    def fromdense(cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> CSC:
        """That of a dense matrix."""
        return csr_fromdense(jnp.asarray(mat).T, nse=nse, index_dtype=index_dtype).T

    @classmethod
    def _eye(cls, N: int, M: int, k: int, *, dtype: Any = None, index_dtype: Any = "int32") -> CSC:
        return CSR._eye(M, N, -k, dtype=dtype, index_dtype=index_dtype).T

    def todense(self) -> Any:
        """The dense matrix."""
        return csr_todense(self.T).T

    def transpose(self, axes: Sequence[int] | None = None) -> CSR:
        """With rows as columns."""
        if axes is not None:
            raise NotImplementedError("axes argument to transpose()")
        return CSR(self._bufs, shape=self.shape[::-1])

    def __matmul__(self, other: Any) -> Any:
        return times(self.T, other, csr_matvec, csr_matmat, transpose=True)


# --- functions --------------------------------------------------------------------------------------------------------


def _fromdense(mat: Any, *, nse: int, index_dtype: Any) -> list[Any]:
    row, col = jnp.nonzero(mat, size=nse, fill_value=mat.shape)
    found = mat.at[row, col].get(mode="fill", fill_value=0)
    return [found, col.astype(index_dtype), pointers(row, mat.shape[0], index_dtype)]


def _todense(data: Any, indices: Any, indptr: Any, *, shape: tuple[int, ...]) -> list[Any]:
    return [at_places(rows_of(indices, indptr), indices, data, shape)]


def _product(data: Any, indices: Any, indptr: Any, other: Any, *, shape: tuple[int, ...], transpose: bool) -> list[Any]:
    check_product(data, other, shape, transpose)
    return [product_of(data, rows_of(indices, indptr), indices, other, shape, transpose)]


csr_fromdense_p = composed("csr_fromdense", _fromdense, several=True)
csr_todense_p = composed("csr_todense", _todense)
csr_matvec_p = composed("csr_matvec", _product)
csr_matmat_p = composed("csr_matmat", _product)


def csr_fromdense(mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> CSR:
    """The sparse form of a dense matrix.

    Args:
      nse: how many elements to store; by default as many as are not 0.
    """
    mat = jnp.asarray(mat)
    count = concrete((mat != 0).sum() if nse is None else nse, "csr_fromdense nse argument")
    return CSR(csr_fromdense_p.bind(mat, nse=count, index_dtype=np.dtype(index_dtype)), shape=mat.shape)


def csr_todense(mat: CSR) -> Any:
    """The dense matrix that ``mat`` stands for."""
    return csr_todense_p.bind1(*mat._bufs, shape=mat.shape)


def csr_matvec(mat: CSR, v: Any, transpose: bool = False) -> Any:
    """``mat @ v``, or ``mat.T @ v``, for a vector of the same dtype."""
    return csr_matvec_p.bind1(*mat._bufs, jnp.asarray(v), shape=mat.shape, transpose=transpose)


def csr_matmat(mat: CSR, B: Any, *, transpose: bool = False) -> Any:
    """``mat @ B``, or ``mat.T @ B``, for a matrix of the same dtype."""
    return csr_matmat_p.bind1(*mat._bufs, jnp.asarray(B), shape=mat.shape, transpose=transpose)
