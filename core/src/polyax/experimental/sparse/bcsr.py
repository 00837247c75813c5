"""``BCSR``: matrices in compressed rows, with batch dimensions in front and dense ones behind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polyax import numpy as jnp
from polyax.experimental.sparse.base import JAXSparse
from polyax.experimental.sparse.bcoo import BCOO, bcoo_eliminate_zeros, bcoo_fromdense, bcoo_sum_duplicates
from polyax.experimental.sparse.composed import composed
from polyax.experimental.sparse.dense import count_stored, extract_at, todense_of
from polyax.experimental.sparse.layout import SparseInfo, check_indices, concrete, dot_dims, over_batches
from polyax.experimental.sparse.pieces import bcoo_concatenate
from polyax.experimental.sparse.products import bcoo_dot_general_p
from polyax.experimental.sparse.shapes import bcoo_broadcast_in_dim
from polyax.ir.aval import is_array_like
from polyax.lax import lenient as lax
from polyax.trace.register import register_pytree_node_class
from polyax.transforms.containers import register_vmappable

# --- rows -------------------------------------------------------------------------------------------------------------


def rows_of(indices: Any, indptr: Any) -> Any:
    """For each stored element its row; one beyond the last for what ``indptr`` leaves out."""
    ends = jnp.zeros(indices.shape[0], indptr.dtype).at[indptr[1:]].add(1, mode="drop")
    return jnp.cumsum(ends).astype(indices.dtype)


def pointers(rows: Any, count: int, dtype: Any) -> Any:
    """Where the rows begin, of sorted indices of rows."""
    counts = jnp.zeros(count, dtype).at[rows].add(np.ones((), dtype)[()], mode="drop")
    return jnp.concatenate([jnp.zeros(1, dtype), jnp.cumsum(counts).astype(dtype)])


def _coordinates(indices: Any, indptr: Any, shape: Sequence[int]) -> Any:
    """The indices of a ``BCOO``."""
    n_batch = indices.ndim - 1

    def one(cols: Any, ends: Any) -> Any:
        rows = rows_of(cols, ends)
        return jnp.stack((rows, jnp.where(rows < shape[n_batch], cols, shape[n_batch + 1])), -1)

    sizes = [max(pair) for pair in zip(indices.shape[:n_batch], indptr.shape[:n_batch], strict=True)]
    return over_batches(one, sizes)(indices, indptr)


def _compressed(indices: Any, shape: Sequence[int], dtype: Any) -> tuple[Any, Any]:
    """Columns and pointers, of the sorted indices of a ``BCOO``."""
    n_batch, n_sparse, _, _ = check_indices(indices, shape)
    if n_sparse != 2:
        raise ValueError("Must have 2 sparse dimensions to be converted to BCSR.")
    one = lambda rows: pointers(rows, shape[n_batch], dtype)
    return indices[..., 1], over_batches(one, indices.shape[:n_batch])(indices[..., 0])


def check_bcsr(data: Any, indices: Any, indptr: Any, shape: Sequence[int]) -> tuple[int, int, int]:
    """How many dimensions are batch and dense ones, and how many elements are stored.

    Raises:
      ValueError: the shapes don't fit.
    """
    shape = tuple(shape)
    for name, x in (("indices", indices), ("indptr", indptr)):
        if not jnp.issubdtype(x.dtype, np.integer):
            raise ValueError(f"BCSR {name} must be integers, got {x.dtype}")
    n_batch, nse = indices.ndim - 1, indices.shape[-1]
    n_dense = len(shape) - n_batch - 2
    fits = lambda x: all(n in (1, m) for n, m in zip(x.shape[:n_batch], shape, strict=False))
    if not fits(indices):
        raise ValueError(f"indices batch dimensions not compatible for {indices.shape=}, {shape=}")
    if not fits(indptr):
        raise ValueError(f"indptr batch dimensions not compatible for {indptr.shape=}, {shape=}")
    if n_dense < 0 or data.ndim - indices.ndim != n_dense:
        n_sparse = len(shape) - n_batch - max(data.ndim - indices.ndim, 0)
        raise ValueError(f"BCSR array must have 2 sparse dimensions; {n_sparse} is given.")
    if tuple(indptr.shape[n_batch:]) != (shape[n_batch] + 1,):
        raise ValueError("indptr shape must match the matrix shape plus 1.")
    if not fits(data):
        raise ValueError(f"data batch dimensions not compatible for {data.shape=}, {shape=}")
    if tuple(data.shape[n_batch:]) != (nse, *shape[n_batch + 2 :]):
        raise ValueError(f"Invalid {data.shape=} for {nse=}, {n_batch=}, {n_dense=}")
    return n_batch, n_dense, nse


# --- the class --------------------------------------------------------------------------------------------------------


@register_pytree_node_class
class BCSR(JAXSparse):
    """A sparse array in batched compressed row format.

    Args:
      args: ``data`` of shape ``[*batch, nse, *dense]``, columns as ``indices`` of shape ``[*batch, nse]``, and
        ``indptr`` of shape ``[*batch, rows + 1]``: where the elements of each row begin.
      shape: ``[*batch, rows, columns, *dense]``.
      indices_sorted, unique_indices: what is promised of ``indices``.

    Raises:
      ValueError: the shapes don't fit.

    >>> mat = BCSR.fromdense(np.array([[0., 2., 0.], [1., 0., 4.]], np.float32))
    >>> mat
    BCSR(float32[2, 3], nse=3)
    >>> mat.indptr.tolist(), mat.indices.tolist()
    ([0, 1, 3], [1, 0, 2])
    """

    data: Any
    indices: Any
    indptr: Any
    indices_sorted: bool
    unique_indices: bool

    def __init__(
        self, args: Any, *, shape: Sequence[int], indices_sorted: bool = False, unique_indices: bool = False
    ) -> None:
        self.data, self.indices, self.indptr = map(jnp.asarray, args)
        self.indices_sorted, self.unique_indices = indices_sorted, unique_indices
        super().__init__(args, shape=shape)
        check_bcsr(self.data, self.indices, self.indptr, self.shape)

    @property
    def _info(self) -> SparseInfo:
        return SparseInfo(self.shape, self.indices_sorted, self.unique_indices)

    @property
    def _bufs(self) -> tuple[Any, Any, Any]:
        return self.data, self.indices, self.indptr

    @property
    def nse(self) -> int:
        return self.indices.shape[-1]

    @property
    def n_batch(self) -> int:
        return self.indices.ndim - 1

    @property
    def n_sparse(self) -> int:
        return 2

    @property
    def n_dense(self) -> int:
        return self.data.ndim - self.indices.ndim

    def _counts(self) -> str:
        counts = {"nse": self.nse, "n_batch": self.n_batch, "n_dense": self.n_dense}
        return "".join([f", {name}={n}" for name, n in counts.items() if n or name == "nse"])

    def tree_flatten(self) -> tuple[Any, SparseInfo]:
        return self._bufs, self._info

    @classmethod
    def tree_unflatten(cls, aux_data: Any, children: Any) -> BCSR:
        new = object.__new__(cls)
        new.data, new.indices, new.indptr = children
        new.shape, new.indices_sorted, new.unique_indices = aux_data
        return new

    @classmethod
    def fromdense(
        cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32, n_dense: int = 0, n_batch: int = 0
    ) -> BCSR:
        """That of a dense array; see ``bcsr_fromdense``."""
        return bcsr_fromdense(mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch)

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> BCSR:
        """That of a ``BCOO`` with two sparse dimensions."""
        if arr.n_sparse != 2:
            raise NotImplementedError(f"BSCR.from_bcoo requires n_sparse=2; got {arr.n_sparse=}")
        arr = arr if arr.indices_sorted else arr.sort_indices()
        bufs = _compressed(arr.indices, arr.shape, arr.indices.dtype)
        return cls((arr.data, *bufs), shape=arr.shape)

    @classmethod
    def from_scipy_sparse(cls, mat: Any, *, index_dtype: Any = None, n_dense: int = 0, n_batch: int = 0) -> BCSR:
        """That of a matrix of ``scipy.sparse``."""
        if n_dense != 0 or n_batch != 0:
            raise NotImplementedError("BCSR from_scipy_sparse with nonzero n_dense/n_batch.")
        if mat.ndim != 2:
            raise ValueError(f"BCSR from_scipy_sparse requires 2D array; {mat.ndim}D is given.")
        mat = mat.tocsr()
        indices, indptr = (jnp.asarray(x.astype(index_dtype or np.int32)) for x in (mat.indices, mat.indptr))
        return cls((jnp.asarray(mat.data), indices, indptr), shape=mat.shape)

    @classmethod
    def _empty(
        cls,
        shape: Sequence[int],
        *,
        dtype: Any = None,
        index_dtype: Any = "int32",
        n_dense: int = 0,
        n_batch: int = 0,
        nse: int = 0,
    ) -> BCSR:
        shape = tuple(shape)
        if min(n_dense, n_batch, nse) < 0:
            raise ValueError(f"Invalid inputs: {shape=}, {n_dense=}, {n_batch=}, {nse=}")
        if len(shape) - n_dense - n_batch != 2:
            raise ValueError("BCSR sparse.empty: must have 2 sparse dimensions.")
        batch, (rows, cols), dense = shape[:n_batch], shape[n_batch : n_batch + 2], shape[n_batch + 2 :]
        indices = jnp.full((*batch, nse), cols, index_dtype)
        bufs = jnp.zeros((*batch, nse, *dense), dtype), indices, jnp.zeros((*batch, rows + 1), index_dtype)
        return cls(bufs, shape=shape)

    def to_bcoo(self) -> BCOO:
        """The same array as ``BCOO``."""
        return BCOO((self.data, _coordinates(self.indices, self.indptr, self.shape)), shape=self.shape)

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCSR:
        """The same array with indices that differ; see ``BCOO.sum_duplicates``."""
        keep = bcoo_eliminate_zeros if remove_zeros else bcoo_sum_duplicates
        return BCSR.from_bcoo(keep(self.to_bcoo(), nse=nse))

    def todense(self) -> Any:
        """The dense array."""
        return bcsr_todense(self)

    def transpose(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("Transpose is not implemented.")


def _one_of_batch(mat: BCSR, axis: int) -> BCSR:
    n_batch = mat.n_batch + 1
    if not 0 <= axis < n_batch:
        raise ValueError(
            f"Cannot map in_axis={axis} for BCSR array with n_batch={n_batch}. "
            "in_axes for batched BCSR operations must correspond to a batched dimension."
        )
    return BCSR(mat._bufs, shape=(*mat.shape[:axis], *mat.shape[axis + 1 :]))


def _all_of_batch(mat: BCSR, axis: int, size: int) -> BCSR:
    n_batch = mat.n_batch - 1
    if not 0 <= axis <= n_batch:
        raise ValueError(
            f"BCSR: cannot add out_axis={axis} for BCSR array with n_batch={n_batch}. "
            "BCSR batch axes must be a contiguous block of leading dimensions."
        )
    return BCSR(mat._bufs, shape=(*mat.shape[:axis], size, *mat.shape[axis:]))


register_vmappable(BCSR, _one_of_batch, _all_of_batch)


# --- dense ------------------------------------------------------------------------------------------------------------

_TRACED_NSE = """
The error arose for the nse argument of bcsr_fromdense. In order for
BCSR.fromdense() to be used in traced/compiled code, you must pass a concrete
value to the nse (number of stored elements) argument.
"""


def _fromdense(mat: Any, *, nse: int, n_batch: int, n_dense: int, index_dtype: Any) -> list[Any]:
    if mat.ndim - n_batch - n_dense != 2:
        raise ValueError("bcsr_fromdense: must have 2 sparse dimensions.")
    coo = bcoo_fromdense(mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype)
    return [coo.data, *_compressed(coo.indices, mat.shape, index_dtype)]


def _todense(data: Any, indices: Any, indptr: Any, *, spinfo: SparseInfo) -> list[Any]:
    check_bcsr(data, indices, indptr, spinfo.shape)
    return [todense_of(data, _coordinates(indices, indptr, spinfo.shape), SparseInfo(spinfo.shape))]


def _extract(indices: Any, indptr: Any, mat: Any) -> list[Any]:
    return [extract_at(_coordinates(indices, indptr, mat.shape), mat)]


def _dot_general(
    data: Any,
    indices: Any,
    indptr: Any,
    rhs: Any,
    *,
    dimension_numbers: Any,
    preferred_element_type: Any,
    lhs_spinfo: SparseInfo,
) -> list[Any]:
    check_bcsr(data, indices, indptr, lhs_spinfo.shape)
    params = {"dimension_numbers": dimension_numbers, "preferred_element_type": preferred_element_type}
    places = _coordinates(indices, indptr, lhs_spinfo.shape)
    return bcoo_dot_general_p.bind_all(data, places, rhs, lhs_spinfo=lhs_spinfo, **params)


bcsr_fromdense_p = composed("bcsr_fromdense", _fromdense, several=True)
bcsr_todense_p = composed("bcsr_todense", _todense)
bcsr_extract_p = composed("bcsr_extract", _extract)
bcsr_dot_general_p = composed("bcsr_dot_general", _dot_general)


def bcsr_fromdense(
    mat: Any, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0, index_dtype: Any = np.int32
) -> BCSR:
    """The sparse form of a dense array, as ``bcoo_fromdense``.

    Raises:
      ValueError: there are other than two sparse dimensions.
    """
    mat = jnp.asarray(mat)
    count = concrete(count_stored(mat, n_batch, n_dense) if nse is None else nse, _TRACED_NSE)
    params = {"nse": count, "n_batch": n_batch, "n_dense": n_dense, "index_dtype": np.dtype(index_dtype)}
    return BCSR(bcsr_fromdense_p.bind(mat, **params), shape=mat.shape)


def bcsr_todense(mat: BCSR) -> Any:
    """The dense array that ``mat`` stands for."""
    return bcsr_todense_p.bind1(*mat._bufs, spinfo=mat._info)


def bcsr_extract(indices: Any, indptr: Any, mat: Any) -> Any:
    """The elements of a dense array at the places that ``indices`` and ``indptr`` of a ``BCSR`` tell."""
    return bcsr_extract_p.bind1(jnp.asarray(indices), jnp.asarray(indptr), jnp.asarray(mat))


def bcsr_sum_duplicates(mat: BCSR, nse: int | None = None) -> BCSR:
    """``mat`` with indices that differ, in order; see ``bcoo_sum_duplicates``."""
    return mat.sum_duplicates(nse=nse, remove_zeros=False)


def bcsr_dot_general(
    lhs: Any,
    rhs: Any,
    *,
    dimension_numbers: Any,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Any:
    """``lax.dot_general`` of a ``BCSR`` with a dense array.

    Args:
      precision, out_sharding: without effect.

    Raises:
      NotImplementedError: ``rhs`` is sparse.
    """
    dims = dot_dims(dimension_numbers)
    dtype = None if preferred_element_type is None else np.dtype(preferred_element_type)
    if is_array_like(rhs):
        params: dict[str, Any] = {"dimension_numbers": dims, "preferred_element_type": dtype}
        if isinstance(lhs, BCSR):
            return bcsr_dot_general_p.bind1(*lhs._bufs, jnp.asarray(rhs), lhs_spinfo=lhs._info, **params)
        if is_array_like(lhs):
            return lax.dot_general(lhs, rhs, **params)
    raise NotImplementedError("bcsr_dot_general currently implemented for BCSR lhs and ndarray rhs.")


def bcsr_broadcast_in_dim(
    mat: BCSR, *, shape: Sequence[int], broadcast_dimensions: Sequence[int], sharding: Any = None
) -> BCSR:
    """``lax.broadcast_in_dim``; see ``bcoo_broadcast_in_dim``."""
    found = bcoo_broadcast_in_dim(mat.to_bcoo(), shape=shape, broadcast_dimensions=broadcast_dimensions)
    return BCSR.from_bcoo(found)


def bcsr_concatenate(operands: Sequence[BCSR], *, dimension: int) -> BCSR:
    """``lax.concatenate``; see ``bcoo_concatenate``."""
    return BCSR.from_bcoo(bcoo_concatenate([mat.to_bcoo() for mat in operands], dimension=dimension))
