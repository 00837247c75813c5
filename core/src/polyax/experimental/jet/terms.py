"""Series of derivatives: what stands for zeros in them, factorials, and sums of products of coefficients."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.ir.aval import aval_of
from polyax.lax import lenient as lax
from polyax.trace.register import register_pytree_node
from polyax.trace.symbolic import Zero
from polyax.transforms.jvp import jvp_flat


class ZeroTerm:
    """A derivative that is zero."""


class ZeroSeries:
    """A series all of whose terms are zero: that of a constant."""


zero_term = ZeroTerm()
zero_series = ZeroSeries()
register_pytree_node(ZeroTerm, lambda _: ((), None), lambda *_: zero_term)
register_pytree_node(ZeroSeries, lambda _: ((), None), lambda *_: zero_series)

Series = list[Any]
Rule = Callable[..., tuple[Any, Any]]
"""``(primals_in, series_in, **params) -> (primal_out, series_out)``; lists of both, if the primitive has several
results. ``series[k]`` is the derivative of order ``k + 1`` along the curve."""


def fact(n: int) -> Any:
    """``n!``"""
    return math.factorial(n)


def scaled(x: Any, by: float) -> Any:
    """``x`` times a number, in its own dtype."""
    return x if by == 1 else lax.mul(x, np.asarray(by).astype(aval_of(x).dtype)[()])


def coefficients(primal: Any, series: Series) -> list[Any]:
    """Of the Taylor polynomial: the derivatives over factorials."""
    if not dtypes.is_inexact(aval_of(primal).dtype):
        return [primal]
    return [primal, *(scaled(t, 1 / fact(k)) for k, t in enumerate(series, 1))]


def derivatives(polynomial: Sequence[Any]) -> tuple[Any, Series]:
    """The inverse of ``coefficients``."""
    primal, *rest = polynomial
    return primal, [scaled(t, float(fact(k))) for k, t in enumerate(rest, 1)]


def total(terms: Sequence[Any]) -> Any:
    found = terms[0]
    for t in terms[1:]:
        found = lax.add(found, t)
    return found


def zeros_like(x: Any) -> Any:
    aval = aval_of(x)
    return lax.full(aval.shape, 0, aval.dtype)


def by_nested_jvp(fun: Callable[..., Sequence[Any]], primals: Sequence[Any], series: Sequence[Series]) -> Any:
    """The results of ``fun`` and their series, by forward mode applied as often as the order says: for what has no rule
    of its own. Takes time that is exponential in the order."""
    order = len(series[0])
    curves = [coefficients(p, s) for p, s in zip(primals, series, strict=True)]

    def along(t: Any) -> list[Any]:
        return list(fun(*(_evaluated(c, t) for c in curves)))

    derivative, found = along, []
    zero, one = np.float32(0), np.float32(1)
    for n in range(order + 1):
        found.append(derivative(zero))
        derivative = _derivative(derivative, one) if n < order else derivative
    outs, *higher = found
    return outs, [list(terms) for terms in zip(*higher, strict=True)]


def _derivative(f: Callable[[Any], list[Any]], one: Any) -> Callable[[Any], list[Any]]:
    def df(t: Any) -> list[Any]:
        outs, tangents = jvp_flat(f, [t], [one])
        return [zeros_like(x) if type(dx) is Zero else dx for x, dx in zip(outs, tangents, strict=True)]

    return df


def _evaluated(curve: Sequence[Any], t: Any) -> Any:
    dtype = aval_of(curve[0]).dtype
    if not dtypes.is_inexact(dtype):
        return curve[0]
    t = lax.convert_element_type(t, dtype)
    found = curve[-1]
    for c in reversed(curve[:-1]):
        found = lax.add(lax.mul(found, t), c)
    return found
