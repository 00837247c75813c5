"""How the arrays of a batched sparse array belong together: which dimensions are batch, sparse and dense."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from polyax import numpy as jnp
from polyax.api.vmap import vmap
from polyax.extend.core.programs import concrete_or_error
from polyax.ir.aval import ShapedArray
from polyax.lax import lenient as lax
from polyax.trace.recording import trace_to_jaxpr

Shape = tuple[int, ...]
DotDims = tuple[tuple[tuple[int, ...], tuple[int, ...]], tuple[tuple[int, ...], tuple[int, ...]]]


class SparseInfo(NamedTuple):
    """What a sparse array is, besides its numbers."""

    shape: Shape
    indices_sorted: bool = False
    unique_indices: bool = False


class BCOOProperties(NamedTuple):
    """The number of dimensions of each kind, and of stored elements."""

    n_batch: int
    n_sparse: int
    n_dense: int
    nse: int

    def split(self, values: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        """What belongs to batch, sparse and dense dimensions."""
        first, second = self.n_batch, self.n_batch + self.n_sparse
        return [*values[:first]], [*values[first:second]], [*values[second:]]


def _fits(shape: Sequence[int], full: Sequence[int]) -> bool:
    return len(shape) == len(full) and all(n in (1, m) for n, m in zip(shape, full, strict=True))


def check_indices(indices: Any, shape: Sequence[int]) -> BCOOProperties:
    """How ``indices`` of an array of that shape are laid out.

    Raises:
      ValueError: they don't fit.
    """
    shape = tuple(shape)
    if not jnp.issubdtype(indices.dtype, np.integer):
        raise ValueError(f"sparse indices must be integers, got {indices.dtype}")
    nse, n_sparse = indices.shape[-2:]
    n_batch = len(indices.shape) - 2
    n_dense = len(shape) - n_batch - n_sparse
    if n_dense < 0:
        raise ValueError(f"{indices.shape=} tells of more dimensions than {shape=} has")
    if not _fits(indices.shape[:n_batch], shape[:n_batch]):
        raise ValueError(f"indices batch dimensions not compatible for {indices.shape=}, {shape=}")
    return BCOOProperties(n_batch, n_sparse, n_dense, nse)


def check_bcoo(data: Any, indices: Any, shape: Sequence[int]) -> BCOOProperties:
    """The same of data and indices together."""
    props = n_batch, n_sparse, n_dense, nse = check_indices(indices, shape)
    shape = tuple(shape)
    if not _fits(data.shape[:n_batch], shape[:n_batch]):
        raise ValueError(f"data batch dimensions not compatible for {data.shape=}, {shape=}")
    if tuple(data.shape[n_batch:]) != (nse, *shape[n_batch + n_sparse :]):
        raise ValueError(f"Invalid {data.shape=} for {nse=}, {n_batch=}, {n_dense=}")
    return props


def columns(indices: Any) -> tuple[Any, ...]:
    """For each sparse dimension the indices along it."""
    return tuple([indices[..., k] for k in range(indices.shape[-1])])


def as_row(values: Sequence[Any], indices: Any) -> Any:
    """One value for each sparse dimension, to compare ``indices`` with; sizes are indices of what isn't there."""
    return np.array(values, indices.dtype).reshape(*(1,) * (indices.ndim - 1), len(values))


def sparse_sizes(shape: Sequence[int], indices: Any) -> Any:
    """The sizes of sparse dimensions of an array of that shape, as a row."""
    n_batch = indices.ndim - 2
    return as_row(tuple(shape)[n_batch : n_batch + indices.shape[-1]], indices)


def over_batches(fun: Callable[..., Any], sizes: Sequence[int]) -> Callable[..., Any]:
    """Maps ``fun`` over leading dimensions of these sizes, or of 1 for arguments that are the same for all."""
    for size in reversed(sizes):
        fun = _over(fun, size)
    return fun


def _over(fun: Callable[..., Any], size: int) -> Callable[..., Any]:
    def mapped(*args: Any) -> Any:
        axes = tuple([None if x.shape[0] == 1 != size else 0 for x in args])
        parts = [x if a == 0 else lax.squeeze(x, (0,)) for x, a in zip(args, axes, strict=True)]
        return vmap(fun, in_axes=axes, axis_size=size)(*parts)

    return mapped


def common_batch(n_batch: int, *arrays: Any) -> list[int]:
    """The batch sizes of arrays, where those of 1 go with all."""
    return [max(sizes) if min(sizes) else 0 for sizes in zip(*(x.shape[:n_batch] for x in arrays), strict=True)]


def concrete(value: Any, context: str) -> int:
    """``value`` as an integer; ``context`` is for the error if it is traced."""
    return concrete_or_error(lambda x: x.__index__(), value, context)


def result_of(fun: Callable[..., Any], *arrays: tuple[Sequence[int], Any]) -> ShapedArray:
    """The type of the result of ``fun``, which has one, for arrays of these shapes and dtypes."""
    avals = [ShapedArray(tuple(shape), np.dtype(dtype)) for shape, dtype in arrays]
    return trace_to_jaxpr(lambda *xs: [fun(*xs)], avals).out_avals[0]


def dot_dims(dimension_numbers: Any) -> DotDims:
    """``dimension_numbers`` of ``dot_general`` as tuples."""
    (lhs, rhs), (lhs_batch, rhs_batch) = dimension_numbers
    as_tuple = lambda dims: (int(dims),) if np.ndim(dims) == 0 else tuple(map(int, dims))
    return (as_tuple(lhs), as_tuple(rhs)), (as_tuple(lhs_batch), as_tuple(rhs_batch))


def others(dims: Sequence[int], *without: Sequence[int]) -> list[int]:
    """``dims`` that are in none of the others."""
    return [d for d in dims if not any(d in w for w in without)]


def product(sizes: Sequence[int]) -> int:
    return math.prod(sizes)
