"""The largest elements, with leave to miss some: exact here, and as many as the approximation would give.

How many follows Chern et al., "TPU-KNN: k nearest neighbor search at peak FLOP/s" (2022): elements are thrown into
bins, of which each gives its largest; the recall is a matter of how many bins there are.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.ir.aval import aval_of
from polyax.ops.basis import canonical_axis, neg
from polyax.ops.sort import top_k

__all__ = ["approx_max_k", "approx_min_k"]


def approx_max_k(
    operand: Any,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> list[Any]:
    """The ``k`` largest elements along ``reduction_dimension`` in descending order, and their indices.

    The results are exact, so that the recall is 1 whatever is asked for.

    Args:
      operand: floating-point numbers.
      k: how many are wanted.
      reduction_dimension: along which dimension.
      recall_target: how many of the ``k`` may be expected among the results: above 0, at most 1.
      reduction_input_size_override: of how many elements in all these are a part, if parts are searched apart.
      aggregate_to_topk: whether there are ``k`` results; else as many as there are bins, the largest first.

    Raises:
      TypeError: ``operand`` is a scalar.
      ValueError: it isn't floating-point, or an argument is out of its range.

    >>> import polyax.numpy as jnp
    >>> [x.tolist() for x in approx_max_k(jnp.array([3.0, 1.0, 4.0]), 2)]
    [[4.0, 3.0], [2, 0]]
    """
    axis = _checked(operand, k, reduction_dimension, recall_target, reduction_input_size_override)
    if not aggregate_to_topk:
        shape = np.shape(operand)
        k = _bins(shape[axis], len(shape), k, recall_target, reduction_input_size_override)
    return top_k(operand, k, axis=axis)


def approx_min_k(
    operand: Any,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> list[Any]:
    """The ``k`` smallest elements in ascending order, and their indices; in all else as ``approx_max_k``."""
    settings = (reduction_dimension, recall_target, reduction_input_size_override, aggregate_to_topk)
    negated, where = approx_max_k(neg(operand), k, *settings)
    return [neg(negated), where]


def _checked(operand: Any, k: int, dimension: int, recall: float, whole: int) -> int:
    aval = aval_of(operand)
    if not aval.shape:
        raise TypeError(f"approx_top_k operand must have >= 1 dimension, got {aval.shape}")
    axis = canonical_axis(dimension, len(aval.shape))
    if k <= 0:
        raise ValueError(f"k must be positive, got {k}")
    if aval.shape[axis] < k:
        raise ValueError(f"k must be smaller than the size of reduction_dim {aval.shape[axis]}, got {k}")
    if not dtypes.is_float(aval.dtype):
        raise ValueError(f"operand must be a floating type, got {aval}")
    if not 0 < recall <= 1:
        raise ValueError(f"recall_target should range in (0, 1], got {recall}")
    if 0 <= whole < aval.shape[axis]:
        raise ValueError(
            f"reduction_input_size_override must be at least the size of reduction_dim {aval.shape[axis]}, got {whole}"
        )
    return axis


def _bins(size: int, rank: int, k: int, recall: float, whole: int) -> int:
    """How many elements are left when pairs of tiles have been merged as often as the recall allows."""
    tile = 1024 if rank == 1 else 128
    if size <= tile:
        return size
    if k == 1:  # the largest is in some bin, however few there are
        return tile
    whole = size if whole < 0 else whole
    needed = int((1 - k) / math.log(recall)) if recall < 1 else whole + 1
    halvings = (whole // max(needed, tile)).bit_length() - 1
    if halvings <= 0:
        return size
    halvings = min(halvings, (size // tile - 1).bit_length())
    tiles = -(-size // tile)
    return -(-tiles // 2**halvings) * tile
