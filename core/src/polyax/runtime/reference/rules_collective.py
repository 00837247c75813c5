"""Collectives between devices, through the host: every member computes its result from the parts of all."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from polyax.ops import collective as ops
from polyax.runtime.collectives import member
from polyax.runtime.reference.table import rule, rules


def _reduction(combine: Callable[[Any, Any], Any]) -> Callable[..., list[np.ndarray]]:
    """Members are combined in their order, so that all get the same bits."""

    def reduce(*args: np.ndarray, axes: tuple[Any, ...]) -> list[np.ndarray]:
        group, rank = member()
        with group.exchange(rank, args) as parts:
            chosen = [parts[n] for n in group.members(rank, axes)]
            return [functools.reduce(combine, xs).astype(xs[0].dtype) for xs in zip(*chosen, strict=True)]

    return reduce


rules(ops.psum_p)(_reduction(np.add))
rules(ops.pmax_p)(_reduction(np.maximum))
rules(ops.pmin_p)(_reduction(np.minimum))


def _parts(x: np.ndarray, axis_name: Any, choose: Callable[[list[np.ndarray], int], np.ndarray]) -> np.ndarray:
    """What ``choose`` makes of the parts along the axis and the own position there."""
    group, rank = member()
    with group.exchange(rank, x) as parts:
        chosen = [parts[n] for n in group.members(rank, (axis_name,))]
        return np.array(choose(chosen, group.coordinates(rank)[axis_name]))  # a copy: parts may change afterwards


@rule(ops.all_gather_p)
def _all_gather(x: np.ndarray, *, axis_name: Any, all_gather_dimension: int, tiled: bool, **_: Any) -> np.ndarray:
    join = np.concatenate if tiled else np.stack
    return _parts(x, axis_name, lambda parts, _: join(parts, all_gather_dimension))


@rule(ops.reduce_scatter_p)
def _reduce_scatter(
    x: np.ndarray, *, axis_name: Any, axis_size: int, scatter_dimension: int, tiled: bool
) -> np.ndarray:
    def choose(parts: list[np.ndarray], own: int) -> np.ndarray:
        pieces = [_piece(p, scatter_dimension, axis_size, own, tiled) for p in parts]
        return functools.reduce(np.add, pieces).astype(x.dtype)

    return _parts(x, axis_name, choose)


def _piece(x: np.ndarray, dim: int, size: int, n: int, tiled: bool) -> np.ndarray:
    return np.split(x, size, dim)[n] if tiled else np.take(x, n, dim)


@rule(ops.all_to_all_p)
def _all_to_all(
    x: np.ndarray, *, axis_name: Any, axis_size: int, split_axis: int, concat_axis: int, tiled: bool
) -> np.ndarray:
    join = np.concatenate if tiled else np.stack

    def choose(parts: list[np.ndarray], own: int) -> np.ndarray:
        return join([_piece(p, split_axis, axis_size, own, tiled) for p in parts], concat_axis)

    return _parts(x, axis_name, choose)


@rule(ops.ppermute_p)
def _ppermute(x: np.ndarray, *, axis_name: Any, perm: tuple[tuple[int, int], ...], **_: Any) -> np.ndarray:
    source = {d: s for s, d in perm}
    return _parts(x, axis_name, lambda parts, own: parts[source[own]] if own in source else np.zeros_like(x))


@rule(ops.axis_index_p)
def _axis_index(*, axis_name: Any, **_: Any) -> np.ndarray:
    group, rank = member()
    return np.int32(group.coordinates(rank)[axis_name])  # type: ignore[return-value]
