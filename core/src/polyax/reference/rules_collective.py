"""Collectives between devices, through the host: every member computes its result from the parts of all; of large
sums, its share, which all then put together."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polyax.ops import collective, exchange
from polyax.reference.table import rule, rules
from polyax.runtime.contract.collectives import member

SMALL = 1 << 14
"""Operands of at most this many bytes are copied before members meet, so that they needn't meet again afterwards."""


def _reduction(combine: Callable[[Any, Any], Any]) -> Callable[..., list[np.ndarray]]:
    """Members are combined in their order, so that all get the same bits."""

    def reduce(*args: np.ndarray, axes: tuple[Any, ...], axis_index_groups: Any) -> list[np.ndarray]:
        group, rank = member()
        chosen, own = group.peers(rank, axes, axis_index_groups)
        if sum(x.nbytes for x in args) <= SMALL:
            parts = group.meet(rank, [x.copy() for x in args])
            return [_combined(combine, xs) for xs in zip(*(parts[n] for n in chosen), strict=True)]
        parts = group.meet(rank, [np.reshape(x, -1) for x in args])
        columns = zip(*(parts[n] for n in chosen), strict=True)
        pieces = group.meet(rank, [_combined(combine, [_share(x, own, len(chosen)) for x in xs]) for xs in columns])
        gathered = zip(*(pieces[n] for n in chosen), strict=True)
        return [np.concatenate(xs).reshape(x.shape) for xs, x in zip(gathered, args, strict=True)]

    return reduce


def _combined(combine: Callable[[Any, Any], Any], xs: Sequence[np.ndarray]) -> np.ndarray:
    return functools.reduce(combine, xs).astype(xs[0].dtype, copy=False)


def _share(x: np.ndarray, own: int, count: int) -> np.ndarray:
    """The piece of a vector that a member reduces for all."""
    return x[len(x) * own // count : len(x) * (own + 1) // count]


rules(collective.psum_p)(_reduction(np.add))
rules(collective.pmax_p)(_reduction(np.maximum))
rules(collective.pmin_p)(_reduction(np.minimum))


def _parts(
    x: np.ndarray, axis_name: Any, groups: Any, choose: Callable[[list[np.ndarray], int], np.ndarray]
) -> np.ndarray:
    """What ``choose`` makes of the parts along the axis and the own position there."""
    group, rank = member()
    chosen, own = group.peers(rank, axis_name, groups)
    small = x.nbytes <= SMALL
    parts = group.meet(rank, x.copy() if small else x)
    result = np.array(choose([parts[n] for n in chosen], own))  # a copy: parts may change afterwards
    if not small:
        group.meet(rank, None)
    return result


@rule(exchange.all_gather_p)
def _all_gather(
    x: np.ndarray, *, axis_name: Any, axis_index_groups: Any, all_gather_dimension: int, tiled: bool, **_: Any
) -> np.ndarray:
    join = np.concatenate if tiled else np.stack
    return _parts(x, axis_name, axis_index_groups, lambda parts, _: join(parts, all_gather_dimension))


@rule(exchange.reduce_scatter_p)
def _reduce_scatter(
    x: np.ndarray, *, axis_name: Any, axis_index_groups: Any, axis_size: int, scatter_dimension: int, tiled: bool
) -> np.ndarray:
    def choose(parts: list[np.ndarray], own: int) -> np.ndarray:
        return _combined(np.add, [_piece(p, scatter_dimension, axis_size, own, tiled) for p in parts])

    return _parts(x, axis_name, axis_index_groups, choose)


def _piece(x: np.ndarray, dim: int, size: int, n: int, tiled: bool) -> np.ndarray:
    return np.split(x, size, dim)[n] if tiled else np.take(x, n, dim)


@rule(exchange.all_to_all_p)
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

    def choose(parts: list[np.ndarray], own: int) -> np.ndarray:
        return join([_piece(p, split_axis, axis_size, own, tiled) for p in parts], concat_axis)

    return _parts(x, (axis_name,), axis_index_groups, choose)


@rule(exchange.ppermute_p)
def _ppermute(x: np.ndarray, *, axis_name: Any, perm: tuple[tuple[int, int], ...]) -> np.ndarray:
    source = {d: s for s, d in perm}
    return _parts(x, axis_name, None, lambda parts, own: parts[source[own]] if own in source else np.zeros_like(x))


@rule(collective.axis_index_p)
def _axis_index(*, axis_name: Any, **_: Any) -> np.ndarray:
    group, rank = member()
    return np.int32(group.coordinates(rank)[axis_name])  # type: ignore[return-value]
