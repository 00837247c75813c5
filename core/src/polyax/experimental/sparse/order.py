"""The order of stored elements: sorting by indices, and adding up those with equal ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polyax import numpy as jnp
from polyax.experimental.sparse.composed import composed
from polyax.experimental.sparse.layout import SparseInfo, as_row, check_bcoo, columns, common_batch, over_batches
from polyax.lax import lenient as lax


def _sorted(indices: Any) -> tuple[Any, Any]:
    """Rows of indices in lexicographic order, and that order."""
    nse, n_sparse = indices.shape
    order = lax.iota(np.int32, nse)
    if not n_sparse:
        return indices, order
    *sorted_columns, order = lax.sort((*columns(indices), order), num_keys=n_sparse)
    return jnp.stack(sorted_columns, -1), order


def _groups(indices: Any, sizes: Sequence[int]) -> tuple[Any, Any, Any, Any]:
    """Rows in order, that order, which of them are the first of equal ones, and which point into the array.

    Rows that don't come last.
    """
    outside = as_row(sizes, indices)
    inside = (indices < outside).all(-1)
    rows, order = _sorted(jnp.where(inside[:, None], indices, outside))
    inside = inside[order]
    changes = (rows[1:] != rows[:-1]).any(-1)
    first = jnp.concatenate([jnp.ones(min(1, len(rows)), bool), changes]) & inside
    return rows, order, first, inside


def first_of_equals(indices: Any, sizes: Sequence[int]) -> Any:
    """For each row of indices whether it is the first of its kind."""
    _, order, first, _ = _groups(indices, sizes)
    return jnp.zeros(len(order), bool).at[order].set(first)


def count_different(indices: Any, shape: Sequence[int]) -> Any:
    """How many different rows the batch with the most has, without those that point nowhere."""
    n_batch, n_sparse = indices.ndim - 2, indices.shape[-1]
    if not n_sparse:
        return 1
    sizes = shape[n_batch : n_batch + n_sparse]
    counts = over_batches(lambda i: _groups(i, sizes)[2].sum(), indices.shape[:n_batch])(indices)
    return counts.max(initial=0)


def _sum_duplicates(data: Any, indices: Any, *, spinfo: SparseInfo, nse: int) -> list[Any]:
    props = check_bcoo(data, indices, spinfo.shape)
    n_batch, sizes = props.n_batch, props.split(spinfo.shape)[1]

    def rows_and_places(places: Any) -> tuple[Any, Any, Any]:
        rows, order, first, inside = _groups(places, sizes)
        slots = jnp.where(inside, jnp.cumsum(first) - 1, max(nse, props.nse)).astype(np.int32)
        empty = jnp.broadcast_to(as_row(sizes, places), (nse, props.n_sparse))
        return empty.at[slots].set(rows, mode="drop"), order, slots

    def total(values: Any, order: Any, slots: Any) -> Any:
        return jnp.zeros((nse, *values.shape[1:]), values.dtype).at[slots].add(values[order], mode="drop")

    unique, order, slots = over_batches(rows_and_places, indices.shape[:n_batch])(indices)
    return [over_batches(total, common_batch(n_batch, data, indices))(data, order, slots), unique]


bcoo_sum_duplicates_p = composed("bcoo_sum_duplicates", _sum_duplicates, several=True)


def _sort_indices(data: Any, indices: Any, *, spinfo: SparseInfo) -> list[Any]:
    n_batch, n_sparse, _, _ = check_bcoo(data, indices, spinfo.shape)
    if not n_sparse:
        return [data, indices]
    rows, order = over_batches(_sorted, indices.shape[:n_batch])(indices)
    sizes = common_batch(n_batch, data, indices)
    return [over_batches(lambda values, o: values[o], sizes)(data, order), rows]


bcoo_sort_indices_p = composed("bcoo_sort_indices", _sort_indices, several=True)
