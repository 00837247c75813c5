"""Shapes of ``BCOO``: broadcast, reshaped, squeezed, reversed."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from polyax import numpy as jnp
from polyax.experimental.sparse.bcoo import BCOO
from polyax.experimental.sparse.layout import as_row, check_bcoo, columns, product, result_of, sparse_sizes
from polyax.experimental.sparse.relayout import split_permutation
from polyax.lax import lenient as lax


def bcoo_broadcast_in_dim(
    mat: BCOO, *, shape: Sequence[int], broadcast_dimensions: Sequence[int], sharding: Any = None
) -> BCOO:
    """``lax.broadcast_in_dim``: new dimensions before the sparse ones are batch dimensions.

    Args:
      shape: that of the result.
      broadcast_dimensions: for each dimension of ``mat``, which of the result it becomes.
      sharding: without effect.

    Raises:
      ValueError: dimensions of different kinds would be mixed.
      NotImplementedError: elements would have to be stored repeatedly along sparse dimensions.
    """
    shape, dims = tuple(shape), [int(d) for d in broadcast_dimensions]
    if len(dims) != mat.ndim:
        raise ValueError(f"spinfo.shape={mat.shape} and {broadcast_dimensions=} must have the same length")
    props = check_bcoo(mat.data, mat.indices, mat.shape)
    batch, sparse, dense = props.split(dims)
    _check_kinds(batch, sparse, dense, len(shape))
    n_batch = min([*sparse, *dense], default=len(shape))
    n_dense = len(shape) - min(dense) if dense else 0
    n_sparse = len(shape) - n_batch - n_dense
    if product(props.split(mat.shape)[1]) != product(shape[n_batch : n_batch + n_sparse]):
        raise NotImplementedError("Adding sparse dimensions with lengths != 1")
    data, indices = mat.data, mat.indices
    if (n_batch, n_dense) != (props.n_batch, props.n_dense) or mat.shape[: props.n_batch] != shape[:n_batch]:
        behind = (*(d + 1 - n_sparse for d in dense),)
        data_shape = (*shape[:n_batch], props.nse, *shape[n_batch + n_sparse :])
        data = lax.broadcast_in_dim(data, data_shape, (*batch, n_batch, *behind))
        indices_shape = (*shape[:n_batch], props.nse, props.n_sparse)
        indices = lax.broadcast_in_dim(indices, indices_shape, (*batch, n_batch, n_batch + 1))
    elif mat.shape[mat.ndim - n_dense :] != shape[len(shape) - n_dense :]:
        data = jnp.broadcast_to(data, (*data.shape[: n_batch + 1], *shape[n_batch + n_sparse :]))
    return BCOO((data, _with_new_columns(indices, [d - n_batch for d in sparse], n_sparse)), shape=shape)


def _with_new_columns(indices: Any, old: list[int], count: int) -> Any:
    """``count`` columns, of which those of ``old`` are there, and others are 0."""
    if len(old) == count:
        return indices
    found = dict(zip(old, columns(indices), strict=True))
    zero = jnp.zeros(indices.shape[:-1], indices.dtype)
    return jnp.stack([found.get(k, zero) for k in range(count)], -1)


def _check_kinds(batch: list[int], sparse: list[int], dense: list[int], ndim: int) -> None:
    if max(batch, default=0) > min(sparse, default=ndim):
        raise ValueError("Cannot mix batch and sparse dimensions during broadcast_in_dim")
    if max(sparse, default=0) > min(dense, default=ndim):
        raise ValueError("Cannot mix sparse and dense dimensions during broadcast_in_dim")


def bcoo_reshape(
    mat: BCOO, *, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None, sharding: Any = None
) -> BCOO:
    """``lax.reshape``, of batch, sparse and dense dimensions each for themselves.

    Args:
      new_sizes: the shape of the result.
      dimensions: the order of dimensions to reshape in.
      sharding: without effect.

    Raises:
      ValueError: dimensions of different kinds would be mixed.
    """
    props = check_bcoo(mat.data, mat.indices, mat.shape)
    batch, sizes, _ = props.split(mat.shape)
    batch_order, sparse_order, dense_order = split_permutation(
        tuple(dimensions) if dimensions is not None else tuple(range(mat.ndim)), props, mat.shape
    )
    new = _split_sizes(mat, tuple(new_sizes), product(batch), product(sizes))
    n_batch, nse = props.n_batch, props.nse
    data, indices = (jnp.broadcast_to(x, (*batch, *x.shape[n_batch:])) for x in mat._bufs)
    data_order = (*batch_order, n_batch, *(d + n_batch + 1 for d in dense_order))
    data = lax.reshape(lax.transpose(data, data_order), (*new[0], nse, *new[2]))
    indices = lax.transpose(indices, (*batch_order, n_batch, n_batch + 1))
    indices = lax.reshape(indices, (*new[0], nse, props.n_sparse))
    indices = indices[..., np.array(sparse_order, int)]
    return BCOO((data, _renumbered(indices, [sizes[k] for k in sparse_order], new[1])), shape=tuple(new_sizes))


def _split_sizes(mat: BCOO, sizes: Sequence[int], batch_size: int, sparse_size: int) -> list[list[int]]:
    """Which of the new sizes are those of batch, sparse and dense dimensions."""
    upto = list(itertools.accumulate(sizes, operator.mul))
    text = f"got shape={mat.shape} new_shape={sizes} with"
    if batch_size != 1 and batch_size not in upto:
        raise ValueError(
            f"bcoo_reshape: new shape cannot mix batch and sparse dimensions; {text} n_batch={mat.n_batch}"
        )
    if sparse_size != 1 and batch_size * sparse_size not in upto:
        raise ValueError(
            f"bcoo_reshape: new shape cannot mix sparse and dense dimensions; {text} n_dense={mat.n_dense}"
        )
    first = int(np.searchsorted(upto, batch_size, side="right"))
    second = int(np.searchsorted(upto, batch_size * sparse_size, side="right"))
    return [[*sizes[:first]], [*sizes[first:second]], [*sizes[second:]]]


def _renumbered(indices: Any, old: Sequence[int], new: Sequence[int]) -> Any:
    """Indices into an array of shape ``old`` as such into the same elements in shape ``new``."""
    if not old and new:
        return jnp.zeros((*indices.shape[:-1], len(new)), indices.dtype)
    outside = (indices >= as_row(old, indices)).any(-1, keepdims=True)
    if not new:
        return jnp.zeros((*indices.shape[:-1], 0), indices.dtype)
    flat = jnp.zeros(indices.shape[:-1], indices.dtype)
    for column, size in zip(columns(indices), old, strict=True):
        flat = flat * size + jnp.clip(column, 0, max(size - 1, 0))
    found: list[Any] = []
    for size in reversed(new):
        found.insert(0, flat % max(size, 1))
        flat = flat // max(size, 1)
    return jnp.where(outside, as_row(new, indices), jnp.stack(found, -1))


def bcoo_squeeze(arr: BCOO, *, dimensions: Sequence[int]) -> BCOO:
    """``lax.squeeze``: without these dimensions, which are of size 1.

    Raises:
      ValueError: one isn't.
    """
    for d in dimensions:
        if not -arr.ndim <= d < arr.ndim:
            raise ValueError(f"axis {d} is out of bounds for array of dimension {arr.ndim}")
    dimensions = tuple([d % arr.ndim for d in dimensions])
    if any(arr.shape[d] != 1 for d in dimensions):
        raise ValueError(
            "cannot select an axis to squeeze out which has size not equal to one, "
            f"got shape={arr.shape} and {dimensions=}"
        )
    n_batch, n_sparse = arr.n_batch, arr.n_sparse
    batch = tuple([d for d in dimensions if d < n_batch])
    dense = tuple([d - n_sparse + 1 for d in dimensions if d >= n_batch + n_sparse])
    kept = np.array([k for k in range(n_sparse) if k + n_batch not in dimensions], int)
    indices = arr.indices
    if len(kept) < n_sparse:  # what points nowhere along a dimension that goes must do so along one that stays
        indices = _outside_everywhere(arr)[..., kept] if len(kept) else indices[..., kept]
    data = arr.data if len(kept) else _zero_outside(arr)
    bufs = lax.squeeze(data, batch + dense), lax.squeeze(indices, batch)
    shape = tuple([n for d, n in enumerate(arr.shape) if d not in dimensions])
    return BCOO(bufs, shape=shape, indices_sorted=arr.indices_sorted, unique_indices=arr.unique_indices)


def _outside(arr: BCOO) -> tuple[Any, Any]:
    sizes = sparse_sizes(arr.shape, arr.indices)
    return sizes, (arr.indices >= sizes).any(-1)


def _outside_everywhere(arr: BCOO) -> Any:
    sizes, outside = _outside(arr)
    return jnp.where(outside[..., None], sizes, arr.indices)


def _zero_outside(arr: BCOO) -> Any:
    if not arr.n_sparse:
        return arr.data
    _, outside = _outside(arr)
    return jnp.where(outside.reshape(*outside.shape, *(1,) * arr.n_dense), 0, arr.data)


def bcoo_rev(operand: BCOO, dimensions: Sequence[int]) -> BCOO:
    """``lax.rev``: with the order along these dimensions reversed."""
    dims = tuple(dimensions)
    result_of(lambda x: lax.rev(x, dims), (operand.shape, operand.dtype))
    first, second = operand.n_batch, operand.n_batch + operand.n_sparse
    data, indices = operand._bufs
    batch = [d for d in dims if d < first]
    along = [*batch, *(d + 1 - operand.n_sparse for d in dims if d >= second)]
    data = lax.rev(data, along) if along else data
    indices = lax.rev(indices, batch) if batch else indices
    turned = np.array([first + k in dims for k in range(operand.n_sparse)], bool)
    if turned.any():
        sizes = sparse_sizes(operand.shape, indices)
        outside = (indices >= sizes).any(-1, keepdims=True)
        indices = jnp.where(outside, sizes, jnp.where(turned.reshape(sizes.shape), sizes - 1 - indices, indices))
    return BCOO((data, indices), shape=operand.shape)
