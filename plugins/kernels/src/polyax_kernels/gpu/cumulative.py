"""Cumulative operations along few long rows: chunks run side by side, then each gets what comes before it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from polyax.control.folds.reducers import identity
from polyax.ir.aval import ShapedArray
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.ir.primitive import Primitive
from polyax.ops.basis import add, broadcast_in_dim, mul, reshape
from polyax.ops.cumulative import cummax_p, cummin_p, cumprod_p, cumsum_p, shifted
from polyax.ops.elementwise import max as max_
from polyax.ops.elementwise import min as min_
from polyax.ops.slicing import index_in_dim, pad, slice_in_dim
from polyax.trace.recording import trace_to_jaxpr
from polyax_kernels.lower.lowering import LoweringKind, Replace

LONG = 2048
"""Elements of a row from which on chunks pay."""
ROWS = 1024
"""Rows that are work enough for all threads."""


def _why_not(avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> str | None:
    length = avals[0].shape[params["axis"]]
    if length < LONG:
        return f"rows of {length} elements are short"
    if avals[0].size // length >= ROWS:
        return "there is a row for each thread"
    return None


def _chunked(primitive: Primitive, combine: Callable[[Any, Any], Any], monoid: str) -> Replace:
    @lru_cache(maxsize=64)
    def program(aval: ShapedArray, axis: int, reverse: bool) -> ClosedJaxpr:
        return trace_to_jaxpr(lambda x: [run(x, aval.shape, axis, reverse)], [aval])

    def run(x: Any, shape: tuple[int, ...], axis: int, reverse: bool) -> Any:
        none = identity(monoid, x.dtype)
        length = 1 << (math.isqrt(shape[axis]) - 1).bit_length()
        count = -(-shape[axis] // length)
        config = [(0, 0, 0)] * len(shape)
        config[axis] = (0, count * length - shape[axis], 0)
        sizes = (*shape[:axis], count, length, *shape[axis + 1 :])
        own = primitive.bind1(reshape(pad(x, none, config), sizes), axis=axis + 1, reverse=reverse)
        totals = index_in_dim(own, 0 if reverse else -1, axis + 1, keepdims=False)
        before = primitive.bind1(shifted(totals, none, 1, axis, reverse), axis=axis, reverse=reverse)
        stretched = broadcast_in_dim(before, sizes, [d for d in range(len(sizes)) if d != axis + 1])
        whole = reshape(combine(stretched, own), (*shape[:axis], count * length, *shape[axis + 1 :]))
        return slice_in_dim(whole, 0, shape[axis], 1, axis)

    return Replace(lambda avals, *, axis, reverse: program(avals[0], axis, reverse), _why_not)


CUMULATIVE: dict[Primitive, LoweringKind] = {
    cumsum_p: _chunked(cumsum_p, add, "add"),
    cumprod_p: _chunked(cumprod_p, mul, "mul"),
    cummax_p: _chunked(cummax_p, max_, "max"),
    cummin_p: _chunked(cummin_p, min_, "min"),
}
