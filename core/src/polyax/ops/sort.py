"""Sorting along a dimension: several operands by the first keys, and the largest elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.ir.aval import ShapedArray
from polyax.ir.dims import dim_index, is_symbolic_dim
from polyax.ir.dtypes import is_extended
from polyax.ir.primitive import Primitive, def_rule
from polyax.meshes.factors import free_but
from polyax.ops.basis import broadcasted_iota, canonical_axis, expand_dims, match_axis
from polyax.ops.define import ORDERED, check_dtype
from polyax.ops.gather import GatherDimensionNumbers, GatherScatterMode, gather
from polyax.trace.symbolic import Zero

__all__ = [
    "sort", "sort_key_val", "sort_p", "top_k", "top_k_p",
]  # fmt: skip

sort_p = Primitive("sort", multiple_results=True)
top_k_p = Primitive("top_k", multiple_results=True)


def take_along(x: Any, indices: Any, axis: int) -> Any:
    """``x`` at ``indices`` along ``axis``, separately for each index of the other dimensions; in bounds."""
    others = tuple(i for i in range(np.ndim(x)) if i != axis)
    numbers = GatherDimensionNumbers((), (axis,), (axis,), others, others)
    vectors = expand_dims(indices, (np.ndim(indices),))
    sizes = [min(1, n) for n in np.shape(x)]
    return gather(x, vectors, numbers, sizes, mode=GatherScatterMode.PROMISE_IN_BOUNDS)


# --- sort -----------------------------------------------------------------------------------------------------------


def sort(operand: Any, dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> Any:
    """``operand`` in ascending order along ``dimension``; NaNs last.

    Args:
      operand: an array, or a sequence of arrays that are permuted together.
      num_keys: how many of them are compared, the first one first.

    Raises:
      TypeError: the shapes differ.

    >>> import polyax.numpy as jnp
    >>> from polyax import lax
    >>> lax.sort(jnp.array([3, 1, 2])).tolist()
    [1, 2, 3]
    """
    several = isinstance(operand, (tuple, list))
    operands = list(operand) if several else [operand]
    if not operands:
        raise TypeError("Sort requires at least one operand")
    if not 1 <= num_keys <= len(operands):
        raise ValueError(f"{num_keys=} must be between 1 and len(operand)={len(operands)}")
    dimension = canonical_axis(dimension, np.ndim(operands[0]))
    outs = sort_p.bind(*operands, dimension=dimension, is_stable=bool(is_stable), num_keys=num_keys)
    return tuple(outs) if several else outs[0]


def sort_key_val(keys: Any, values: Any, dimension: int = -1, is_stable: bool = True) -> tuple[Any, Any]:
    """``keys`` in ascending order, and ``values`` in the same order."""
    return sort((keys, values), dimension, is_stable)


@def_rule(sort_p, "abstract_eval")
def _sort_abstract(*avals: ShapedArray, dimension: int, is_stable: bool, num_keys: int) -> list[ShapedArray]:
    if len({a.shape for a in avals}) > 1:
        raise TypeError(f"Arguments to sort must have equal shapes, got: {' '.join(str(a.shape) for a in avals)}")
    for aval in avals[:num_keys]:
        if is_extended(aval.dtype):
            check_dtype("lt_to", aval, ORDERED, 0)
    return list(avals)


@def_rule(sort_p, "jvp")
def _sort_jvp(primals: Any, tangents: Any, *, dimension: int, is_stable: bool, num_keys: int) -> Any:
    """Sorts positions along with the operands, and takes the tangents from there."""
    positions = broadcasted_iota(np.int32, np.shape(primals[0]), dimension)
    *outs, order = sort_p.bind(*primals, positions, dimension=dimension, is_stable=is_stable, num_keys=num_keys)
    moved = [
        Zero.of(y) if type(t) is Zero else take_along(t, order, dimension) for y, t in zip(outs, tangents, strict=True)
    ]
    return outs, moved


sort_p.factors = lambda *avals, dimension, **_: free_but(avals, len(avals), (dimension,))
sort_p.never("transpose", "sort is not linear; its derivative is a gather")


@def_rule(sort_p, "batch")
def _sort_batch(axis: Any, args: Any, dims: Any, *, dimension: int, **params: Any) -> Any:
    operands = [match_axis(axis, d, 0, x) for x, d in zip(args, dims, strict=True)]
    return sort_p.bind(*operands, dimension=dimension + 1, **params), [0] * len(operands)


# --- top_k ----------------------------------------------------------------------------------------------------------


def top_k(operand: Any, k: int, *, axis: int = -1) -> list[Any]:
    """The ``k`` largest elements along ``axis``, in descending order, and their ``int32`` indices; of equals the first.

    Raises:
      ValueError: ``k`` is negative or larger than the dimension.

    >>> import polyax.numpy as jnp
    >>> from polyax import lax
    >>> [x.tolist() for x in lax.top_k(jnp.array([3, 1, 4]), 2)]
    [[4, 3], [2, 0]]
    """
    return top_k_p.bind(operand, k=dim_index(k), axis=canonical_axis(axis, np.ndim(operand)))


_LARGEST_INDEX = int(np.iinfo(np.int32).max)


@def_rule(top_k_p, "abstract_eval")
def _top_k_abstract(x: ShapedArray, *, k: int, axis: int) -> list[ShapedArray]:
    if dtypes.is_complex(x.dtype):
        raise ValueError("top_k is not compatible with complex inputs.")
    check_dtype("top_k", x, ORDERED)
    if x.ndim and not is_symbolic_dim(x.shape[axis]) and x.shape[axis] > _LARGEST_INDEX:
        raise ValueError(
            "top_k returns int32 indices, which will overflow for array dimensions larger than the maximum int32 "
            f"({_LARGEST_INDEX}). Got operand.shape={x.shape}"
        )
    if k < 0:
        raise ValueError(f"k argument to top_k must be nonnegative, got {k}")
    if k > x.shape[axis]:
        raise ValueError(
            "k argument to top_k must be no larger than size along axis; "
            f"got {k=} with shape={list(x.shape)} and {axis=}"
        )
    shape = (*x.shape[:axis], k, *x.shape[axis + 1 :])
    return [ShapedArray(shape, x.dtype, x.weak_type), ShapedArray(shape, np.dtype("int32"))]


@def_rule(top_k_p, "jvp")
def _top_k_jvp(primals: Any, tangents: Any, *, k: int, axis: int) -> Any:
    values, where = top_k_p.bind(*primals, k=k, axis=axis)
    t = tangents[0]
    moved = Zero.of(values) if type(t) is Zero else take_along(t, where, axis)
    return [values, where], [moved, Zero.of(where)]


top_k_p.factors = lambda x, *, k, axis: free_but([x], 2, (axis,))
top_k_p.never("transpose", "top_k is not linear; its derivative is a gather")


@def_rule(top_k_p, "batch")
def _top_k_batch(axis_data: Any, args: Any, dims: Any, *, k: int, axis: int) -> Any:
    return top_k_p.bind(args[0], k=k, axis=axis + (axis >= dims[0])), [dims[0]] * 2
