"""Positions of extrema as two reductions: the extremum, then the first place where it is.

One loop over pairs of values and places goes from element to element; these two are loops over vectors, which threads
share and which become one kernel where rows are short.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from polyax.ir.aval import ShapedArray
from polyax.ir.dtypes import FLOATS, extremes
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.ir.primitive import Primitive
from polyax.ops.basis import broadcasted_iota, eq, full_like, select_n
from polyax.ops.compare import bitwise_or, ne
from polyax.ops.reduce import argmax_p, argmin_p, reduce_max_p, reduce_min, reduce_min_p, restore_axes
from polyax.trace.recording import trace_to_jaxpr
from polyax_kernels.lower.lowering import Replace


def _why_not(avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> str | None:
    (x,), (axis,) = avals, params["axes"]
    if x.dtype.kind == "b":
        return "booleans have no maximum"
    if x.shape[axis] > extremes(params["index_dtype"])[1]:
        return f"{params['index_dtype']} can't tell {x.shape[axis]} places apart"
    return None


@lru_cache(maxsize=256)
def _program(extremum: Primitive, x: ShapedArray, axes: tuple[int], dtype: Any) -> ClosedJaxpr:
    def compute(x: Any) -> list[Any]:
        shape = np.shape(x)
        there = eq(x, restore_axes(extremum.bind1(x, axes=axes), shape, axes))
        if x.dtype in FLOATS:
            there = bitwise_or(there, ne(x, x))  # where any is NaN, so is the extremum
        places = broadcasted_iota(dtype, shape, axes[0])
        return [reduce_min(select_n(there, full_like(places, extremes(dtype)[1]), places), axes)]

    return trace_to_jaxpr(compute, [x])


def _positions(extremum: Primitive) -> Replace:
    return Replace(lambda avals, axes, index_dtype: _program(extremum, avals[0], tuple(axes), index_dtype), _why_not)


LOWERINGS = {argmax_p: _positions(reduce_max_p), argmin_p: _positions(reduce_min_p)}
