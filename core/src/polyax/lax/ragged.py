"""Products of groups of rows, of different sizes, with a matrix each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.ir.aval import aval_of
from polyax.meshes.resharding import placed_as
from polyax.ops.basis import broadcast_in_dim, broadcasted_iota, convert, move_axis, mul, sub, transpose
from polyax.ops.compare import bitwise_and, ge, lt
from polyax.ops.contract import DotDimensionNumbers, dot_general
from polyax.ops.cumulative import cumsum

__all__ = ["RaggedDotDimensionNumbers", "ragged_dot", "ragged_dot_general"]


@dataclass(frozen=True)
class RaggedDotDimensionNumbers:
    """The dimensions of a ragged product.

    Attributes:
      dot_dimension_numbers: those of a product, ``((lhs, rhs) contracting, (lhs, rhs) batch)``.
      lhs_ragged_dimensions: the dimension of ``lhs`` that groups divide.
      rhs_group_dimensions: the dimension of ``rhs`` that goes over groups, if ``lhs`` is divided along one that stays.
    """

    dot_dimension_numbers: DotDimensionNumbers
    lhs_ragged_dimensions: Sequence[int]
    rhs_group_dimensions: Sequence[int]


_ROWS = RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))


def ragged_dot(
    lhs: Any,
    rhs: Any,
    group_sizes: Any,
    precision: Any = None,
    preferred_element_type: Any = None,
    group_offset: Any = None,
    out_sharding: Any = None,
) -> Any:
    """Groups of rows of ``lhs``, each times a matrix of its own.

    Args:
      lhs: a matrix ``[m, k]``, whose first ``group_sizes[0]`` rows are the first group, and so on.
      rhs: matrices ``[groups, k, n]``.
      group_sizes: integers ``[groups]``; rows after the last group give zeros.

    Returns:
      An array ``[m, n]``.

    >>> import polyax.numpy as jnp
    >>> ragged_dot(jnp.ones((3, 1)), jnp.array([[[1.0]], [[5.0]]]), jnp.array([1, 2])).tolist()
    [[1.0], [5.0], [5.0]]
    """
    return ragged_dot_general(
        lhs, rhs, group_sizes, _ROWS, precision, preferred_element_type, group_offset, out_sharding
    )


def ragged_dot_general(
    lhs: Any,
    rhs: Any,
    group_sizes: Any,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
    precision: Any = None,
    preferred_element_type: Any = None,
    group_offset: Any = None,
    out_sharding: Any = None,
) -> Any:
    """``dot_general`` of operands whose parts belong to groups along a dimension of ``lhs``.

    If that dimension stays, each group has its own part of ``rhs``; if it is contracted, the result has a first
    dimension that goes over groups; if it is a batch dimension, groups make no difference.

    Args:
      group_sizes: integers ``[groups]``, or with the batch dimensions (and, of the contracted one, the dimensions of
        ``lhs`` that stay) before it.

    Raises:
      TypeError: dimensions don't belong together.
      NotImplementedError: ``group_offset`` is given.
    """
    if group_offset is not None:
        raise NotImplementedError("Unimplemented group_offset support.")
    given = group_sizes, ragged_dot_dimension_numbers, precision, preferred_element_type
    if out_sharding is not None:
        return placed_as(out_sharding, ragged_dot_general, lhs, rhs, *given)
    sizes, kinds = _checked(lhs, rhs, group_sizes, ragged_dot_dimension_numbers)
    settings = precision, preferred_element_type
    return kinds(lhs, rhs, sizes, ragged_dot_dimension_numbers, settings)


def _checked(lhs: Any, rhs: Any, group_sizes: Any, numbers: RaggedDotDimensionNumbers) -> Any:
    """The sizes of groups, and what computes products of this kind."""
    ((contracting, of_rhs), (batch, batch_of_rhs)) = numbers.dot_dimension_numbers
    dim = _ragged_dim(np.ndim(lhs), tuple(numbers.lhs_ragged_dimensions))
    if not dtypes.is_integer(aval_of(group_sizes).dtype) or not np.ndim(group_sizes):
        raise TypeError(f"ragged_dot_general requires integer group_sizes with dimensions, got {aval_of(group_sizes)}.")
    _check_sizes(np.shape(lhs), np.shape(group_sizes), dim, batch, contracting)
    groups = tuple(numbers.rhs_group_dimensions)
    if not {*groups}.isdisjoint({*of_rhs, *batch_of_rhs}):
        raise TypeError(
            "ragged_dot_general requires rhs group dimension numbers to be distinct from contracting and batch "
            f"dimensions, got {groups}."
        )
    if dim in contracting or dim in batch:
        if groups:
            raise TypeError(
                "ragged_dot_general requires zero group dimensions in the rhs when lhs ragged dimension is "
                f"contracting or batch, got {groups}."
            )
        return group_sizes, _over_groups if dim in contracting else _plain
    if len(groups) != 1:
        raise TypeError(
            "ragged_dot_general requires exactly one rhs group dimension when lhs ragged dimension is noncontracting, "
            f"got {groups}."
        )
    count, found = np.shape(group_sizes)[-1], np.shape(rhs)[groups[0]]
    if count != found:
        raise TypeError(f"ragged_dot_general expected rhs group dimension size to be {count}, got {found}.")
    return group_sizes, _of_rows


def _ragged_dim(rank: int, ragged: tuple[int, ...]) -> int:
    if len(ragged) != 1:
        raise TypeError(f"ragged_dot_general expects exactly one lhs ragged dimension, got {ragged}.")
    if not 0 <= ragged[0] < rank:
        raise TypeError(
            "ragged_dot_general requires lhs ragged dimension numbers to be nonnegative and less than the number of "
            f"axes of the lhs value, got {ragged[0]} for lhs of rank {rank}."
        )
    return ragged[0]


def _check_sizes(
    lhs: tuple[int, ...], sizes: tuple[int, ...], ragged: int, batch: Sequence[int], contracting: Sequence[int]
) -> None:
    before = _before(len(lhs), ragged, batch, contracting)
    wanted = (*(lhs[d] for d in before), sizes[-1])
    if len(sizes) > 1 and sizes != wanted:
        raise TypeError(f"ragged_dot_general expected group_sizes to have shape {wanted}, got {sizes}.")


def _plain(lhs: Any, rhs: Any, sizes: Any, numbers: RaggedDotDimensionNumbers, settings: Any) -> Any:
    return dot_general(lhs, rhs, numbers.dot_dimension_numbers, *settings)


def _of_rows(lhs: Any, rhs: Any, sizes: Any, numbers: RaggedDotDimensionNumbers, settings: Any) -> Any:
    """The masked rows of each group times its matrix, summed over groups as over a contracted dimension."""
    ((lc, rc), (lb, rb)), group = numbers.dot_dimension_numbers, numbers.rhs_group_dimensions[0]
    masked = _by_group(lhs, sizes, numbers.lhs_ragged_dimensions[0], lb, lc)
    dims = ((0, *(d + 1 for d in lc)), (group, *rc)), (tuple(d + 1 for d in lb), tuple(rb))
    return dot_general(masked, rhs, dims, *settings)


def _over_groups(lhs: Any, rhs: Any, sizes: Any, numbers: RaggedDotDimensionNumbers, settings: Any) -> Any:
    """For each group the product of its part; groups come first in the result."""
    (lc, rc), (lb, rb) = numbers.dot_dimension_numbers
    masked = _by_group(lhs, sizes, numbers.lhs_ragged_dimensions[0], lb, lc)
    dims = (tuple(d + 1 for d in lc), tuple(rc)), (tuple(d + 1 for d in lb), tuple(rb))
    return move_axis(dot_general(masked, rhs, dims, *settings), len(lb), 0)


def _by_group(lhs: Any, sizes: Any, ragged: int, batch: Sequence[int], contracting: Sequence[int]) -> Any:
    """``lhs`` for each group, first, with zeros where elements belong to others."""
    shape, count = np.shape(lhs), np.shape(sizes)[-1]
    whole = (count, *shape)
    before = _before(len(shape), ragged, batch, contracting) if np.ndim(sizes) > 1 else []
    where = [d + 1 for d in before]  # after groups
    ends = cumsum(sizes, np.ndim(sizes) - 1)
    begins = sub(ends, sizes)
    first, last = (broadcast_in_dim(_groups_first(x), whole, (0, *where)) for x in (begins, ends))
    place = broadcasted_iota(aval_of(sizes).dtype, whole, ragged + 1)
    inside = bitwise_and(ge(place, first), lt(place, last))
    spread = broadcast_in_dim(lhs, whole, range(1, len(whole)))
    return mul(spread, convert(inside, aval_of(lhs).dtype))


def _groups_first(x: Any) -> Any:
    n = np.ndim(x)
    return transpose(x, (n - 1, *range(n - 1)))


def _before(rank: int, ragged: int, batch: Sequence[int], contracting: Sequence[int]) -> list[int]:
    """The dimensions of ``lhs`` that sizes may have: those of the batch, and of the same kind as the ragged one
    before it."""
    if ragged in batch:
        return [*batch[: batch.index(ragged)]]
    stay = [d for d in range(rank) if d not in batch and d not in contracting]
    kind = [*contracting] if ragged in contracting else stay
    return [*batch, *kind[: kind.index(ragged)]]
