"""Programs on blocks, run without devices: mapped over the axes of the mesh, in one process."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import polyax
from polyax.control.inner.programs import run
from polyax.meshes.axes import Axes
from polyax.meshes.spec import Cuts
from polyax.partition.partition import Partitioned, partition

Place = tuple[int, ...]


def places(axes: Axes) -> list[Place]:
    return list(itertools.product(*(range(size) for _, size in axes)))


def block(x: Any, cuts: Cuts, axes: Axes, place: Place) -> np.ndarray:
    """The part of ``x`` that the device at a place of the mesh has."""
    at, sizes = dict(zip([name for name, _ in axes], place, strict=True)), dict(axes)
    x = np.asarray(x)
    for dim, names in enumerate(cuts):
        for name in names:  # of what the outer ones left
            x = np.split(x, sizes[name], dim)[at[name]]
    return x


def on_blocks(parted: Partitioned, axes: Axes, args: Sequence[Any]) -> list[np.ndarray]:
    """The blocks of each result, along leading dimensions that are those of the mesh."""
    shape = [size for _, size in axes]
    blocks = [np.stack([block(x, c, axes, p) for p in places(axes)]) for x, c in zip(args, parted.ins, strict=True)]
    mapped: Callable[..., Any] = lambda *xs: run(parted.program, xs)
    for name, size in reversed(axes):
        mapped = polyax.vmap(mapped, axis_name=name, axis_size=size)
    return [np.asarray(y) for y in polyax.jit(mapped)(*(b.reshape(*shape, *b.shape[1:]) for b in blocks))]


def partitioned(fun: Callable[..., Any], args: Sequence[Any], axes: Axes, ins: Any, outs: Any = None) -> Partitioned:
    closed = polyax.make_jaxpr(fun)(*args)
    return partition(closed, axes, ins, outs or [None] * len(closed.out_avals))


def check_blocks(
    parted: Partitioned, axes: Axes, args: Sequence[Any], wanted: Sequence[Any], same: Callable[..., None]
) -> None:
    """Each device has its part of each result."""
    for cuts, found, whole in zip(parted.outs, on_blocks(parted, axes, args), wanted, strict=True):
        for place in places(axes):
            same(found[place], block(whole, cuts, axes, place))
