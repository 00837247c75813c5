"""Products of sparse arrays: with dense ones, with each other, and of dense ones at given places alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyax import numpy as jnp
from polyax.api.vmap import vmap
from polyax.experimental.sparse.composed import composed
from polyax.experimental.sparse.layout import (
    BCOOProperties,
    DotDims,
    Shape,
    SparseInfo,
    check_bcoo,
    columns,
    others,
    over_batches,
    product,
    result_of,
)
from polyax.experimental.sparse.order import bcoo_sum_duplicates_p
from polyax.experimental.sparse.relayout import fewer_batch
from polyax.ir.aval import ShapedArray
from polyax.lax import lenient as lax


def _at(values: Any, places: tuple[Any, ...]) -> Any:
    """What stands at ``places`` along the first dimensions, 0 where they are outside."""
    return values.at[places].get(mode="fill", fill_value=0) if places else values


def dense_result(lhs: tuple[Shape, Any], rhs: tuple[Shape, Any], dims: DotDims, dtype: Any) -> ShapedArray:
    """The type of the product of dense arrays.

    Raises:
      TypeError: there is none, as of ``lax.dot_general``.
    """
    return result_of(lambda x, y: lax.dot_general(x, y, dimension_numbers=dims, preferred_element_type=dtype), lhs, rhs)


def moved(x: Any, order: list[int], n_batch: int) -> Any:
    """``x`` with its batch dimensions in this order."""
    return lax.transpose(x, (*order, *range(n_batch, x.ndim)))


# --- sparse with dense ------------------------------------------------------------------------------------------------


def _dot_general(
    lhs_data: Any,
    lhs_indices: Any,
    rhs: Any,
    *,
    dimension_numbers: DotDims,
    preferred_element_type: Any,
    lhs_spinfo: SparseInfo,
) -> list[Any]:
    """Batch dimensions that are summed over become sparse ones; then each batch is a product of its own."""
    shape = lhs_spinfo.shape
    props = check_bcoo(lhs_data, lhs_indices, shape)
    out = dense_result((shape, lhs_data.dtype), (rhs.shape, rhs.dtype), dimension_numbers, preferred_element_type)
    _check_dot(props, dimension_numbers)
    (left, right), (lhs_batch, rhs_batch) = dimension_numbers
    partner = dict(zip(left, right, strict=True))
    free = others(range(props.n_batch), lhs_batch, left)
    summed = [d for d in range(props.n_batch) if d in partner]
    order = [*lhs_batch, *free, *summed]
    data, indices = (moved(x, order, props.n_batch) for x in (lhs_data.astype(out.dtype), lhs_indices))
    data, indices = fewer_batch(data, indices, [shape[d] for d in summed], len(order) - len(summed))

    sparse = [*summed, *range(props.n_batch, props.n_batch + props.n_sparse)]
    inner = [d for d in sparse if d in partner]
    rest = others(range(rhs.ndim), rhs_batch, right)
    rhs = lax.transpose(rhs.astype(out.dtype), (*rhs_batch, *(partner[d] for d in inner), *rest))
    rhs = lax.expand_dims(rhs, range(len(rhs_batch), len(rhs_batch) + len(free)))
    n_batch = len(lhs_batch) + len(free)

    def one(values: Any, places: Any, other: Any) -> Any:
        cols = dict(zip(sparse, columns(places), strict=True))
        met = _at(other, tuple([cols.pop(d) for d in inner]))
        return _summed(values, tuple(cols.values()), met, bool(inner), out.shape[n_batch:])

    return [over_batches(one, [shape[d] for d in order[:n_batch]])(data, indices, rhs)]


def _summed(values: Any, places: tuple[Any, ...], met: Any, each: bool, shape: Shape) -> Any:
    """Products of ``values`` with what they met, added up at ``places``; ``each`` has met something of its own."""
    if not places:
        return jnp.tensordot(values, met, 1) if each and values.ndim == 1 else _outer(values, met, each).sum(0)
    return jnp.zeros(shape, values.dtype).at[places].add(_outer(values, met, each), mode="drop")


def _outer(values: Any, met: Any, each: bool) -> Any:
    rest = met.ndim - each
    left = values.reshape(*values.shape, *(1,) * rest)
    return left * met.reshape(met.shape[0] if each else 1, *(1,) * (values.ndim - 1), *met.shape[each:])


def _check_dot(props: BCOOProperties, dims: DotDims) -> None:
    (lhs_contracting, _), (lhs_batch, _) = dims
    n_batch = props.n_batch
    if lhs_batch and max(lhs_batch) >= n_batch:
        raise NotImplementedError(
            "bcoo_dot_general batch dimensions must be among the batch dimensions in the sparse representation.\n"
            f"got {lhs_batch=}, {n_batch=}"
        )
    if any(d >= n_batch + props.n_sparse for d in lhs_contracting):
        raise NotImplementedError("bcoo_dot_general: contracting over dense dimensions.")


bcoo_dot_general_p = composed("bcoo_dot_general", _dot_general)


# --- dense with dense, at some places ---------------------------------------------------------------------------------


def _dot_general_sampled(lhs: Any, rhs: Any, indices: Any, *, dimension_numbers: DotDims) -> list[Any]:
    """One stored element at a time: rows of both at its place, multiplied."""
    (left, right), (lhs_batch, rhs_batch) = dimension_numbers
    dims = dense_result((lhs.shape, lhs.dtype), (rhs.shape, rhs.dtype), dimension_numbers, None)
    n_batch, n_sparse = indices.ndim - 2, indices.shape[-1]
    lhs_kept, rhs_kept = others(range(lhs.ndim), left, lhs_batch), others(range(rhs.ndim), right, rhs_batch)
    lhs = lax.transpose(lhs, (*lhs_batch, *lhs_kept, *left))
    rhs = lax.transpose(rhs, (*rhs_batch, *rhs_kept, *right))
    of_both, of_lhs = len(lhs_batch), len(lhs_batch) + len(lhs_kept)
    kinds = ["both" if d < of_both else "lhs" if d < of_lhs else "rhs" for d in range(dims.ndim)]

    def one(a: Any, b: Any, place: Any) -> Any:
        at = dict(enumerate(place))
        left_at = tuple([x for d, x in at.items() if kinds[n_batch + d] != "rhs"])
        right_at = tuple([x for d, x in at.items() if kinds[n_batch + d] != "lhs"])
        shared = range(sum(k == "both" for k in kinds[n_batch + n_sparse :]))
        a, b = _at(a, left_at), _at(b, right_at)
        count = len(left)
        summed = tuple(range(a.ndim - count, a.ndim)), tuple(range(b.ndim - count, b.ndim))
        return lax.dot_general(a, b, (summed, (tuple(shared), tuple(shared))), precision="highest")

    fun = lambda a, b, places: vmap(one, in_axes=(None, None, 0))(a, b, [*columns(places)])
    if not n_sparse:
        fun = lambda a, b, places: jnp.broadcast_to(one(a, b, []), (places.shape[0], *dims.shape[n_batch:]))
    lhs = lax.expand_dims(lhs, [d for d in range(n_batch) if kinds[d] == "rhs"])
    rhs = lax.expand_dims(rhs, [d for d in range(n_batch) if kinds[d] == "lhs"])
    return [over_batches(fun, dims.shape[:n_batch])(lhs, rhs, indices)]


bcoo_dot_general_sampled_p = composed("bcoo_dot_general_sampled", _dot_general_sampled)


# --- sparse with sparse -----------------------------------------------------------------------------------------------


def _spdot_general(
    lhs_data: Any,
    lhs_indices: Any,
    rhs_data: Any,
    rhs_indices: Any,
    *,
    lhs_spinfo: SparseInfo,
    rhs_spinfo: SparseInfo,
    dimension_numbers: DotDims,
    preferred_element_type: Any,
) -> list[Any]:
    """Each stored element with each other, 0 where their indices differ; then equal places are added up."""
    lhs, rhs = check_bcoo(lhs_data, lhs_indices, lhs_spinfo.shape), check_bcoo(rhs_data, rhs_indices, rhs_spinfo.shape)
    dims = dimension_numbers
    of = (lhs_spinfo.shape, lhs_data.dtype), (rhs_spinfo.shape, rhs_data.dtype)
    out = dense_result(*of, dims, preferred_element_type)
    _check_spdot(lhs, rhs, dims)
    (left, right), (lhs_batch, rhs_batch) = dims
    free_l, free_r = others(range(lhs.n_batch), lhs_batch), others(range(rhs.n_batch), rhs_batch)
    n_batch, paired = lhs.n_batch + len(free_r), len(lhs_batch)
    places = out.shape[n_batch:]
    nse = (lhs.nse if lhs.n_sparse > len(left) else 1) * (rhs.nse if rhs.n_sparse > len(right) else 1)
    nse = min(nse, product(places))

    def of_lhs(x: Any) -> Any:
        return lax.expand_dims(moved(x, [*lhs_batch, *free_l], lhs.n_batch), range(lhs.n_batch, n_batch))

    def of_rhs(x: Any) -> Any:
        return lax.expand_dims(moved(x, [*rhs_batch, *free_r], rhs.n_batch), range(paired, lhs.n_batch))

    inner = [d - lhs.n_batch for d in left], [d - rhs.n_batch for d in right]
    kept = others(range(lhs.n_sparse), inner[0]), others(range(rhs.n_sparse), inner[1])
    bounds = np.array([[lhs_spinfo.shape[d] for d in left]], lhs_indices.dtype)

    def one(x: Any, i: Any, y: Any, j: Any) -> Any:
        met = _meeting(i[:, np.array(inner[0], int)], j[:, np.array(inner[1], int)], bounds)
        values = jnp.where(met, x.astype(out.dtype)[:, None] * y.astype(out.dtype)[None], 0).ravel()
        return values, _pairs(i[:, np.array(kept[0], int)], j[:, np.array(kept[1], int)])

    args = of_lhs(lhs_data), of_lhs(lhs_indices), of_rhs(rhs_data), of_rhs(rhs_indices)
    data, indices = over_batches(one, out.shape[:n_batch])(*args)
    return bcoo_sum_duplicates_p.bind(data, indices, spinfo=SparseInfo(out.shape), nse=nse)


def _meeting(i: Any, j: Any, bounds: Any) -> Any:
    """Which rows of ``i`` are equal to which of ``j``, and within bounds."""
    inside = (i < bounds).all(-1)[:, None] & (j < bounds).all(-1)[None]
    return (i[:, None] == j[None]).all(-1) & inside


def _pairs(i: Any, j: Any) -> Any:
    """All rows of ``i`` with all of ``j``."""
    dtype = jnp.result_type(i, j)
    count = (i.shape[0], j.shape[0])
    both = (jnp.broadcast_to(i[:, None], (*count, i.shape[1])), jnp.broadcast_to(j[None], (*count, j.shape[1])))
    return jnp.concatenate([x.astype(dtype) for x in both], -1).reshape(count[0] * count[1], i.shape[1] + j.shape[1])


def _check_spdot(lhs: BCOOProperties, rhs: BCOOProperties, dims: DotDims) -> None:
    (left, right), (lhs_batch, rhs_batch) = dims
    if lhs.n_dense or rhs.n_dense:
        raise NotImplementedError("bcoo_spdot_general with dense dimensions.")
    if any(d >= lhs.n_batch for d in lhs_batch) or any(d >= rhs.n_batch for d in rhs_batch):
        raise NotImplementedError(
            "bcoo_spdot_general: batch_dims must correspond to batch dimensions of the sparse representation."
        )
    for props, summed in ((lhs, left), (rhs, right)):
        if any(not props.n_batch <= d < props.n_batch + props.n_sparse for d in summed):
            raise NotImplementedError("bcoo_spdot_general only supports contraction of sparse indices.")
    if rhs.n_batch > len(rhs_batch) and lhs.n_sparse > len(left):
        raise ValueError("bcoo_spdot_general: cannot have unused batch dims on rhs with unused sparse dims on lhs.")


bcoo_spdot_general_p = composed("bcoo_spdot_general", _spdot_general, several=True)


def sampled(A: Any, B: Any, indices: Any, dims: DotDims) -> Any:
    """The product of dense arrays at ``indices``."""
    return bcoo_dot_general_sampled_p.bind1(A, B, indices, dimension_numbers=dims)
