"""Changing how an array is cut, from inside the program of one device: gathering, slicing, exchanging."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyax.ir.aval import ShapedArray, aval_of
from polyax.meshes.axes import Axes
from polyax.meshes.spec import Cuts
from polyax.ops.collective import axis_index
from polyax.ops.exchange import all_gather
from polyax.ops.index import dynamic_slice


@dataclass(frozen=True)
class Move:
    """An exchange between devices."""

    collective: str
    axes: tuple[Any, ...]
    aval: ShapedArray
    """What each device hands in."""
    nbytes: int
    """What each device sends."""
    reason: str
    source: str = ""
    """The user's line that it is done for."""


def block_aval(aval: ShapedArray, cuts: Cuts, axes: Axes) -> ShapedArray:
    """The type of a block of an array of type ``aval``."""
    sizes = dict(axes)
    return aval.update(
        shape=tuple([n // math.prod(sizes[a] for a in c) for n, c in zip(aval.shape, cuts, strict=True)])
    )


def reshard(x: Any, before: Cuts, after: Cuts, axes: Axes) -> Any:
    """The block of an array cut as ``after`` says, from that cut as ``before`` says."""
    if before == after:
        return x
    for dim, names in enumerate(before):
        if names:
            x = all_gather(x, names, axis=dim, tiled=True)
    return _sliced(x, after, dict(axes))


def _sliced(x: Any, cuts: Sequence[tuple[Any, ...]], sizes: dict[Any, int]) -> Any:
    shape = aval_of(x).shape
    block = [n // math.prod(sizes[a] for a in c) for n, c in zip(shape, cuts, strict=True)]
    if tuple(block) == shape:
        return x
    starts = [axis_index(c) * np.int32(n) if c else np.int32(0) for c, n in zip(cuts, block, strict=True)]
    return dynamic_slice(x, starts, block)
