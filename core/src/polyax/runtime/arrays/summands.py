"""Blocks of an array as parts of a sum that is still to be made: each among zeros, where it belongs."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyax.meshes.current import without_mesh
from polyax.meshes.sharding import NamedSharding, bounds
from polyax.ops.slicing import pad
from polyax.runtime.arrays.array import Array
from polyax.trace.context import set_trace


def cut_besides(x: Array, layout: NamedSharding) -> frozenset[Any] | None:
    """Along which axes an array is cut further than ``layout`` says; None if it lies otherwise."""
    lies = x.sharding
    if not isinstance(lies, NamedSharding) or lies.mesh != layout.mesh:
        return None
    pairs = list(zip(lies.cuts(x.ndim), layout.cuts(x.ndim), strict=True))
    if any(has[: len(wanted)] != wanted for has, wanted in pairs):
        return None
    return frozenset(a for has, wanted in pairs for a in has[len(wanted) :])


def among_zeros(x: Array, layout: NamedSharding) -> list[Array]:
    """On each device what it has of ``x``, in a block as ``layout`` has it, of which the rest is zero."""
    ends = [s.addressable_devices_indices_map(x.shape).values() for s in (x.sharding, layout)]
    found: list[Array] = []
    with set_trace(None), without_mesh():
        for part, own, block in zip(x.parts, *ends, strict=True):
            spans = zip(bounds(own, x.shape), bounds(block, x.shape), strict=True)
            found.append(
                pad(part, np.zeros((), x.dtype), [(a - first, last - b, 0) for (a, b), (first, last) in spans])
            )
    return found
