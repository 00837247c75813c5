"""Parts of ``BCOO``, and wholes of parts: slices, gathers, concatenations."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from polyax import numpy as jnp
from polyax.api.vmap import vmap
from polyax.experimental.sparse.bcoo import BCOO, bcoo_transpose, bcoo_update_layout, with_nse
from polyax.experimental.sparse.layout import SparseInfo, as_row, check_bcoo, product, result_of, sparse_sizes
from polyax.experimental.sparse.order import bcoo_sum_duplicates_p
from polyax.experimental.sparse.shapes import bcoo_reshape, bcoo_squeeze
from polyax.lax import lenient as lax
from polyax.ops.gather import GatherScatterMode

# --- slices -----------------------------------------------------------------------------------------------------------


def bcoo_slice(
    mat: Any, *, start_indices: Sequence[int], limit_indices: Sequence[int], strides: Sequence[int] | None = None
) -> BCOO:
    """``lax.slice``: from ``start_indices`` to ``limit_indices`` in steps of ``strides``.

    Raises:
      TypeError: ``mat`` is no ``BCOO``.
      ValueError: the indices don't fit its shape.
    """
    if not isinstance(mat, BCOO):
        raise TypeError(f"bcoo_slice: input should be BCOO array, got type(mat)={type(mat)}")
    start_indices, limit_indices = (list(map(operator.index, x)) for x in (start_indices, limit_indices))
    strides = [1] * mat.ndim if strides is None else list(map(operator.index, strides))
    _check_slice(mat, start_indices, limit_indices, strides)
    props = check_bcoo(mat.data, mat.indices, mat.shape)
    slices = [slice(*s) for s in zip(start_indices, limit_indices, strides, strict=True)]
    batch, sparse, dense = props.split(slices)
    shape = tuple([len(range(s.start, s.stop, s.step)) for s in slices])
    whole = slice(None)
    cut = lambda x: [s if x.shape[d] == mat.shape[d] else whole for d, s in enumerate(batch)]
    data = mat.data[(*cut(mat.data), whole, *dense)]
    indices = mat.indices[tuple(cut(mat.indices))]
    new = BCOO((data, indices), shape=(*shape[: props.n_batch], *props.split(mat.shape)[1], *props.split(shape)[2]))
    if not props.n_sparse:
        return new
    starts, stops, steps = (as_row([getattr(s, name) for s in sparse], indices) for name in ("start", "stop", "step"))
    keep = (indices >= starts) & (indices < stops) & ((indices - starts) % steps == 0)
    return _kept(new, keep.all(-1), (indices - starts) // steps, shape)


def _check_slice(mat: BCOO, starts: Sequence[int], limits: Sequence[int], strides: Sequence[int]) -> None:
    if not len(starts) == len(limits) == mat.ndim:
        raise ValueError(f"bcoo_slice: indices must have size mat.ndim={mat.ndim}")
    if len(strides) != mat.ndim:
        raise ValueError(f"len(strides) = {len(strides)}; expected {mat.ndim}")
    if any(s <= 0 for s in strides):
        raise ValueError(f"strides must be a sequence of positive integers; got {strides}")
    if not all(0 <= a <= b <= n for a, b, n in zip(starts, limits, mat.shape, strict=True)):
        raise ValueError(
            f"bcoo_slice: invalid indices. Got start_indices={starts}, limit_indices={limits} and shape={mat.shape}"
        )


def _kept(mat: BCOO, keep: Any, indices: Any, shape: tuple[int, ...]) -> BCOO:
    """The elements of ``mat`` for which ``keep`` holds, at new ``indices``, as few as there is room for."""
    props = check_bcoo(mat.data, mat.indices, mat.shape)
    sizes = props.split(shape)[1]
    indices = jnp.where(keep[..., None], indices, as_row(sizes, indices))
    data = jnp.where(keep.reshape(*keep.shape, *(1,) * props.n_dense), mat.data, 0)
    bufs: Any = data, indices
    if mat.nse > product(sizes):
        bufs = bcoo_sum_duplicates_p.bind(data, indices, spinfo=SparseInfo(shape), nse=product(sizes))
    return BCOO(bufs, shape=shape)


def bcoo_dynamic_slice(mat: Any, start_indices: Sequence[Any], slice_sizes: Sequence[int]) -> BCOO:
    """``lax.dynamic_slice``: ``slice_sizes`` from ``start_indices``, which may be traced, on.

    Raises:
      TypeError: ``mat`` is no ``BCOO``, or the sizes don't fit its shape.
    """
    if not isinstance(mat, BCOO):
        raise TypeError(f"bcoo_slice: input should be BCOO array, got type(mat)={type(mat)}")
    shape = tuple(map(operator.index, slice_sizes))
    starts = [jnp.asarray(i) for i in start_indices]
    result_of(
        lambda x, *i: lax.dynamic_slice(x, i, shape), (mat.shape, mat.dtype), *[(i.shape, i.dtype) for i in starts]
    )
    props = check_bcoo(mat.data, mat.indices, mat.shape)
    of_batch, of_sparse, of_dense = props.split(starts)
    sizes = props.split(shape)
    data, indices = (_batch_slice(x, mat.shape, of_batch, sizes[0]) for x in mat._bufs)
    for n, (start, size) in enumerate(zip(of_dense, sizes[2], strict=True)):
        data = lax.dynamic_slice_in_dim(data, start, size, props.n_batch + 1 + n)
    new = BCOO((data, indices), shape=(*sizes[0], *props.split(mat.shape)[1], *sizes[2]))
    if not props.n_sparse:
        return new
    full, wanted = sparse_sizes(mat.shape, indices), as_row(sizes[1], indices)
    first = jnp.stack([i.astype(indices.dtype) for i in of_sparse]).reshape(full.shape)
    first = jnp.clip(jnp.where(first < 0, first + full, first), 0, full - wanted)
    at = indices - first
    return _kept(new, ((at >= 0) & (at < wanted) & (indices < full)).all(-1), at, shape)


def _batch_slice(x: Any, full: Sequence[int], starts: Sequence[Any], sizes: Sequence[int]) -> Any:
    for d, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        if x.shape[d] == full[d]:
            x = lax.dynamic_slice_in_dim(x, start, size, d)
    return x


# --- gathers ----------------------------------------------------------------------------------------------------------


def bcoo_gather(
    operand: BCOO,
    start_indices: Any,
    dimension_numbers: Any,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: Any = None,
    fill_value: Any = None,
) -> BCOO:
    """``lax.gather``: a slice for each row of ``start_indices``, moved to within the array.

    Raises:
      NotImplementedError: ``mode`` asks for values in place of what is outside.
    """
    parsed = GatherScatterMode.PROMISE_IN_BOUNDS if mode is None else GatherScatterMode.from_any(mode)
    if parsed not in (GatherScatterMode.PROMISE_IN_BOUNDS, GatherScatterMode.CLIP):
        raise NotImplementedError(f"bcoo_gather: {mode=} not yet supported.")
    sizes = tuple(map(operator.index, slice_sizes))
    start_indices = jnp.asarray(start_indices)
    gather = lambda x, i: lax.gather(x, i, dimension_numbers=dimension_numbers, slice_sizes=sizes, mode=parsed)
    of = (operand.shape, operand.dtype), (start_indices.shape, start_indices.dtype)
    shape = result_of(gather, *of).shape
    if dimension_numbers.operand_batching_dims:
        raise NotImplementedError("bcoo_gather: operand_batching_dims not yet supported.")
    rows = start_indices.reshape(-1, start_indices.shape[-1])

    def piece(row: Any) -> BCOO:
        starts: list[Any] = [jnp.zeros((), rows.dtype)] * operand.ndim
        for k, d in enumerate(dimension_numbers.start_index_map):
            starts[d] = row[k]
        part = bcoo_dynamic_slice(operand, starts, sizes)
        return bcoo_squeeze(part, dimensions=dimension_numbers.collapsed_slice_dims)

    found = vmap(piece)(rows)
    outer = start_indices.shape[:-1]
    found = bcoo_reshape(found, new_sizes=(*outer, *found.shape[1:]))
    return _in_order(found, len(outer), dimension_numbers.offset_dims, len(shape))


def _in_order(found: BCOO, n_outer: int, offset_dims: Sequence[int], ndim: int) -> BCOO:
    """With the dimensions of slices at ``offset_dims``, those of the rows elsewhere."""
    outer = [d for d in range(ndim) if d not in offset_dims]
    order = [int(d) for d in np.argsort([*outer, *offset_dims])]
    if order == list(range(ndim)):
        return found
    if set(order[:n_outer]) != set(range(n_outer)):
        found = bcoo_update_layout(found, n_batch=0)
    return bcoo_transpose(found, permutation=order)


# --- concatenation ----------------------------------------------------------------------------------------------------


def bcoo_concatenate(operands: Sequence[Any], *, dimension: int) -> BCOO:
    """``lax.concatenate``, along a batch or a sparse dimension.

    Raises:
      ValueError: the operands aren't ``BCOO`` of the same layout.
      NotImplementedError: along a dense dimension.
    """
    dimension = operator.index(dimension)
    if not all(isinstance(op, BCOO) for op in operands):
        raise ValueError(f"bcoo_concatenate: expected operands to be a sequence of BCOO arrays. Got {operands}")
    join = lambda *xs: lax.concatenate(xs, dimension)
    shape = result_of(join, *[(op.shape, op.dtype) for op in operands]).shape
    if len({op.n_dense for op in operands}) > 1:
        raise ValueError("bcoo_concatenate requires inputs to have matching nse dimensions.")
    operands = _alike(operands)
    n_batch, n_sparse = operands[0].n_batch, operands[0].n_sparse
    if dimension >= n_batch + n_sparse:
        raise NotImplementedError("Concatenation along dense dimensions.")
    for buffers in zip(*(op._bufs for op in operands), strict=True):
        if len({tuple(np.delete(b.shape[:n_batch], [dimension][dimension >= n_batch :])) for b in buffers}) > 1:
            raise NotImplementedError("concatenation of arrays with broadcasted batch indices")
    if dimension < n_batch:
        operands = [with_nse(_full_along(op, dimension), max(o.nse for o in operands)) for op in operands]
        bufs = [lax.concatenate(xs, dimension) for xs in zip(*(op._bufs for op in operands), strict=True)]
        return BCOO(bufs, shape=shape)
    offsets = np.cumsum([0, *(op.shape[dimension] for op in operands[:-1])])
    moved = [_shifted(op, dimension - n_batch, int(n), shape) for op, n in zip(operands, offsets, strict=True)]
    bufs = lax.concatenate([op.data for op in operands], n_batch), lax.concatenate(moved, n_batch)
    return BCOO(bufs, shape=shape)


def _alike(operands: Sequence[BCOO]) -> Sequence[BCOO]:
    """With as many batch dimensions: one of size 1 may be stored as a sparse one."""
    kinds = {op.n_batch for op in operands}
    if kinds == {0, 1}:
        for kind in (0, 1):
            if all(op.shape[0] == 1 for op in operands if op.n_batch == kind):
                return [bcoo_update_layout(op, n_batch=1 - kind) for op in operands]
    if len(kinds) > 1:
        raise ValueError("bcoo_concatenate requires inputs to have matching batch dimensions.")
    return operands


def _full_along(mat: BCOO, d: int) -> BCOO:
    """``mat`` with buffers that don't share what stands along batch dimension ``d``."""
    bufs = [jnp.broadcast_to(x, (*x.shape[:d], mat.shape[d], *x.shape[d + 1 :])) for x in mat._bufs]
    return BCOO(bufs, **mat._info._asdict())


def _shifted(mat: BCOO, k: int, offset: int, shape: Sequence[int]) -> Any:
    """Indices moved by ``offset`` along sparse dimension ``k``; what points nowhere in ``mat`` does so in ``shape``."""
    if not offset and tuple(shape) == mat.shape:
        return mat.indices
    old, new = (sparse_sizes(s, mat.indices) for s in (mat.shape, shape))
    along = as_row([offset if d == k else 0 for d in range(mat.n_sparse)], mat.indices)
    outside = (mat.indices >= old).any(-1, keepdims=True)
    return jnp.where(outside, new, mat.indices + along)
