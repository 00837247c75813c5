"""The largest elements of rows: a few are found one after the other, which is what groups of threads do well.

Each is the largest key that comes after the one before it, and the first place where that is: two reductions over the
row. Keys are integers in the order -NaN < -inf < ... < -0 < +0 < ... < inf < NaN, of which elements can be made again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from polyax.control.flow.looping import scan
from polyax.ir.aval import ShapedArray
from polyax.ir.config import config
from polyax.ir.dtypes import extremes
from polyax.ir.jaxpr import ClosedJaxpr, Eqn
from polyax.ops.basis import broadcasted_iota, convert, eq, expand_dims, full_like, move_axis, select_n
from polyax.ops.compare import bitwise_and, bitwise_not, bitwise_or, bitwise_xor, gt, lt
from polyax.ops.convert import bitcast_convert_type
from polyax.ops.joining import concatenate
from polyax.ops.reduce import reduce_max, reduce_min, restore_axes
from polyax.ops.slicing import slice_in_dim
from polyax.ops.sort import sort
from polyax.trace.recording import trace_to_jaxpr
from polyax_kernels.lower.lowering import Replace, Target

FEW, WRITTEN_OUT = 32, 8
"""Elements that are found one after the other, and those of which no loop is made, at most."""
PLACE = np.dtype("int32")


def in_order(x: Any) -> Any:
    """The keys of elements."""
    if x.dtype.kind == "b":
        return convert(x, np.dtype("uint8"))
    return x if x.dtype.kind in "iu" else _turned(bitcast_convert_type(x, f"int{8 * x.dtype.itemsize}"))


def elements(keys: Any, dtype: np.dtype) -> Any:
    """Those that have ``keys``."""
    if dtype.kind == "b" or keys.dtype == dtype:
        return convert(keys, dtype)
    return bitcast_convert_type(_turned(keys), dtype)


def _turned(bits: Any) -> Any:
    """Between the bits of floats and integers in their order: the greater a negative float's bits, the less it is."""
    return select_n(lt(bits, full_like(bits, 0)), bits, bitwise_xor(bits, full_like(bits, extremes(bits.dtype)[1])))


def one_by_one(x: Any, k: int, axis: int) -> list[Any]:
    """The ``k`` largest elements and their places."""
    keys, places = in_order(x), broadcasted_iota(PLACE, x.shape, axis)
    least, greatest = extremes(keys.dtype)

    def following(found: Sequence[Any], _: Any = None) -> tuple[Sequence[Any], Sequence[Any]]:
        """The next one, from the one before."""
        top, where = [restore_axes(y, x.shape, (axis,)) for y in found]
        left = bitwise_or(lt(keys, top), bitwise_and(eq(keys, top), gt(places, where)))
        best = reduce_max(select_n(left, full_like(keys, least), keys), (axis,))
        there = bitwise_and(left, eq(keys, restore_axes(best, x.shape, (axis,))))
        found = best, reduce_min(select_n(there, full_like(places, extremes(PLACE)[1]), places), (axis,))
        return found, found

    rows = (*x.shape[:axis], *x.shape[axis + 1 :])
    found: Sequence[Any] = full_like(keys, greatest, shape=rows), full_like(places, -1, shape=rows)
    if k <= WRITTEN_OUT:
        each = [(found := following(found)[0]) for _ in range(k)]
        tops, where = [concatenate([expand_dims(y, (axis,)) for y in ys], axis) for ys in zip(*each, strict=True)]
    else:
        tops, where = [move_axis(ys, 0, axis) for ys in scan(following, found, None, length=k)[1]]
    return [elements(tops, x.dtype), where]


def by_sort(x: Any, k: int, axis: int) -> list[Any]:
    """The same of a stable sort, in which larger keys come first."""
    keys = bitwise_not(in_order(x))
    found = sort((keys, broadcasted_iota(PLACE, x.shape, axis)), axis, True, 1)
    tops, where = [slice_in_dim(y, 0, k, 1, axis) for y in found]
    return [elements(bitwise_not(tops), x.dtype), where]


def _program(function: Callable[[Any, int, int], list[Any]]) -> Callable[..., ClosedJaxpr]:
    @lru_cache(maxsize=64)
    def program(x: ShapedArray, k: int, axis: int) -> ClosedJaxpr:
        with config.override(enable_x64=True):  # keys are as wide as elements, wherever the program is compiled
            return trace_to_jaxpr(lambda x: function(x, k, axis), [x])

    return lambda avals, *, k, axis: program(avals[0], k, axis)


class AFew(Replace):
    """In place of ``top_k`` where groups share rows."""

    def declines(self, target: Target, eqn: Eqn) -> str | None:
        k = eqn.params["k"]
        if target.limits.group == 1:
            return "each thread has rows of its own"
        return None if 0 < k <= FEW else f"a sort finds {k} elements sooner"


def _why_no_sort(avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> str | None:
    return f"{params['k']} elements are found one by one" if 0 < params["k"] <= FEW else None


ONE_BY_ONE = AFew(_program(one_by_one))
BY_SORT = Replace(_program(by_sort), _why_no_sort)
"""For backends whose devices sort."""
