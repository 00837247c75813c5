"""Cumulative sums, products, extrema and log-sum-exps along one dimension."""

from __future__ import annotations

from collections.abc import Callable
from operator import index
from typing import Any

from polyax.ir.aval import ShapedArray
from polyax.ir.primitive import Primitive
from polyax.meshes.factors import carried_along
from polyax.ops.basis import eq, full_like, mul, named, select_n, sub
from polyax.ops.compare import gt, lt
from polyax.ops.define import FLOAT, NUMBER, REAL, Accepts, check_dtype, linear
from polyax.ops.elementwise import exp, is_finite
from polyax.ops.recurrence import linear_recurrence, shifted
from polyax.trace.symbolic import Zero

__all__ = [
    "cumlogsumexp", "cumlogsumexp_p", "cummax", "cummax_p", "cummin", "cummin_p", "cumprod", "cumprod_p", "cumsum",
    "cumsum_p",
]  # fmt: skip

Pair = tuple[Any, Any]


def _cumulative(name: str, accepts: Accepts) -> Primitive:
    p = Primitive(name)

    def abstract_eval(x: ShapedArray, *, axis: int, reverse: bool) -> list[ShapedArray]:
        check_dtype(name, x, accepts)
        if not 0 <= axis < x.ndim:
            raise ValueError(f"axis {axis} is out of bounds for array of shape {x.shape}")
        return [x]

    def batch(axis_data: Any, args: Any, dims: Any, *, axis: int, reverse: bool) -> Any:
        return p.bind_all(args[0], axis=axis + (axis >= dims[0]), reverse=reverse), dims

    p.abstract_eval, p.batch = abstract_eval, batch
    p.factors = lambda x, *, axis, reverse: carried_along(x, (axis,))
    p.never("transpose", f"{name} is not linear")
    return p


def _function(p: Primitive, doc: str) -> Callable[..., Any]:
    def cumulative(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
        return p.bind1(operand, axis=index(axis), reverse=bool(reverse))

    return named(cumulative, p.name, doc)


cumsum_p = _cumulative("cumsum", NUMBER)
cumprod_p = _cumulative("cumprod", NUMBER)
cummax_p = _cumulative("cummax", REAL)
cummin_p = _cumulative("cummin", REAL)
cumlogsumexp_p = _cumulative("cumlogsumexp", FLOAT)

cumsum = _function(cumsum_p, "The sums of the elements up to each (from each on, if ``reverse``) along ``axis``.")
cumprod = _function(cumprod_p, "The products of the elements up to each (from each on, if ``reverse``).")
cummax = _function(cummax_p, "The maxima of the elements up to each (from each on, if ``reverse``).")
cummin = _function(cummin_p, "The minima of the elements up to each (from each on, if ``reverse``).")
cumlogsumexp = _function(cumlogsumexp_p, "``log(cumsum(exp(x)))``, without overflow.")

cumsum_p.absent.clear()
linear(cumsum_p, lambda ct, x, axis, reverse: cumsum(ct, axis, not reverse))

# --- derivatives ----------------------------------------------------------------------------------------------------
# A cumulative operation with combine(a, b) has the derivative of the recurrence y[i] = combine(y[i-1], x[i]), which is
# a recurrence itself, and linear.


def _recurrence_jvp(p: Primitive, factors: Callable[[Any, Any, Any], Pair], neutral: float) -> None:
    """``dy[i] = a dy[i-1] + b dx[i]``, where ``factors(x[i], y[i-1], y[i])`` are ``a`` and ``b``, made once.

    ``neutral`` stands for what comes before the first element.
    """

    def jvp(primals: Any, tangents: Any, *, axis: int, reverse: bool) -> Any:
        (x,), (t,) = primals, tangents
        y = p.bind1(x, axis=axis, reverse=reverse)
        if type(t) is Zero:
            return [y], [Zero.of(y)]
        kept, taken = factors(x, shifted(y, neutral, 1, axis, reverse), y)
        return [y], [linear_recurrence(kept, mul(t, taken), axis, reverse)]

    p.jvp = jvp


def _log_sums(x: Any, before: Any, y: Any) -> Pair:
    """They add up to 1."""
    finite = select_n(is_finite(y), full_like(y, 0), y)
    return exp(sub(before, finite)), exp(sub(x, finite))


def _extremum(wins: Callable[[Any, Any], Any]) -> Callable[[Any, Any, Any], Pair]:
    """The winner's tangent; the mean of both where they are equal. Nothing is equal to NaN, nor wins against it."""

    def factors(x: Any, before: Any, y: Any) -> Pair:
        shared = select_n(eq(before, x), full_like(x, 1), full_like(x, 0.5))
        taken = select_n(wins(before, x), shared, full_like(x, 0))
        return sub(full_like(x, 1), taken), taken

    return factors


_recurrence_jvp(cumprod_p, lambda x, before, y: (x, before), 1.0)
_recurrence_jvp(cumlogsumexp_p, _log_sums, float("-inf"))
_recurrence_jvp(cummax_p, _extremum(gt), float("nan"))
_recurrence_jvp(cummin_p, _extremum(lt), float("nan"))
