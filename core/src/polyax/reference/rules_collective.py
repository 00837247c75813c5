"""Collectives between devices, through the host: every member computes its result from what the others give it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polyax.ir.primitive import Primitive
from polyax.ops import collective
from polyax.ops.parts import all_gather_p, all_to_all_p, reduce_scatter_p
from polyax.ops.permuting import ppermute_p
from polyax.reference.table import rule, rules
from polyax.runtime.contract.collectives import SMALL, combined, member


def reduce_into(
    operation: str,
    outs: Sequence[np.ndarray],
    args: Sequence[np.ndarray],
    axes: tuple[Any, ...],
    axis_index_groups: Any,
) -> None:
    """Writes the sums or extrema of the operands of all members where they belong."""
    group, rank = member()
    group.reduce(rank, [np.asarray(x, order="C") for x in args], outs, operation, axes, axis_index_groups)


def _reduction(operation: str) -> Callable[..., list[np.ndarray]]:
    def reduce(*args: np.ndarray, axes: tuple[Any, ...], axis_index_groups: Any) -> list[np.ndarray]:
        outs = [np.empty_like(x, order="C") for x in args]
        reduce_into(operation, outs, args, axes, axis_index_groups)
        return outs

    return reduce


for _p in (collective.psum_p, collective.pmax_p, collective.pmin_p):
    rules(_p)(_reduction(_p.name))


def _dealt(
    primitive: Primitive,
    x: np.ndarray,
    axis_name: Any,
    groups: Any,
    give: Callable[[np.ndarray, int], np.ndarray],
    take: Callable[[list[Any]], np.ndarray],
    **options: Any,
) -> np.ndarray:
    """What ``take`` makes of the parts that the peers give to this member: ``give(x, n)`` for the one at place n."""
    group, rank = member()
    small = x.nbytes <= SMALL
    mine = x.copy() if small else x
    return group.deal(rank, primitive.name, axis_name, groups, lambda n: give(mine, n), take, **options, lasting=small)


@rule(all_gather_p)
def _all_gather(
    x: np.ndarray, *, axis_name: Any, axis_index_groups: Any, all_gather_dimension: int, tiled: bool, **_: Any
) -> np.ndarray:
    join = np.concatenate if tiled else np.stack
    return _dealt(
        all_gather_p,
        x,
        axis_name,
        axis_index_groups,
        lambda x, _: x,
        lambda parts: join(parts, all_gather_dimension),
        same=True,
    )


@rule(reduce_scatter_p)
def _reduce_scatter(
    x: np.ndarray, *, axis_name: Any, axis_index_groups: Any, axis_size: int, scatter_dimension: int, tiled: bool
) -> np.ndarray:
    def give(x: np.ndarray, n: int) -> np.ndarray:
        return pieces(x, scatter_dimension, axis_size, tiled)[n]

    return _dealt(reduce_scatter_p, x, axis_name, axis_index_groups, give, lambda parts: combined("psum", parts))


def pieces(x: np.ndarray, dim: int, size: int, tiled: bool) -> Sequence[np.ndarray]:
    """What ``x`` has for each of the peers."""
    return np.split(x, size, dim) if tiled else np.moveaxis(x, dim, 0)  # type: ignore[return-value]


@rule(all_to_all_p)
def _all_to_all(
    x: np.ndarray,
    *,
    axis_name: Any,
    axis_index_groups: Any,
    axis_size: int,
    split_axis: int,
    concat_axis: int,
    tiled: bool,
) -> np.ndarray:
    join = np.concatenate if tiled else np.stack

    def give(x: np.ndarray, n: int) -> np.ndarray:
        return pieces(x, split_axis, axis_size, tiled)[n]

    names = collective.names_of(axis_name)
    return _dealt(all_to_all_p, x, names, axis_index_groups, give, lambda parts: join(parts, concat_axis))


@rule(ppermute_p)
def _ppermute(x: np.ndarray, *, axis_name: Any, perm: tuple[tuple[int, int], ...]) -> np.ndarray:
    moves = set(perm)

    def take(parts: list[Any]) -> np.ndarray:
        found = next((p for p in parts if p is not None), None)
        return np.zeros_like(x) if found is None else found.copy()

    return _dealt(ppermute_p, x, axis_name, None, lambda x, _: x, take, gives=lambda i, j: (i, j) in moves)


@rule(collective.axis_index_p)
def _axis_index(*, axis_name: Any, **_: Any) -> np.ndarray:
    group, rank = member()
    return np.int32(group.coordinates(rank)[axis_name])  # type: ignore[return-value]
