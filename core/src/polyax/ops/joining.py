"""Joining and cutting along a dimension: concatenate, stack, split, unstack, tile."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from operator import index
from typing import Any

import numpy as np

from polyax.ir.aval import ShapedArray, Typed
from polyax.ir.primitive import Primitive, def_rule
from polyax.meshes.factors import free_but
from polyax.ops.basis import broadcast_in_dim, canonical_axis, match_axis, reshape, shape_tuple, squeeze
from polyax.ops.define import check_same_dtype, linear_jvp
from polyax.ops.slicing import Sizes, slice_in_dim
from polyax.ops.zeros import instantiate, zero_cotangents
from polyax.trace.symbolic import Zero, is_undef

__all__ = [
    "concatenate", "concatenate_p", "split", "split_p", "stack", "tile", "unstack",
]  # fmt: skip

concatenate_p = Primitive("concatenate")
split_p = Primitive("split", multiple_results=True)

# --- concatenate ----------------------------------------------------------------------------------------------------


def concatenate(operands: Sequence[Any], dimension: int) -> Any:
    """``operands`` joined along ``dimension``; their other sizes are equal."""
    if len(operands) == 0:
        raise ValueError("concatenate requires a non-empty sequences of arrays")
    if len(operands) == 1 and isinstance(operands[0], Typed):
        return operands[0]
    return concatenate_p.bind1(*operands, dimension=index(dimension))


@def_rule(concatenate_p, "abstract_eval")
def _concatenate_abstract(*avals: ShapedArray, dimension: int) -> list[ShapedArray]:
    shapes = [a.shape for a in avals]
    listed = ", ".join(map(str, shapes))
    if len({len(s) for s in shapes}) > 1:
        raise TypeError(f"Cannot concatenate arrays with different numbers of dimensions: got {listed}.")
    if not 0 <= dimension < len(shapes[0]):
        raise TypeError(f"concatenate dimension out of bounds: dimension {dimension} for shapes {listed}.")
    if len({(s[:dimension], s[dimension + 1 :]) for s in shapes}) > 1:
        raise TypeError(
            "Cannot concatenate arrays with shapes that differ in dimensions other than the one being concatenated: "
            f"concatenating along dimension {dimension} for shapes {listed}."
        )
    check_same_dtype("concatenate", avals)
    first, total = shapes[0], sum(s[dimension] for s in shapes)
    shape = (*first[:dimension], total, *first[dimension + 1 :])
    return [ShapedArray(shape, avals[0].dtype, all(a.weak_type for a in avals))]


concatenate_p.jvp = linear_jvp(concatenate_p)
concatenate_p.factors = lambda *avals, dimension: free_but(avals, 1, (dimension,))


@def_rule(concatenate_p, "transpose")
def _concatenate_transpose(cts: Any, *operands: Any, dimension: int) -> list[Any]:
    (ct,) = cts
    if type(ct) is Zero:
        return zero_cotangents(*operands)
    sizes = [(x.aval.shape if is_undef(x) else np.shape(x))[dimension] for x in operands]
    ends = list(accumulate(sizes))
    return [
        slice_in_dim(ct, end - size, end, axis=dimension) if is_undef(x) else None
        for x, size, end in zip(operands, sizes, ends, strict=True)
    ]


@def_rule(concatenate_p, "batch")
def _concatenate_batch(axis: Any, args: Any, dims: Any, *, dimension: int) -> Any:
    operands = [match_axis(axis, d, 0, x) for x, d in zip(args, dims, strict=True)]
    return concatenate_p.bind_all(*operands, dimension=dimension + 1), [0]


def refuse_unequal(shapes: Sequence[tuple[int, ...]]) -> None:
    """Raises ValueError unless arrays of these shapes can be stacked."""
    told = ", ".join(map(str, shapes))
    if len({len(s) for s in shapes}) > 1:
        raise ValueError(f"Cannot stack arrays with different numbers of dimensions: got {told}.")
    if len({*shapes}) > 1:
        raise ValueError(f"All input arrays must have the same shape. Got {told}.")


def stack(operands: Sequence[Any], axis: int = 0) -> Any:
    """``operands`` of one shape, joined along a new dimension."""
    if len(operands) == 0:
        raise ValueError("stack expects at least one operand, got 0.")
    shape, *_ = shapes = [np.shape(x) for x in operands]
    refuse_unequal(shapes)
    axis = canonical_axis(axis, len(shape) + 1)
    new = (*shape[:axis], 1, *shape[axis:])
    return concatenate([reshape(x, new) for x in operands], axis)


# --- split ----------------------------------------------------------------------------------------------------------


def split(operand: Any, sizes: Sequence[int], axis: int = 0) -> list[Any]:
    """``operand`` cut along ``axis`` into pieces of the given sizes.

    Raises:
      ValueError: the sizes don't add up.

    >>> import polyax.numpy as jnp
    >>> from polyax import lax
    >>> [piece.tolist() for piece in lax.split(jnp.arange(3), (1, 2))]
    [[0], [1, 2]]
    """
    return split_p.bind(operand, sizes=shape_tuple(sizes), axis=canonical_axis(axis, np.ndim(operand)))


@def_rule(split_p, "abstract_eval")
def _split_abstract(x: ShapedArray, *, sizes: Sizes, axis: int) -> list[ShapedArray]:
    if any(n < 0 for n in sizes):
        raise ValueError(f"Sizes passed to split must be nonnegative, got {list(sizes)}")
    if sum(sizes) != x.shape[axis]:
        raise ValueError(
            f"Sum of sizes {sum(sizes)} must be equal to dimension {axis} of the operand shape {list(x.shape)}"
        )
    return [ShapedArray((*x.shape[:axis], n, *x.shape[axis + 1 :]), x.dtype, x.weak_type) for n in sizes]


split_p.jvp = linear_jvp(split_p)
split_p.factors = lambda x, *, sizes, axis: free_but([x], len(sizes), (axis,))


@def_rule(split_p, "transpose")
def _split_transpose(cts: Any, x: Any, *, sizes: Sizes, axis: int) -> list[Any]:
    if all(type(ct) is Zero for ct in cts):
        return [Zero(x.aval)]
    return [concatenate(list(map(instantiate, cts)), axis)]


split_p.linear_in = (0,)


@def_rule(split_p, "batch")
def _split_batch(axis_data: Any, args: Any, dims: Any, *, sizes: Sizes, axis: int) -> Any:
    return split_p.bind(args[0], sizes=sizes, axis=axis + (axis >= dims[0])), dims * len(sizes)


def unstack(x: Any, axis: int = 0) -> tuple[Any, ...]:
    """The slices of ``x`` along ``axis``."""
    shape = np.shape(x)
    if not shape:
        raise ValueError(f"unstack requires arrays with rank > 0, however a scalar array of shape {shape} was passed.")
    axis = canonical_axis(axis, len(shape))
    if shape[axis] == 0:
        return ()
    return tuple(squeeze(piece, (axis,)) for piece in split(x, (1,) * shape[axis], axis))


def tile(operand: Any, reps: Sequence[int]) -> Any:
    """``operand`` repeated ``reps[i]`` times along its dimension ``i``."""
    shape, reps = np.shape(operand), shape_tuple(reps)
    if len(reps) != len(shape):
        raise TypeError(
            f"reps length must be equal to the ndim of x, got len(reps)={len(reps)} and x.ndim={len(shape)}."
        )
    pairs = tuple(n for pair in zip(reps, shape, strict=True) for n in pair)
    repeated = broadcast_in_dim(operand, pairs, range(1, len(pairs), 2))
    return reshape(repeated, tuple(r * n for r, n in zip(reps, shape, strict=True)))
