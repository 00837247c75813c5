"""Running values of long rows where groups of threads share rows: each element is read twice and written once.

The rows are cut into chunks. What a chunk comes to is a reduction; the running values of these, in the same way, are
what comes before each chunk; combined with its first element that begins the running values of the chunk, which is a
row that a group has room for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from polyax.control.folds.reducers import identity
from polyax.ir.aval import ShapedArray
from polyax.ir.jaxpr import ClosedJaxpr, Eqn
from polyax.ir.primitive import Primitive
from polyax.ops.basis import add, broadcasted_iota, eq, full_like, mul, reduce_sum_p, reshape, select_n
from polyax.ops.cumulative import cummax_p, cummin_p, cumprod_p, cumsum_p
from polyax.ops.elementwise import max as max_
from polyax.ops.elementwise import min as min_
from polyax.ops.recurrence import shifted
from polyax.ops.reduce import reduce_max_p, reduce_min_p, reduce_prod_p, restore_axes
from polyax.ops.slicing import pad, slice_in_dim
from polyax.trace.recording import trace_to_jaxpr
from polyax_kernels.ir.limits import NARROW
from polyax_kernels.lower.lowering import Replace, Target

CHUNK, STRIP = 1024, 128
"""Elements of a chunk, at most: along memory, where a group has it; across it, where each thread has one."""
LONG = 2 * CHUNK
"""Rows of fewer elements aren't cut."""
BUSY = 512
"""Threads of a compute unit that keep it at work, each with a row of its own whose elements lie apart."""
ROWS = 1024
"""Rows that are work enough for all threads, where neighbours have neighbouring ones."""


class InChunks(Replace):
    """The program in place of a cumulative operation, where groups share rows."""

    def declines(self, target: Target, eqn: Eqn) -> str | None:
        (x,), axis = [a.aval for a in eqn.invars], eqn.params["axis"]
        if target.limits.group == 1:
            return "each thread has rows of its own"
        if x.shape[axis] < LONG:
            return f"rows of {x.shape[axis]} elements are short"
        if math.prod(x.shape[axis + 1 :]) > 1 and x.size // x.shape[axis] >= target.limits.units * BUSY:
            return "neighbouring threads have neighbouring rows"
        return "running values of narrow numbers are computed in float32" if x.dtype in NARROW else None


def length(size: int, most: int) -> int:
    """Of the chunks of a row: one that leaves nothing, if it isn't much shorter than the longest.

    >>> length(50_000_000, 1024), length(1_000_003, 1024)
    (1000, 1024)
    """
    return next((n for n in range(most, most // 4, -1) if size % n == 0), most)


def in_chunks(primitive: Primitive, combine: Callable[[Any, Any], Any], reduction: Primitive, name: str) -> InChunks:
    """For the cumulative ``primitive`` of what ``combine`` combines and ``reduction`` reduces, from ``identity``."""

    def run(x: Any, axis: int, reverse: bool) -> Any:
        size, none = x.shape[axis], identity(name, x.dtype)
        each = length(size, CHUNK if x.shape[axis + 1 :] == () else STRIP)
        count = -(-size // each)
        config = [(0, count * each - size if n == axis else 0, 0) for n in range(x.ndim)]
        full = x if size == count * each else pad(x, none, config)
        chunks = reshape(full, (*x.shape[:axis], count, each, *x.shape[axis + 1 :]))
        totals = shifted(reduction.bind1(chunks, axes=(axis + 1,)), none, 1, axis, reverse)
        before = primitive.bind1(totals, axis=axis, reverse=reverse)
        place = broadcasted_iota("int32", chunks.shape, axis + 1)
        first = eq(place, full_like(place, each - 1 if reverse else 0))
        begun = select_n(first, chunks, combine(restore_axes(before, chunks.shape, (axis + 1,)), chunks))
        whole = reshape(primitive.bind1(begun, axis=axis + 1, reverse=reverse), full.shape)
        return whole if full is x else slice_in_dim(whole, 0, size, 1, axis)

    @lru_cache(maxsize=64)
    def program(x: ShapedArray, axis: int, reverse: bool) -> ClosedJaxpr:
        return trace_to_jaxpr(lambda x: [run(x, axis, reverse)], [x])

    def replacement(avals: Sequence[ShapedArray], *, axis: int, reverse: bool) -> ClosedJaxpr:
        return program(avals[0], axis, reverse)

    return InChunks(replacement)


LOWERINGS: dict[Primitive, InChunks] = {
    cumsum_p: in_chunks(cumsum_p, add, reduce_sum_p, "add"),
    cumprod_p: in_chunks(cumprod_p, mul, reduce_prod_p, "mul"),
    cummax_p: in_chunks(cummax_p, max_, reduce_max_p, "max"),
    cummin_p: in_chunks(cummin_p, min_, reduce_min_p, "min"),
}
