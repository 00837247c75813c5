"""Shape operations that move no values: broadcast, reshape, squeeze, transpose, reverse; and iota."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from operator import index
from typing import Any

import numpy as np

from polyax.ir.aval import ShapedArray
from polyax.ir.dims import surely_differ, symbolic_broadcast
from polyax.ir.dtypes import full_name
from polyax.ir.primitive import Primitive, def_rule
from polyax.meshes.factors import Factors, Place, carried_along, factors, sized, unstretched
from polyax.meshes.reshaping import reshaped
from polyax.meshes.resharding import placed_as
from polyax.ops.basis import (
    add,
    broadcast_in_dim,
    broadcast_in_dim_p,
    convert,
    iota_p,
    move_axis,
    reduce_sum,
    reshape,
    reshape_p,
    shape_tuple,
    squeeze_p,
    stretched,
    transpose,
    transpose_p,
)
from polyax.ops.define import NUMBER, linear

__all__ = [
    "broadcast", "broadcast_like", "broadcast_shapes", "broadcast_to_rank", "collapse", "rev", "rev_p",
]  # fmt: skip

# --- broadcast_in_dim -----------------------------------------------------------------------------------------------


@def_rule(broadcast_in_dim_p, "abstract_eval")
def _broadcast_abstract(
    x: ShapedArray, *, shape: tuple[int, ...], broadcast_dimensions: tuple[int, ...]
) -> list[ShapedArray]:
    dims = broadcast_dimensions
    if any(n < 0 for n in shape):
        raise TypeError(f"broadcast_in_dim shape must have every element be nonnegative, got {shape}.")
    if len(dims) != x.ndim:
        raise TypeError(
            "broadcast_in_dim broadcast_dimensions must have length equal to operand ndim; "
            f"got broadcast_dimensions {dims} for operand ndim {x.ndim}."
        )
    if any(d < 0 for d in dims):
        raise TypeError(f"broadcast_in_dim broadcast_dimensions must have every element be nonnegative, got {dims}.")
    if x.ndim > len(shape):
        raise TypeError(
            "broadcast_in_dim target broadcast shape must have equal or higher rank to the operand shape; "
            f"got operand ndim {x.ndim} and target broadcast ndim {len(shape)}."
        )
    if not set(dims) <= set(range(len(shape))):
        raise TypeError(
            "broadcast_in_dim broadcast_dimensions must be a subset of output dimensions, "
            f"got {dims} for operand ndim {x.ndim} and shape {shape}."
        )
    if any(n not in (1, shape[d]) for n, d in zip(x.shape, dims, strict=True)):
        raise TypeError(
            "broadcast_in_dim operand dimension sizes must either be 1, or be equal to their corresponding dimensions "
            f"in the target broadcast shape; got operand of shape {x.shape}, target broadcast shape {shape}, "
            f"broadcast_dimensions {dims}"
        )
    if list(dims) != sorted(set(dims)):
        raise TypeError(f"broadcast_in_dim broadcast_dimensions must be strictly increasing; got {dims}")
    return [ShapedArray(shape, x.dtype, x.weak_type)]


def _broadcast_transpose(
    ct: Any, x: ShapedArray, *, shape: tuple[int, ...], broadcast_dimensions: tuple[int, ...]
) -> Any:
    """Sums over new and stretched dimensions."""
    kept = {d for d, n in zip(broadcast_dimensions, x.shape, strict=True) if n == shape[d]}
    axes = [i for i in range(len(shape)) if i not in kept]
    return reshape(reduce_sum(ct, axes) if axes else ct, x.shape)


def _broadcast_batch(
    axis: Any, args: Any, dims: Any, *, shape: tuple[int, ...], broadcast_dimensions: tuple[int, ...]
) -> Any:
    x = move_axis(args[0], dims[0], 0)
    moved = (0, *(d + 1 for d in broadcast_dimensions))
    return [broadcast_in_dim(x, (axis.size, *shape), moved)], [0]


linear(broadcast_in_dim_p, _broadcast_transpose, _broadcast_batch)


@def_rule(broadcast_in_dim_p, "factors")
def _broadcast_factors(x: ShapedArray, *, shape: Sequence[int], broadcast_dimensions: Sequence[int]) -> Factors:
    """New and stretched dimensions are cut as you like: each device makes its part."""
    of_x = unstretched(x.shape, broadcast_dimensions)
    return factors([of_x], [range(len(shape))], local=sized(broadcast_in_dim_p, "shape"))


def broadcast(operand: Any, sizes: Sequence[int], *, out_sharding: Any = None) -> Any:
    """``operand`` repeated along new leading dimensions of the given sizes."""
    if out_sharding is not None:
        return placed_as(out_sharding, broadcast, operand, sizes)
    shape, sizes = np.shape(operand), shape_tuple(sizes)
    return broadcast_in_dim(operand, (*sizes, *shape), range(len(sizes), len(sizes) + len(shape)))


def broadcast_to_rank(x: Any, rank: int) -> Any:
    """``x`` with leading dimensions of size 1 up to ``rank``, if it hasn't as many already."""
    shape = np.shape(x)
    missing = max(rank - len(shape), 0)
    return broadcast_in_dim(x, (1,) * missing + shape, range(missing, rank)) if missing else x


def broadcast_like(arr: Any, like_arr: Any) -> Any:
    """``arr``, a scalar or of the rank of ``like_arr``, stretched to its shape."""
    return stretched(arr, np.shape(like_arr))


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape that NumPy's broadcasting gives.

    >>> broadcast_shapes((3, 1), (4,))
    (3, 4)

    Raises:
      ValueError: the shapes are incompatible.
    """
    try:
        return np.broadcast_shapes(*shapes)
    except (TypeError, ValueError):
        if (found := symbolic_broadcast(shapes)) is not None:
            return found
        raise ValueError(f"Incompatible shapes for broadcasting: shapes={[tuple(s) for s in shapes]}") from None


# --- reshape, squeeze -----------------------------------------------------------------------------------------------


@def_rule(reshape_p, "abstract_eval")
def _reshape_abstract(x: ShapedArray, *, new_sizes: tuple[int, ...], dimensions: None) -> list[ShapedArray]:
    """``dimensions`` is None: the parameter is JAX's, but ``lax.reshape`` makes a transposition of it."""
    if any(n < 0 for n in new_sizes):
        raise TypeError(f"reshape new_sizes must all be positive, got {new_sizes}.")
    if surely_differ(prod(new_sizes), x.size):
        raise TypeError(
            f"reshape total size must be unchanged, got new_sizes {new_sizes} (size {prod(new_sizes)}) "
            f"for shape {x.shape} (size {x.size})."
        )
    if dimensions is not None:
        raise TypeError(
            f"the primitive reshape takes dimensions=None, got {dimensions}; use lax.reshape or a transpose"
        )
    return [ShapedArray(new_sizes, x.dtype, x.weak_type)]


def _reshape_batch(axis: Any, args: Any, dims: Any, *, new_sizes: tuple[int, ...], dimensions: None) -> Any:
    return [reshape(move_axis(args[0], dims[0], 0), (axis.size, *new_sizes))], [0]


linear(reshape_p, lambda ct, x, **params: reshape(ct, x.shape), _reshape_batch)


@def_rule(reshape_p, "factors")
def _reshape_factors(x: ShapedArray, *, new_sizes: tuple[int, ...], dimensions: None) -> Factors:
    return reshaped(x.shape, new_sizes, sized(reshape_p, "new_sizes"))


@def_rule(squeeze_p, "abstract_eval")
def _squeeze_abstract(x: ShapedArray, *, dimensions: tuple[int, ...]) -> list[ShapedArray]:
    if len(set(dimensions)) != len(dimensions):
        raise ValueError(f"dimensions are not unique: {dimensions}")
    if not set(dimensions) <= set(range(x.ndim)):
        raise ValueError(f"dimensions outside range [0, ndim): {dimensions}")
    if any(x.shape[d] != 1 for d in dimensions):
        raise ValueError(
            "cannot select an axis to squeeze out which has size not equal to one, "
            f"got shape={x.shape} and dimensions={dimensions}"
        )
    return [ShapedArray(tuple(n for i, n in enumerate(x.shape) if i not in dimensions), x.dtype, x.weak_type)]


def _squeeze_batch(axis: Any, args: Any, dims: Any, *, dimensions: tuple[int, ...]) -> Any:
    x = move_axis(args[0], dims[0], 0)
    return squeeze_p.bind_all(x, dimensions=tuple(d + 1 for d in dimensions)), [0]


linear(squeeze_p, lambda ct, x, dimensions: reshape(ct, x.shape), _squeeze_batch)
def_rule(squeeze_p, "factors")(
    lambda x, *, dimensions: factors([range(x.ndim)], [[d for d in range(x.ndim) if d not in dimensions]])
)


def collapse(operand: Any, start_dimension: int, stop_dimension: int | None = None) -> Any:
    """The dimensions ``start_dimension:stop_dimension`` made into one.

    >>> import polyax.numpy as jnp
    >>> from polyax import lax
    >>> lax.collapse(jnp.ones((2, 3, 4)), 1).shape
    (2, 12)
    """
    shape = np.shape(operand)
    start, stop, _ = slice(start_dimension, stop_dimension).indices(len(shape))
    if start > stop:
        raise ValueError(f"Invalid dimension range passed to collapse: {shape}[{start_dimension}:{stop_dimension}]")
    return reshape(operand, (*shape[:start], prod(shape[start:stop]), *shape[stop:]))


# --- transpose ------------------------------------------------------------------------------------------------------


@def_rule(transpose_p, "abstract_eval")
def _transpose_abstract(x: ShapedArray, *, permutation: tuple[int, ...]) -> list[ShapedArray]:
    if sorted(permutation) != list(range(x.ndim)):
        raise TypeError(
            "transpose permutation isn't a permutation of operand dimensions, "
            f"got permutation {permutation} for operand shape {x.shape}."
        )
    return [ShapedArray(tuple(x.shape[i] for i in permutation), x.dtype, x.weak_type)]


def _transpose_batch(axis: Any, args: Any, dims: Any, *, permutation: tuple[int, ...]) -> Any:
    (dim,) = dims
    return [transpose(args[0], (dim, *(i + (i >= dim) for i in permutation)))], [0]


linear(transpose_p, lambda ct, x, permutation: transpose(ct, np.argsort(permutation)), _transpose_batch)
transpose_p.factors = lambda x, *, permutation: factors([range(x.ndim)], [permutation])

# --- rev ------------------------------------------------------------------------------------------------------------

rev_p = Primitive("rev")


def rev(operand: Any, dimensions: Sequence[int]) -> Any:
    """``operand`` with the order of elements reversed along ``dimensions``.

    >>> import polyax.numpy as jnp
    >>> from polyax import lax
    >>> lax.rev(jnp.arange(3), (0,)).tolist()
    [2, 1, 0]
    """
    return rev_p.bind1(operand, dimensions=tuple(map(index, dimensions)))


@def_rule(rev_p, "abstract_eval")
def _rev_abstract(x: ShapedArray, *, dimensions: tuple[int, ...]) -> list[ShapedArray]:
    if len(set(dimensions)) != len(dimensions):
        raise TypeError(f"rev dimensions must be unique, got {dimensions}.")
    if any(d < 0 for d in dimensions):
        raise TypeError(f"rev dimensions must have every element be nonnegative, got {dimensions}.")
    if not set(dimensions) <= set(range(x.ndim)):
        raise TypeError(
            f"rev dimensions must all be less than operand ndim, got dimensions {dimensions} for operand ndim {x.ndim}."
        )
    return [x]


def _rev_batch(axis: Any, args: Any, dims: Any, *, dimensions: tuple[int, ...]) -> Any:
    return [rev(args[0], [d + (d >= dims[0]) for d in dimensions])], dims


linear(rev_p, lambda ct, x, dimensions: rev(ct, dimensions), _rev_batch)
rev_p.factors = lambda x, *, dimensions: carried_along(x, dimensions)
rev_p.explicit = lambda ins, outs, **_: [outs[0].update(sharding=ins[0].told)]

# --- iota -----------------------------------------------------------------------------------------------------------


@def_rule(iota_p, "abstract_eval")
def _iota_abstract(*, dtype: Any, shape: tuple[int, ...], dimension: int) -> list[ShapedArray]:
    if dtype not in NUMBER:
        raise TypeError(
            f"iota does not accept dtype {full_name(dtype)}. Accepted dtypes are subtypes of {NUMBER.text}."
        )
    if any(n < 0 for n in shape):
        raise TypeError(f"iota shape must have every element be nonnegative, got {shape}.")
    if not 0 <= dimension < len(shape):
        raise ValueError(
            f"iota dimension must be between 0 and len(shape), got dimension={dimension} for shape={shape}"
        )
    return [ShapedArray(shape, dtype)]


def _iota_block(place: Place, *, dtype: Any, shape: tuple[int, ...], dimension: int) -> list[Any]:
    block = iota_p.bind1(dtype=dtype, shape=place.shape(0), dimension=dimension)
    if place.shape(0)[dimension] == shape[dimension]:
        return [block]
    return [add(block, convert(place.start(0, dimension), dtype))]


iota_p.factors = lambda *, shape, **_: factors([], [range(len(shape))], local=_iota_block)
for _rule in ("jvp", "transpose", "batch"):
    iota_p.never(_rule, "iota has no operands")
