"""``BCOO``: sparse arrays as stored elements and their indices, batch dimensions in front and dense ones behind."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from polyax import numpy as jnp
from polyax.experimental.sparse.base import JAXSparse, SparseEfficiencyError, SparseEfficiencyWarning
from polyax.experimental.sparse.dense import bcoo_fromdense_p, count_stored, extract_at, todense_of, without_zeros
from polyax.experimental.sparse.layout import SparseInfo, check_bcoo, concrete, sparse_sizes
from polyax.experimental.sparse.order import bcoo_sort_indices_p, bcoo_sum_duplicates_p, count_different
from polyax.experimental.sparse.relayout import (
    bcoo_transpose_p,
    fewer_batch,
    fewer_dense,
    more_batch,
    more_dense,
    split_permutation,
)
from polyax.lax import lenient as lax
from polyax.trace.register import register_pytree_node_class
from polyax.trace.tracer import Tracer
from polyax.transforms.containers import register_vmappable


@register_pytree_node_class
class BCOO(JAXSparse):
    """A sparse array in batched coordinate format.

    Args:
      args: ``data`` of shape ``[*batch, nse, *dense]``, and ``indices`` of shape ``[*batch, nse, n_sparse]``. Batch
        dimensions of 1 go with all sizes. Elements with equal indices are added up; indices beyond the shape point
        nowhere.
      shape: ``[*batch, *sparse, *dense]``.
      indices_sorted: whether indices are promised to be in lexicographic order.
      unique_indices: whether they are promised to differ.

    Raises:
      ValueError: the shapes don't fit.

    >>> import polyax.numpy as jnp
    >>> mat = BCOO.fromdense(jnp.array([[0., 2., 0.], [1., 0., 4.]]))
    >>> mat
    BCOO(float32[2, 3], nse=3)
    >>> mat.indices.tolist()
    [[0, 1], [1, 0], [1, 2]]
    >>> mat.todense().tolist()
    [[0.0, 2.0, 0.0], [1.0, 0.0, 4.0]]
    """

    data: Any
    indices: Any
    indices_sorted: bool
    unique_indices: bool

    def __init__(
        self, args: Any, *, shape: Sequence[int], indices_sorted: bool = False, unique_indices: bool = False
    ) -> None:
        self.data, self.indices = map(jnp.asarray, args)
        self.indices_sorted, self.unique_indices = indices_sorted, unique_indices
        super().__init__(args, shape=shape)
        check_bcoo(self.data, self.indices, self.shape)

    @property
    def _info(self) -> SparseInfo:
        return SparseInfo(self.shape, self.indices_sorted, self.unique_indices)

    @property
    def _bufs(self) -> tuple[Any, Any]:
        return self.data, self.indices

    @property
    def nse(self) -> int:
        return self.indices.shape[-2]

    @property
    def n_batch(self) -> int:
        return self.indices.ndim - 2

    @property
    def n_sparse(self) -> int:
        return self.indices.shape[-1]

    @property
    def n_dense(self) -> int:
        return self.data.ndim - 1 - self.n_batch

    def _counts(self) -> str:
        counts = {"nse": self.nse, "n_batch": self.n_batch, "n_dense": self.n_dense}
        return "".join([f", {name}={n}" for name, n in counts.items() if n or name == "nse"])

    def tree_flatten(self) -> tuple[Any, SparseInfo]:
        return (self.data, self.indices), self._info

    @classmethod
    def tree_unflatten(cls, aux_data: Any, children: Any) -> BCOO:
        new = object.__new__(cls)
        new.data, new.indices = children
        new.shape, new.indices_sorted, new.unique_indices = aux_data
        return new

    @classmethod
    def fromdense(
        cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32, n_dense: int = 0, n_batch: int = 0
    ) -> BCOO:
        """That of a dense array; see ``bcoo_fromdense``."""
        return bcoo_fromdense(mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch)

    @classmethod
    def from_scipy_sparse(cls, mat: Any, *, index_dtype: Any = None, n_dense: int = 0, n_batch: int = 0) -> BCOO:
        """That of a matrix of ``scipy.sparse``."""
        if n_dense != 0 or n_batch != 0:
            raise NotImplementedError("BCOO.fromscipy with nonzero n_dense/n_batch")
        mat = mat.tocoo()
        indices = np.stack((mat.row, mat.col), -1).astype(index_dtype or np.int32)
        return cls((jnp.asarray(mat.data), jnp.asarray(indices)), shape=mat.shape)

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
    ) -> BCOO:
        shape = tuple(shape)
        n_sparse = len(shape) - n_dense - n_batch
        if min(n_sparse, n_dense, n_batch, nse) < 0:
            raise ValueError(f"Invalid inputs: {shape=}, {n_dense=}, {n_batch=}, {nse=}")
        batch, sizes, dense = shape[:n_batch], shape[n_batch : n_batch + n_sparse], shape[n_batch + n_sparse :]
        data = jnp.zeros((*batch, nse, *dense), dtype)
        indices = jnp.broadcast_to(jnp.array(sizes, index_dtype), (*batch, nse, n_sparse))
        return cls((data, indices), shape=shape, indices_sorted=True, unique_indices=True)

    @classmethod
    def _eye(
        cls,
        N: int,
        M: int,
        k: int,
        *,
        dtype: Any = None,
        index_dtype: Any = "int32",
        n_batch: int = 0,
        n_dense: int = 0,
    ) -> BCOO:
        if min(2 - n_batch - n_dense, n_dense, n_batch) < 0:
            raise ValueError(f"Invalid inputs: shape={(N, M)}, {n_dense=}, {n_batch=}")
        count = min(N, M - k) if k > 0 else min(N + k, M)
        kinds = {"index_dtype": index_dtype, "n_batch": n_batch, "n_dense": n_dense}
        if count <= 0:
            return cls._empty((N, M), dtype=dtype, **kinds)
        if n_batch or n_dense:
            nse = 1 if n_batch + n_dense < 2 and not n_dense else None
            return cls.fromdense(jnp.eye(N, M, k, dtype=dtype), nse=nse, **kinds)
        along = np.arange(count)
        indices = np.stack((along - min(k, 0), along + max(k, 0)), -1).astype(index_dtype)
        data = jnp.ones(count, dtype)
        return cls((data, jnp.asarray(indices)), shape=(N, M), indices_sorted=True, unique_indices=True)

    def update_layout(
        self, *, n_batch: int | None = None, n_dense: int | None = None, on_inefficient: str | None = "error"
    ) -> BCOO:
        """The same array with other numbers of batch and dense dimensions; see ``bcoo_update_layout``."""
        return bcoo_update_layout(self, n_batch=n_batch, n_dense=n_dense, on_inefficient=on_inefficient)

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCOO:
        """The same array with indices that differ, in order.

        Args:
          nse: how many elements to store; needed where the array is traced. More than there are is filled up, what is
            beyond it is dropped.
          remove_zeros: whether stored zeros go, which has no derivative.
        """
        return bcoo_eliminate_zeros(self, nse=nse) if remove_zeros else bcoo_sum_duplicates(self, nse=nse)

    def sort_indices(self) -> BCOO:
        """The same array with indices in lexicographic order."""
        return bcoo_sort_indices(self)

    def todense(self) -> Any:
        """The dense array."""
        return bcoo_todense(self)

    def transpose(self, axes: Sequence[int] | None = None) -> BCOO:
        """With dimensions in another order, or in reverse."""
        order = list(range(self.ndim)[::-1] if axes is None else axes)
        mat = bcoo_transpose(self, permutation=order)
        sparse = order[self.n_batch : self.n_batch + self.n_sparse]
        mat.indices_sorted = self.indices_sorted and sparse == sorted(sparse)
        return mat


def _one_of_batch(mat: BCOO, axis: int) -> BCOO:
    """``mat``, whose arrays are those of one example, with the shape of one."""
    n_batch = mat.n_batch + 1
    if not 0 <= axis < n_batch:
        raise ValueError(
            f"Cannot map in_axis={axis} for BCOO array with n_batch={n_batch}. "
            "in_axes for batched BCOO operations must correspond to a batch dimension."
        )
    shape = (*mat.shape[:axis], *mat.shape[axis + 1 :])
    return BCOO(mat._bufs, shape=shape, indices_sorted=mat.indices_sorted, unique_indices=mat.unique_indices)


def _all_of_batch(mat: BCOO, axis: int, size: int) -> BCOO:
    n_batch = mat.n_batch - 1
    if not 0 <= axis <= n_batch:
        raise ValueError(
            f"BCOO: cannot add out_axis={axis} for BCOO array with n_batch={n_batch}. "
            "BCOO batch axes must be a contiguous block of leading dimensions."
        )
    shape = (*mat.shape[:axis], size, *mat.shape[axis:])
    return BCOO(mat._bufs, shape=shape, indices_sorted=mat.indices_sorted, unique_indices=mat.unique_indices)


register_vmappable(BCOO, _one_of_batch, _all_of_batch)

_TRACED_NSE = """
The error arose for the nse argument of bcoo_fromdense. In order for
BCOO.fromdense() to be used in traced/compiled code, you must pass a concrete
value to the nse (number of stored elements) argument.
"""


def bcoo_fromdense(
    mat: Any, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0, index_dtype: Any = np.int32
) -> BCOO:
    """The sparse form of a dense array.

    Args:
      nse: how many elements to store of each batch; by default as many as are not 0.
      n_batch, n_dense: how many dimensions are batch dimensions, and dense ones.

    Raises:
      ConcretizationTypeError: ``nse`` isn't given, and the array is traced.
      ValueError: the array has fewer dimensions.
    """
    mat = jnp.asarray(mat)
    if min(n_batch, n_dense, mat.ndim - n_batch - n_dense) < 0:
        raise ValueError(f"bcoo_fromdense: {n_batch=} and {n_dense=} of an array with {mat.ndim} dimensions")
    count = concrete(count_stored(mat, n_batch, n_dense) if nse is None else nse, _TRACED_NSE)
    params = {"nse": count, "n_batch": n_batch, "n_dense": n_dense, "index_dtype": np.dtype(index_dtype)}
    bufs = bcoo_fromdense_p.bind(mat, **params)
    return BCOO(bufs, shape=mat.shape, indices_sorted=True, unique_indices=True)


def bcoo_todense(mat: BCOO) -> Any:
    """The dense array that ``mat`` stands for."""
    return todense_of(mat.data, mat.indices, mat._info)


def bcoo_extract(sparr: Any, arr: Any, *, assume_unique: bool | None = None) -> BCOO:
    """The elements of a dense array at the indices of a sparse one.

    Args:
      assume_unique: whether indices are taken to differ, as ``sparr`` says by default; else the first of equal ones
        has the element, and the others 0.

    Raises:
      TypeError: ``sparr`` is no ``BCOO``.
      ValueError: the shapes differ.
    """
    if not isinstance(sparr, BCOO):
        raise TypeError(f"First argument to bcoo_extract should be a BCOO array. Got {type(sparr)=}")
    a = jnp.asarray(arr)
    if a.shape != sparr.shape:
        raise ValueError(f"shape mismatch: {sparr.shape=} {a.shape=}")
    unique = sparr.unique_indices if assume_unique is None else assume_unique
    return BCOO((extract_at(sparr.indices, a, unique), sparr.indices), **sparr._info._asdict())


def bcoo_sort_indices(mat: BCOO) -> BCOO:
    """``mat`` with indices in lexicographic order."""
    bufs = bcoo_sort_indices_p.bind(*mat._bufs, spinfo=mat._info)
    return BCOO(bufs, shape=mat.shape, indices_sorted=True, unique_indices=mat.unique_indices)


def bcoo_sum_duplicates(mat: BCOO, nse: int | None = None) -> BCOO:
    """``mat`` with indices that differ, in order.

    Args:
      nse: how many elements to store; by default as many as indices differ.

    Raises:
      ValueError: ``nse`` isn't given, and the indices are traced.
    """
    bufs = bcoo_sum_duplicates_p.bind(*mat._bufs, spinfo=mat._info, nse=_count_to_keep(mat, nse))
    return BCOO(bufs, shape=mat.shape, indices_sorted=True, unique_indices=True)


def _count_to_keep(mat: BCOO, nse: int | None) -> int:
    if nse is not None:
        return concrete(nse, "nse argument of bcoo_sum_duplicates.")
    if isinstance(mat.indices, Tracer):
        raise ValueError(
            "bcoo_sum_duplicates: nse must be specified when using the function within "
            "jit, vmap, and other transformations requiring abstract evaluation."
        )
    return int(count_different(mat.indices, mat.shape))


def bcoo_eliminate_zeros(mat: BCOO, nse: int | None = None) -> BCOO:
    """``mat`` without stored zeros, its indices different and in order."""
    indices = without_zeros(mat.data, mat.indices, mat._info)
    return bcoo_sum_duplicates(BCOO((mat.data, indices), shape=mat.shape), nse=nse)


def bcoo_transpose(mat: BCOO, *, permutation: Sequence[int]) -> BCOO:
    """``mat`` with its dimensions in the order of ``permutation``, which keeps dimensions of a kind together.

    Raises:
      TypeError: it is no permutation.
      NotImplementedError: it mixes dimensions of different kinds.
    """
    split_permutation(permutation, check_bcoo(mat.data, mat.indices, mat.shape), mat.shape)
    order = tuple([int(p) for p in permutation])
    same = order == tuple(range(mat.ndim))
    bufs = mat._bufs if same else bcoo_transpose_p.bind(*mat._bufs, permutation=order, spinfo=mat._info)
    return BCOO(bufs, shape=tuple([mat.shape[p] for p in order]), unique_indices=mat.unique_indices)


def bcoo_update_layout(
    mat: BCOO, *, n_batch: int | None = None, n_dense: int | None = None, on_inefficient: str | None = "error"
) -> BCOO:
    """The same array with other numbers of batch and dense dimensions.

    More of them store many zeros, unless their sizes are 0 or 1.

    Args:
      n_batch, n_dense: how many there are to be; by default as many as there are.
      on_inefficient: what to do where zeros would be stored: 'error', 'warn' or None.

    Raises:
      SparseEfficiencyError: zeros would be stored.
      ValueError: there are no such dimensions.
    """
    n_batch = mat.n_batch if n_batch is None else operator.index(n_batch)
    n_dense = mat.n_dense if n_dense is None else operator.index(n_dense)
    if (n_batch, n_dense) == (mat.n_batch, mat.n_dense):
        return mat
    _check_layout(mat, n_batch, n_dense, on_inefficient)
    data, indices, shape = mat.data, mat.indices, mat.shape
    if n_dense < mat.n_dense:
        data, indices = fewer_dense(data, indices, mat.n_dense - n_dense)
    if n_batch < mat.n_batch:
        data, indices = fewer_batch(data, indices, shape[n_batch : mat.n_batch], n_batch)
    if n_dense > mat.n_dense:
        data, indices = more_dense(data, indices, shape[len(shape) - n_dense : len(shape) - mat.n_dense])
    if n_batch > mat.n_batch:
        data, indices = more_batch(data, indices, shape[mat.n_batch : n_batch])
    return BCOO((data, indices), shape=shape)


def _check_layout(mat: BCOO, n_batch: int, n_dense: int, on_inefficient: str | None) -> None:
    if on_inefficient not in ("error", "warn", None):
        raise ValueError(f"{on_inefficient=}; expected one of ['error', 'warn', None].")
    for name, count in (("n_batch", n_batch), ("n_dense", n_dense)):
        if count < 0:
            raise ValueError(f"{name} must be non-negative; got {count}")
    if n_batch + n_dense > mat.ndim:
        raise ValueError(f"sum of {n_batch=} and {n_dense=} cannot be larger than mat.ndim={mat.ndim}.")
    dense = mat.shape[mat.ndim - n_dense : mat.ndim - mat.n_dense]
    for name, before, after, new in (
        ("n_dense", mat.n_dense, n_dense, dense),
        ("n_batch", mat.n_batch, n_batch, mat.shape[mat.n_batch : n_batch]),
    ):
        if after > before and any(n > 1 for n in new):
            _complain(
                f"For matrix of shape {mat.shape}, increasing {name} from {before} to {after} results in "
                "inefficient storage.",
                on_inefficient,
            )


def _complain(text: str, on_inefficient: str | None) -> None:
    if on_inefficient == "error":
        raise SparseEfficiencyError(
            f"{text} To disable this error, set the on_inefficient argument of bcoo_update_layout to 'warn' or None."
        )
    if on_inefficient == "warn":
        text += " To disable this warning, set the on_inefficient argument of bcoo_update_layout to None."
        warnings.warn(text, SparseEfficiencyWarning, stacklevel=4)


def with_nse(mat: BCOO, nse: int) -> BCOO:
    """``mat`` with so many stored elements: cut, or filled up with such that point nowhere."""
    if nse == mat.nse:
        return mat
    n_batch, more = mat.n_batch, nse - mat.nse
    if more < 0:
        data = lax.slice_in_dim(mat.data, 0, nse, axis=n_batch)
        return BCOO((data, mat.indices[..., :nse, :]), **mat._info._asdict())
    sizes = sparse_sizes(mat.shape, mat.indices)
    nowhere = jnp.broadcast_to(sizes, (*mat.indices.shape[:-2], more, mat.n_sparse))
    zeros = jnp.zeros((*mat.data.shape[:n_batch], more, *mat.data.shape[n_batch + 1 :]), mat.dtype)
    bufs = jnp.concatenate([mat.data, zeros], n_batch), jnp.concatenate([mat.indices, nowhere], n_batch)
    return BCOO(bufs, **mat._info._asdict())
