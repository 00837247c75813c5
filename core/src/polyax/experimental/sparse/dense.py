"""Between dense arrays and the arrays that a ``BCOO`` consists of."""

from __future__ import annotations

from typing import Any

from polyax import numpy as jnp
from polyax.experimental.sparse.composed import composed
from polyax.experimental.sparse.layout import (
    SparseInfo,
    check_bcoo,
    check_indices,
    columns,
    over_batches,
    sparse_sizes,
)
from polyax.experimental.sparse.order import first_of_equals


def count_stored(mat: Any, n_batch: int, n_dense: int) -> Any:
    """How many elements are to be stored of each batch: the most that any has."""
    return _stored(mat, n_dense).sum(tuple(range(n_batch, mat.ndim - n_dense))).max(initial=0)


def _stored(mat: Any, n_dense: int) -> Any:
    mask = mat != 0
    return mask.any(tuple(range(mat.ndim - n_dense, mat.ndim))) if n_dense else mask


# --- to dense ---------------------------------------------------------------------------------------------------------


def _todense(data: Any, indices: Any, *, spinfo: SparseInfo) -> list[Any]:
    props = check_bcoo(data, indices, spinfo.shape)
    batch, *rest = props.split(spinfo.shape)

    def scatter(values: Any, places: Any) -> Any:
        if not props.n_sparse:
            return values.sum(0, dtype=values.dtype)
        return jnp.zeros((*rest[0], *rest[1]), values.dtype).at[columns(places)].add(values, mode="drop")

    return [over_batches(scatter, batch)(data, indices)]


bcoo_todense_p = composed("bcoo_todense", _todense)


def todense_of(data: Any, indices: Any, spinfo: SparseInfo) -> Any:
    """The array that ``data`` at ``indices`` stand for."""
    return bcoo_todense_p.bind1(data, indices, spinfo=spinfo)


# --- values at indices ------------------------------------------------------------------------------------------------


def _extract(indices: Any, arr: Any, *, assume_unique: bool) -> list[Any]:
    props = check_indices(indices, arr.shape)
    batch, sizes, _ = props.split(arr.shape)

    def gather(places: Any, values: Any) -> Any:
        if props.n_sparse:
            found = values.at[columns(places)].get(mode="fill", fill_value=0)
        else:
            found = jnp.broadcast_to(values, (props.nse, *values.shape))
        if assume_unique:
            return found
        once = first_of_equals(places, sizes)
        return jnp.where(once.reshape(-1, *(1,) * props.n_dense), found, 0)

    return [over_batches(gather, batch)(indices, arr)]


bcoo_extract_p = composed("bcoo_extract", _extract)


def extract_at(indices: Any, arr: Any, assume_unique: bool = True) -> Any:
    """The elements of ``arr`` at ``indices``; without ``assume_unique`` only at the first of equal ones, else 0."""
    return bcoo_extract_p.bind1(indices, arr, assume_unique=bool(assume_unique))


# --- from dense -------------------------------------------------------------------------------------------------------


def _fromdense(mat: Any, *, nse: int, n_batch: int, n_dense: int, index_dtype: Any) -> list[Any]:
    sizes = mat.shape[n_batch : mat.ndim - n_dense]
    mask = _stored(mat, n_dense)

    def places(stored: Any) -> Any:
        if not sizes:
            return jnp.zeros((nse, 0), index_dtype)
        return jnp.stack(jnp.nonzero(stored, size=nse, fill_value=sizes), -1).astype(index_dtype)

    def found(stored: Any) -> Any:
        count = stored.sum() if sizes else 1  # the one place that there is holds a zero too, which has a derivative
        return jnp.arange(nse) < count

    batch = mat.shape[:n_batch]
    indices = over_batches(places, batch)(mask)
    data = extract_at(indices, mat)
    there = over_batches(found, batch)(mask).reshape(*data.shape[: n_batch + 1], *(1,) * n_dense)
    return [jnp.where(there, data, 0), indices]


bcoo_fromdense_p = composed("bcoo_fromdense", _fromdense, several=True)


# --- without zeros ----------------------------------------------------------------------------------------------------


def without_zeros(data: Any, indices: Any, spinfo: SparseInfo) -> Any:
    """``indices`` that point nowhere where ``data`` is 0."""
    props = check_bcoo(data, indices, spinfo.shape)
    zero = (data == 0).all(tuple(range(props.n_batch + 1, data.ndim)))
    shared = tuple([d for d in range(props.n_batch) if indices.shape[d] == 1])
    zero = zero.all(shared, keepdims=True) if shared else zero
    return jnp.where(zero[..., None], sparse_sizes(spinfo.shape, indices), indices)
