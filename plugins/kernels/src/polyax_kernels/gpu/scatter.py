"""Scatters whose updates may meet, where threads have no order: of those that meet, the last one is found first.

Each update leaves its number where it belongs, unless a larger one is there; an element is then what the number says.
So results repeat, and are those of a loop over the updates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from polyax.ir.aval import ShapedArray
from polyax.ir.config import config
from polyax.ir.jaxpr import ClosedJaxpr, Eqn
from polyax.ops.basis import full, iota, reshape, select_n
from polyax.ops.compare import ge
from polyax.ops.gather import GatherDimensionNumbers, gather
from polyax.ops.scatter import scatter_max_p
from polyax.trace.recording import trace_to_jaxpr
from polyax_kernels.lower.lowering import Replace, Target

FEW = 1 << 14
"""An operand with so many times the elements of its updates is passed in the time that one thread needs for them."""


@dataclass(frozen=True)
class LastWins(Replace):
    """For devices on which threads may update the same place at once."""

    def declines(self, target: Target, eqn: Eqn) -> str | None:
        x, indices, updates = (v.aval for v in eqn.invars)
        number = _numbers(updates)
        if target.limits.group == 1 or number.itemsize not in target.limits.atomics:
            return "no two threads may update one place at once"
        if eqn.params["unique_indices"] or prod(indices.shape[:-1]) < 2:
            return "its updates don't meet"
        return f"one thread is soon done with {updates.size} updates" if updates.size * FEW <= x.size else None


def _numbers(updates: ShapedArray) -> np.dtype:
    return np.dtype("int32" if updates.size < 2**31 else "int64")


def program(avals: Sequence[ShapedArray], **params: Any) -> ClosedJaxpr:
    return _program(tuple(avals), tuple(params.items()))


@lru_cache(maxsize=256)
def _program(avals: tuple[ShapedArray, ...], params: tuple[tuple[str, Any], ...]) -> ClosedJaxpr:
    number, size = _numbers(avals[2]), avals[2].size

    def compute(x: Any, indices: Any, updates: Any) -> list[Any]:
        numbers = reshape(iota(number, size), avals[2].shape)
        last = scatter_max_p.bind1(full(avals[0].shape, -1, number), indices, numbers, **dict(params))
        found = gather(
            reshape(updates, (size,)),
            reshape(last, (*avals[0].shape, 1)),
            GatherDimensionNumbers(offset_dims=(), collapsed_slice_dims=(0,), start_index_map=(0,)),
            slice_sizes=(1,),
            mode="clip",
        )
        return [select_n(ge(last, 0), x, found)]

    with config.override(enable_x64=True):  # numbers may be wide, wherever the program is compiled
        return trace_to_jaxpr(compute, avals)
