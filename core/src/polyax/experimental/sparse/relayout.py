"""The same sparse array with other numbers of batch and dense dimensions, or its dimensions in another order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polyax import numpy as jnp
from polyax.experimental.sparse.composed import composed
from polyax.experimental.sparse.layout import (
    BCOOProperties,
    SparseInfo,
    check_bcoo,
    columns,
    over_batches,
    product,
)
from polyax.lax import lenient as lax


def _grid(sizes: Sequence[int], count: int, dtype: Any) -> list[Any]:
    """Coordinates of all points of a grid, with ``count`` of each, as columns in this order."""
    shape = (*sizes, count)
    return [lax.broadcasted_iota(dtype, shape, d).reshape(-1, 1) for d in range(len(sizes))]


def fewer_batch(data: Any, indices: Any, sizes: Sequence[int], n_batch: int) -> tuple[Any, Any]:
    """The batch dimensions from ``n_batch`` on, of these sizes, become sparse ones in front of the others."""
    if not sizes:
        return data, indices
    count, nse = len(sizes), indices.shape[-2]

    def flatten(values: Any, places: Any) -> Any:
        full = [jnp.broadcast_to(x, (*sizes, *x.shape[count:])) for x in (values, places)]
        values, places = (x.reshape(product(x.shape[: count + 1]), *x.shape[count + 1 :]) for x in full)
        return values, jnp.concatenate([*_grid(sizes, nse, places.dtype), places], -1)

    return _over_own(flatten, n_batch, data, indices)


def fewer_dense(data: Any, indices: Any, count: int) -> tuple[Any, Any]:
    """The first ``count`` dense dimensions become sparse ones behind the others."""
    n_batch = indices.ndim - 2
    sizes = data.shape[n_batch + 1 : n_batch + 1 + count]
    many = product(sizes)

    def flatten(values: Any, places: Any) -> Any:
        nse = places.shape[0]
        values = values.reshape(nse * many, *values.shape[1 + count :])
        own = jnp.broadcast_to(places[:, None], (nse, many, places.shape[1])).reshape(nse * many, -1)
        new = [lax.broadcasted_iota(places.dtype, (nse, *sizes), d + 1).reshape(-1, 1) for d in range(count)]
        return values, jnp.concatenate([own.reshape(nse * many, places.shape[1]), *new], -1)

    return _over_own(flatten, n_batch, data, indices)


def more_dense(data: Any, indices: Any, sizes: Sequence[int]) -> tuple[Any, Any]:
    """The last sparse dimensions, of these sizes, become dense ones in front of the others."""
    kept = indices.shape[-1] - len(sizes)

    def spread(values: Any, places: Any) -> Any:
        at = (jnp.arange(places.shape[0]), *columns(places)[kept:])
        empty = jnp.zeros((places.shape[0], *sizes, *values.shape[1:]), values.dtype)
        return empty.at[at].set(values, mode="drop"), places[:, :kept]

    return _over_own(spread, indices.ndim - 2, data, indices)


def more_batch(data: Any, indices: Any, sizes: Sequence[int]) -> tuple[Any, Any]:
    """The first sparse dimensions, of these sizes, become batch dimensions behind the others."""
    count = len(sizes)

    def spread(values: Any, places: Any) -> Any:
        nse = places.shape[0]
        at = (*columns(places)[:count], jnp.arange(nse))
        empty = jnp.zeros((*sizes, nse, *values.shape[1:]), values.dtype)
        rest = jnp.broadcast_to(places[:, count:], (*sizes, nse, places.shape[1] - count))
        return empty.at[at].set(values, mode="drop"), rest

    return _over_own(spread, indices.ndim - 2, data, indices)


def _over_own(fun: Any, n_batch: int, data: Any, indices: Any) -> tuple[Any, Any]:
    """``fun`` of each batch; those that data and indices share stay shared."""
    sizes = [max(n, m) if n and m else 0 for n, m in zip(data.shape[:n_batch], indices.shape[:n_batch], strict=True)]
    return over_batches(fun, sizes)(data, indices)


# --- transposition ----------------------------------------------------------------------------------------------------


def split_permutation(
    permutation: Any, props: BCOOProperties, shape: Sequence[int]
) -> tuple[list[int], list[int], list[int]]:
    """The permutations of batch, of sparse, and of dense dimensions, each counted from 0.

    Raises:
      TypeError: it is no permutation.
      NotImplementedError: it mixes dimensions of different kinds.
    """
    if not isinstance(permutation, (tuple, list, np.ndarray)):
        raise TypeError(f"transpose permutation must be a tuple/list/ndarray, got {type(permutation)}.")
    if sorted(permutation) != list(range(len(shape))):
        raise TypeError(
            "transpose permutation isn't a permutation of operand dimensions, "
            f"got permutation {permutation} for shape {shape}."
        )
    n_batch, n_sparse, n_dense, _ = props
    batch, sparse, dense = props.split([int(p) for p in permutation])
    sparse, dense = [p - n_batch for p in sparse], [p - n_batch - n_sparse for p in dense]
    if n_batch and sorted(batch) != list(range(n_batch)):
        raise NotImplementedError(
            "transpose permutation cannot permute batch axes with non-batch axes; "
            f"got permutation {permutation}, with {n_batch=}."
        )
    if n_dense and sorted(dense) != list(range(n_dense)):
        raise NotImplementedError(
            "transpose permutation cannot permute dense axes with non-dense axes; "
            f"got permutation {permutation}, with {n_dense=}."
        )
    return batch, sparse, dense


def _transpose(data: Any, indices: Any, *, permutation: tuple[int, ...], spinfo: SparseInfo) -> list[Any]:
    props = check_bcoo(data, indices, spinfo.shape)
    batch, sparse, dense = split_permutation(permutation, props, spinfo.shape)
    n_batch = props.n_batch
    indices = lax.transpose(indices[..., np.array(sparse, int)], (*batch, n_batch, n_batch + 1))
    return [lax.transpose(data, (*batch, n_batch, *(d + n_batch + 1 for d in dense))), indices]


bcoo_transpose_p = composed("bcoo_transpose", _transpose, several=True)
