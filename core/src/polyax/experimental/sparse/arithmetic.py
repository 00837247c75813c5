"""Sums and elementwise products of ``BCOO``, and convolutions along one dimension."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polyax import numpy as jnp
from polyax.experimental.sparse.bcoo import BCOO, bcoo_update_layout
from polyax.experimental.sparse.dense import extract_at
from polyax.experimental.sparse.layout import (
    check_bcoo,
    columns,
    others,
    over_batches,
    product,
    result_of,
    sparse_sizes,
)
from polyax.experimental.sparse.relayout import fewer_batch
from polyax.lax import lenient as lax


def bcoo_reduce_sum(mat: BCOO, *, axes: Sequence[int]) -> BCOO:
    """``mat`` summed over ``axes``; elements that fall together stay stored one by one."""
    props = check_bcoo(mat.data, mat.indices, mat.shape)
    n_batch, n_sparse, _, _ = props
    if not all(0 <= a < mat.ndim for a in axes):
        raise ValueError(f"bcoo_reduce_sum: axes {tuple(axes)} are not those of an array of shape {mat.shape}")
    axes = sorted(set(axes))
    data, indices = mat._bufs
    dense = tuple([a - n_sparse + 1 for a in axes if a >= n_batch + n_sparse])
    data = data.sum(dense, dtype=data.dtype) if dense else data
    inside = (indices < sparse_sizes(mat.shape, indices)).all(-1)
    data = jnp.where(inside.reshape(*inside.shape, *(1,) * (data.ndim - 1 - n_batch)), data, 0)
    kept = np.array([k for k in range(n_sparse) if k + n_batch not in axes], int)
    summed = [a for a in axes if a < n_batch]
    stay = others(range(n_batch), summed)
    order = [*stay, *summed]
    data, indices = (lax.transpose(x, (*order, *range(n_batch, x.ndim))) for x in (data, indices[..., kept]))
    sizes = [mat.shape[a] for a in summed]
    data, indices = fewer_batch(data, indices, sizes, len(stay))
    return BCOO((data, indices[..., len(sizes) :]), shape=tuple([mat.shape[a] for a in others(range(mat.ndim), axes)]))


# --- products ---------------------------------------------------------------------------------------------------------


def bcoo_multiply_sparse(lhs: BCOO, rhs: BCOO) -> BCOO:
    """The elementwise product of sparse arrays; sizes of 1 go with all.

    Raises:
      TypeError: they have different numbers of dimensions.
      NotImplementedError: they have different numbers of dense dimensions.
    """
    if lhs.ndim != rhs.ndim:
        raise TypeError(
            f"bcoo_multiply_sparse: arrays must have same number of dimensions, got {lhs.shape}, {rhs.shape}"
        )
    if lhs.n_dense != rhs.n_dense:
        raise NotImplementedError(
            "bcoo_multiply_sparse: arrays with differing numbers of dense dimensions: "
            f"{check_bcoo(*lhs._bufs, lhs.shape)}, {check_bcoo(*rhs._bufs, rhs.shape)}"
        )
    n_batch = min(lhs.n_batch, rhs.n_batch)
    lhs, rhs = (bcoo_update_layout(x, n_batch=n_batch) for x in (lhs, rhs))
    shape = np.broadcast_shapes(lhs.shape, rhs.shape)
    sparse = range(n_batch, n_batch + lhs.n_sparse)
    sizes = [(lhs.shape[d], rhs.shape[d], shape[d]) for d in sparse]

    def one(x: Any, i: Any, y: Any, j: Any) -> tuple[Any, Any]:
        places, met = _common_places(i, j, sizes)
        both = x[:, None] * y[None]
        both = jnp.where(met.reshape(*met.shape, *(1,) * (both.ndim - 2)), both, 0)
        nse = product(met.shape)
        return both.reshape(nse, *both.shape[2:]), places.reshape(nse, len(sizes))

    return BCOO(over_batches(one, shape[:n_batch])(*lhs._bufs, *rhs._bufs), shape=shape)


def _common_places(i: Any, j: Any, sizes: Sequence[tuple[int, int, int]]) -> tuple[Any, Any]:
    """Of all pairs the place where they meet, nowhere if they don't, and whether they do."""
    met = jnp.ones((i.shape[0], j.shape[0]), bool)
    places = []
    for (n, m, _), a, b in zip(sizes, columns(i), columns(j), strict=True):
        a, b = jnp.broadcast_arrays(a[:, None], b[None])
        met &= (a < n) & (b < m) & ((a == b) | (n != m))
        places.append(b if n == 1 else a)
    dtype = jnp.result_type(i, j)
    found = [jnp.where(met, p.astype(dtype), s[2]) for p, s in zip(places, sizes, strict=True)]
    return jnp.stack(found, -1) if found else jnp.zeros((*met.shape, 0), dtype), met


def bcoo_multiply_dense(sp_mat: BCOO, v: Any) -> Any:
    """The data of the elementwise product with a dense array, whose indices are those of ``sp_mat``.

    Raises:
      NotImplementedError: the product has another shape than ``sp_mat``.
    """
    v = jnp.asarray(v)
    data, indices, shape = sp_mat.data, sp_mat.indices, sp_mat.shape
    if v.ndim == 0:
        return data * v
    if v.shape == shape:
        return data * extract_at(indices, v)
    if np.broadcast_shapes(v.shape, shape) != shape:
        raise NotImplementedError(
            "multiplication between sparse and dense is only implemented for cases where the output shape matches the "
            f"sparse matrix shape. Got {shape=}, v.shape={v.shape}"
        )
    v = lax.expand_dims(v, range(len(shape) - v.ndim))
    props = check_bcoo(data, indices, shape)
    n_batch, n_sparse = props.n_batch, props.n_sparse
    wide = [k for k in range(n_sparse) if v.shape[n_batch + k] != 1]
    v = lax.squeeze(v, [n_batch + k for k in range(n_sparse) if k not in wide])

    def one(values: Any, places: Any, other: Any) -> Any:
        at = tuple([places[:, k] for k in wide])
        return values * (other.at[at].get(mode="fill", fill_value=0) if at else other[None])

    sizes = [max(x) for x in zip(*(x.shape[:n_batch] for x in (data, indices, v)), strict=True)]
    return over_batches(one, sizes)(data, indices, v)


# --- convolution ------------------------------------------------------------------------------------------------------


def bcoo_conv_general_dilated(
    lhs: Any,
    rhs: Any,
    *,
    window_strides: Sequence[int],
    padding: Any,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> BCOO:
    """``lax.conv_general_dilated`` of one sequence with another, without strides and dilations.

    Args:
      lhs, rhs: arrays of shape ``(1, 1, n)``, dense or ``BCOO``.
      precision, out_sharding: without effect.

    Raises:
      NotImplementedError: more is asked for.
    """
    given = {"lhs_dilation": lhs_dilation, "rhs_dilation": rhs_dilation, "dimension_numbers": dimension_numbers}
    groups = {"feature_group_count": feature_group_count, "batch_group_count": batch_group_count}
    conv = lambda x, y: lax.conv_general_dilated(x, y, window_strides, padding, **given, **groups)
    shape = result_of(conv, (lhs.shape, lhs.dtype), (rhs.shape, rhs.dtype)).shape
    for name, values in (("lhs_dilation", lhs_dilation), ("rhs_dilation", rhs_dilation)):
        if values is not None and any(d != 1 for d in values):
            raise NotImplementedError(f"bcoo convolution with {name}.")
    if any(s != 1 for s in window_strides):
        raise NotImplementedError("bcoo convolution with non-unit window_strides.")
    if batch_group_count != 1 or feature_group_count != 1:
        raise NotImplementedError("bcoo convolution with non-unit group counts.")
    if lhs.ndim != 3 or lhs.shape[:2] != (1, 1) or rhs.shape[:2] != (1, 1):
        raise NotImplementedError("bcoo convolution with leading dimensions other than (1, 1)")
    dtype = next((x.indices.dtype for x in (lhs, rhs) if isinstance(x, BCOO)), np.dtype("int32"))
    low = _low_padding(padding, lhs.shape[2], rhs.shape[2])
    (x, i), (y, j) = (_sequence(z, dtype) for z in (lhs, rhs))
    places = (i[:, None] + (low - j)[None]).ravel()
    there = (places >= 0) & (places < shape[2])
    values = jnp.where(there, (x[:, None] * y[None]).ravel(), 0)
    places = jnp.where(there, places, shape[2])
    return BCOO((values[None, None], places[None, None, :, None]), shape=shape)


def _low_padding(padding: Any, size: int, window: int) -> int:
    """What is put in front of the sequence."""
    if not isinstance(padding, str):
        return int(padding[0][0])
    return (window - 1) // 2 if padding.upper() == "SAME" else 0


def _sequence(x: Any, dtype: Any) -> tuple[Any, Any]:
    """The stored elements of an array of shape ``(1, 1, n)``, and where they are."""
    if isinstance(x, BCOO):
        x = bcoo_update_layout(x, n_batch=2, n_dense=0)
        indices = x.indices[0, 0, :, 0]
        return jnp.where(indices < x.shape[2], x.data[0, 0], 0), indices
    return jnp.asarray(x)[0, 0], jnp.arange(x.shape[2], dtype=dtype)
