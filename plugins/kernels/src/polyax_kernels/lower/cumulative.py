"""Cumulative operations along few long rows: chunks run side by side, then each gets what comes before it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from polyax.control.folds.reducers import identity
from polyax.ir.aval import ShapedArray
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.ir.primitive import Primitive
from polyax.ops.basis import add, broadcast_in_dim, mul, neg, reshape, select_n, sub
from polyax.ops.cumulative import cumlogsumexp_p, cummax_p, cummin_p, cumprod_p, cumsum_p
from polyax.ops.elementwise import abs as abs_
from polyax.ops.elementwise import exp, is_finite, log1p
from polyax.ops.elementwise import max as max_
from polyax.ops.elementwise import min as min_
from polyax.ops.recurrence import linear_recurrence_p, shifted
from polyax.ops.slicing import index_in_dim, pad, slice_in_dim
from polyax.trace.recording import trace_to_jaxpr
from polyax_kernels.ir.limits import NARROW
from polyax_kernels.lower.lowering import LoweringKind, Replace

Program = Callable[..., ClosedJaxpr]


def lowerings(long: int, rows: int) -> Mapping[Primitive, LoweringKind]:
    """Of rows of ``long`` elements, if there are fewer than ``rows`` of them."""

    def why_not(avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> str | None:
        length = avals[0].shape[params["axis"]]
        if length < long:
            return f"rows of {length} elements are short"
        if avals[0].size // length >= rows:
            return "there are rows enough to work on"
        if avals[0].dtype in NARROW:
            return "running values of narrow numbers are computed in float32"
        return None

    return {p: Replace(program, why_not) for p, program in PROGRAMS.items()}


def _chunked(primitive: Primitive, neutral: Callable[[np.dtype], Sequence[Any]], joined: Callable[..., Any]) -> Program:
    """``joined(chunks, own, axis, reverse)``: the results, from those that each chunk has for itself, ``own``.

    ``neutral``: what the operands are filled up with.
    """

    @lru_cache(maxsize=64)
    def program(avals: tuple[ShapedArray, ...], axis: int, reverse: bool) -> ClosedJaxpr:
        return trace_to_jaxpr(lambda *xs: [run(xs, axis, reverse)], avals)

    def run(xs: Sequence[Any], axis: int, reverse: bool) -> Any:
        shape = np.shape(xs[0])
        length = 1 << (math.isqrt(shape[axis]) - 1).bit_length()
        count = -(-shape[axis] // length)
        config = [(0, 0, 0)] * len(shape)
        config[axis] = (0, count * length - shape[axis], 0)
        sizes = (*shape[:axis], count, length, *shape[axis + 1 :])
        chunks = [reshape(pad(x, e, config), sizes) for x, e in zip(xs, neutral(xs[0].dtype), strict=True)]
        own = primitive.bind1(*chunks, axis=axis + 1, reverse=reverse)
        whole = reshape(joined(chunks, own, axis, reverse), (*shape[:axis], count * length, *shape[axis + 1 :]))
        return slice_in_dim(whole, 0, shape[axis], 1, axis)

    return lambda avals, *, axis, reverse: program(tuple(avals), axis, reverse)


def _monoid(primitive: Primitive, combine: Callable[[Any, Any], Any], name: str) -> Program:
    def joined(chunks: Sequence[Any], own: Any, axis: int, reverse: bool) -> Any:
        totals = primitive.bind1(_last(own, axis + 1, reverse), axis=axis, reverse=reverse)
        return combine(_before(totals, own, identity(name, own.dtype), axis, reverse), own)

    return _chunked(primitive, lambda dtype: [identity(name, dtype)], joined)


def _affine(chunks: Sequence[Any], own: Any, axis: int, reverse: bool) -> Any:
    """What came before a chunk reaches its elements through the products of the factors up to each."""
    reach = cumprod_p.bind1(chunks[0], axis=axis + 1, reverse=reverse)
    ends = [_last(x, axis + 1, reverse) for x in (reach, own)]
    totals = linear_recurrence_p.bind1(*ends, axis=axis, reverse=reverse)
    return add(mul(reach, _before(totals, own, 0.0, axis, reverse)), own)


def _last(own: Any, axis: int, reverse: bool) -> Any:
    """What each chunk ends with."""
    return index_in_dim(own, 0 if reverse else -1, axis, keepdims=False)


def _before(totals: Any, own: Any, none: Any, axis: int, reverse: bool) -> Any:
    """The total before each chunk, for each of its elements."""
    before = shifted(totals, none, 1, axis, reverse)
    return broadcast_in_dim(before, np.shape(own), [d for d in range(np.ndim(own)) if d != axis + 1])


def _log_of_sum(x: Any, y: Any) -> Any:
    """``log(exp(x) + exp(y))``."""
    top = max_(x, y)
    return select_n(is_finite(top), top, add(top, log1p(exp(neg(abs_(sub(x, y)))))))


PROGRAMS: dict[Primitive, Program] = {
    cumsum_p: _monoid(cumsum_p, add, "add"),
    cumprod_p: _monoid(cumprod_p, mul, "mul"),
    cummax_p: _monoid(cummax_p, max_, "max"),
    cummin_p: _monoid(cummin_p, min_, "min"),
    cumlogsumexp_p: _monoid(cumlogsumexp_p, _log_of_sum, "max"),
    linear_recurrence_p: _chunked(linear_recurrence_p, lambda dtype: [dtype.type(1), dtype.type(0)], _affine),
}
