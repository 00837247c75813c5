"""How primitives carry series on: a table, and the kinds of rules that are in it.

What isn't in it is differentiated again and again (``terms.by_nested_jvp``), which is right for each primitive that has
a rule for forward mode. The recurrences are those of Griewank and Walther, *Evaluating Derivatives*, chapter 13.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polyax import numpy as jnp
from polyax.experimental.jet.terms import (
    Series,
    coefficients,
    derivatives,
    scaled,
    total,
    zeros_like,
)
from polyax.experimental.jet.trace import jet_flat, jet_rules
from polyax.ir.aval import aval_of
from polyax.ir.primitive import PRIMITIVES, Primitive
from polyax.lax import lenient as lax
from polyax.ops import elementwise as e
from polyax.ops import special
from polyax.ops.basis import div_p, mul_p
from polyax.ops.contract import dot_general_p
from polyax.ops.conv import conv_general_dilated_p

Recurrence = Callable[..., list[Any]]
call_param_updaters: dict[Primitive, Any] = {}
"""Kept for compatibility: programs that are called are run in place."""


def deflinear(prim: Primitive) -> None:
    """Says that ``prim`` is linear in all its operands together."""
    jet_rules[prim] = lambda primals, series, **params: linear_prop(prim, primals, series, **params)


def linear_prop(prim: Primitive, primals_in: Sequence[Any], series_in: Sequence[Series], **params: Any) -> Any:
    """The rule of linear primitives: each order for itself."""
    higher = [prim.bind_all(*terms, **params) for terms in zip(*series_in)]
    return _single(prim, prim.bind_all(*primals_in, **params), higher)


def defzero(prim: Primitive) -> None:
    """Says that the derivatives of ``prim`` are zero."""
    jet_rules[prim] = lambda primals, series, **params: zero_prop(prim, primals, series, **params)


def zero_prop(prim: Primitive, primals_in: Sequence[Any], series_in: Sequence[Series], **params: Any) -> Any:
    """The rule of primitives that don't vary."""
    outs = prim.bind_all(*primals_in, **params)
    return _single(prim, outs, [list(map(zeros_like, outs))] * len(series_in[0]))


def _single(prim: Primitive, outs: Any, higher: Sequence[Any]) -> Any:
    """The only result and its series."""
    return outs[0], [terms[0] for terms in higher]


def def_comp(prim: Primitive, comp: Callable[..., Any], **kwargs: Any) -> None:
    """Says that ``prim`` is ``comp``, in terms of other primitives."""

    def rule(primals: Sequence[Any], series: Sequence[Series], **params: Any) -> Any:
        outs, higher = jet_flat(lambda *xs: [comp(*xs, **kwargs)], primals, series)
        return outs[0], higher[0]

    jet_rules[prim] = rule


def def_deriv(prim: Primitive, deriv: Callable[[Any], Any]) -> None:
    """Says what the derivative of ``prim``, of one operand, is."""
    jet_rules[prim] = lambda primals, series, **params: deriv_prop(prim, deriv, primals, series, **params)


def deriv_prop(
    prim: Primitive, deriv: Any, primals_in: Sequence[Any], series_in: Sequence[Series], **params: Any
) -> Any:
    """The rule of a primitive with the derivative ``deriv``: ``v' = deriv(u) u'``, order by order."""
    (x,), (series,) = primals_in, series_in
    (value,) = prim.bind_all(x, **params)
    (slope,), (higher,) = jet_flat(lambda x: [deriv(x)], [x], [series])
    c, u, v = coefficients(slope, higher), coefficients(x, series), [value]
    for k in range(1, len(u)):
        v.append(scaled(total([scaled(lax.mul(u[j], c[k - j]), float(j)) for j in range(1, k + 1)]), 1 / k))
    return derivatives(v)


# --- the table --------------------------------------------------------------------------------------------------------


def _bilinear(prim: Primitive) -> None:
    """Products: each order is a sum of products of orders that add up to it."""

    def rule(primals: Sequence[Any], series: Sequence[Series], **params: Any) -> Any:
        u, w = (coefficients(p, s) for p, s in zip(primals, series, strict=True))
        product = lambda a, b: prim.bind_all(a, b, **params)[0]
        return derivatives([total([product(u[j], w[k - j]) for j in range(k + 1)]) for k in range(len(u))])

    jet_rules[prim] = rule


def _rule(prim: Primitive) -> Callable[[Recurrence], Recurrence]:
    """Registers a function from Taylor coefficients of the operands to those of the result."""

    def register(fun: Recurrence) -> Recurrence:
        def rule(primals: Sequence[Any], series: Sequence[Series], **params: Any) -> Any:
            (first,) = prim.bind_all(*primals, **params)
            curves = [coefficients(p, s) for p, s in zip(primals, series, strict=True)]
            return derivatives(fun(first, *curves, **params))

        jet_rules[prim] = rule
        return fun

    return register


@_rule(e.exp_p)
def _exp(v0: Any, u: list[Any], **_: Any) -> list[Any]:
    v = [v0]
    for k in range(1, len(u)):
        v.append(scaled(total([scaled(lax.mul(u[j], v[k - j]), float(j)) for j in range(1, k + 1)]), 1 / k))
    return v


@_rule(e.log_p)
def _log(v0: Any, u: list[Any], **_: Any) -> list[Any]:
    v = [v0]
    for k in range(1, len(u)):
        known = [scaled(lax.mul(v[j], u[k - j]), -j / k) for j in range(1, k)]
        v.append(lax.div(total([u[k], *known]), u[0]))
    return v


@_rule(div_p)
def _div(v0: Any, u: list[Any], w: list[Any], **_: Any) -> list[Any]:
    v = [v0]
    for k in range(1, len(u)):
        known = [lax.neg(lax.mul(v[k - j], w[j])) for j in range(1, k + 1)]
        v.append(lax.div(total([u[k], *known]), w[0]))
    return v


def _sine_and_cosine(u: list[Any], sine: Any, cosine: Any, sign: float) -> tuple[list[Any], list[Any]]:
    """Together: ``s' = c u'`` and ``c' = sign s u'``."""
    s, c = [sine], [cosine]
    for k in range(1, len(u)):
        steps = [(scaled(u[j], j / k), k - j) for j in range(1, k + 1)]
        s_k, c_k = (total([lax.mul(du, other[n]) for du, n in steps]) for other in (c, s))
        s.append(s_k)
        c.append(scaled(c_k, sign))
    return s, c


_rule(e.sin_p)(lambda v0, u, **_: _sine_and_cosine(u, v0, lax.cos(u[0]), -1.0)[0])
_rule(e.cos_p)(lambda v0, u, **_: _sine_and_cosine(u, lax.sin(u[0]), v0, -1.0)[1])
_rule(e.sinh_p)(lambda v0, u, **_: _sine_and_cosine(u, v0, lax.cosh(u[0]), 1.0)[0])
_rule(e.cosh_p)(lambda v0, u, **_: _sine_and_cosine(u, lax.sinh(u[0]), v0, 1.0)[1])


@_rule(e.tanh_p)
def _tanh(v0: Any, u: list[Any], **_: Any) -> list[Any]:
    """``v' = (1 - v^2) u'``, where each order of ``v^2`` needs lower ones alone."""
    return _by_own_value(v0, u, lambda v, n: lax.sub(_one(v0) if n == 0 else zeros_like(v0), _square(v, n)))


@_rule(e.logistic_p)
def _logistic(v0: Any, u: list[Any], **_: Any) -> list[Any]:
    """``v' = (v - v^2) u'``"""
    return _by_own_value(v0, u, lambda v, n: lax.sub(v[n], _square(v, n)))


def _by_own_value(v0: Any, u: list[Any], slope: Callable[[list[Any], int], Any]) -> list[Any]:
    v, c = [v0], []
    for k in range(1, len(u)):
        c.append(slope(v, k - 1))
        v.append(total([scaled(lax.mul(u[j], c[k - j]), j / k) for j in range(1, k + 1)]))
    return v


def _one(x: Any) -> Any:
    aval = aval_of(x)
    return lax.full(aval.shape, 1, aval.dtype)


def _square(v: list[Any], n: int) -> Any:
    return total([lax.mul(v[j], v[n - j]) for j in range(n + 1)])


_rule(e.exp2_p)(lambda v0, u, **_: _by_own_value(v0, u, lambda v, n: scaled(v[n], float(np.log(2.0)))))


@_rule(e.max_p)
def _max(v0: Any, u: list[Any], w: list[Any], **_: Any) -> list[Any]:
    return [v0, *_chosen(u, w, lax.gt)]


@_rule(e.min_p)
def _min(v0: Any, u: list[Any], w: list[Any], **_: Any) -> list[Any]:
    return [v0, *_chosen(u, w, lax.lt)]


def _chosen(u: list[Any], w: list[Any], better: Callable[..., Any]) -> list[Any]:
    """Of the larger or smaller operand; the mean of both where they are equal."""
    first, same = better(u[0], w[0]), lax.eq(u[0], w[0])
    pick = lambda a, b: jnp.where(same, scaled(lax.add(a, b), 0.5), jnp.where(first, a, b))
    return [pick(a, b) for a, b in zip(u[1:], w[1:], strict=True)]


_rule(e.abs_p)(lambda v0, u, **_: [v0, *(lax.mul(lax.sign(u[0]), t) for t in u[1:])])
_rule(e.integer_pow_p)(lambda v0, u, y, **_: _integer_power(u, y))


def _integer_power(u: list[Any], y: int) -> list[Any]:
    """By multiplication, which is right at zero too."""
    if y < 0:
        return _div(lax.integer_pow(u[0], y), [_one(u[0]), *map(zeros_like, u[1:])], _integer_power(u, -y))
    found = [_one(u[0]), *map(zeros_like, u[1:])]
    for _ in range(y):
        found = [_product(found, u, k) for k in range(len(u))]
    return found


def _product(a: list[Any], b: list[Any], k: int) -> Any:
    return total([lax.mul(a[j], b[k - j]) for j in range(k + 1)])


_LINEAR = (
    "neg real imag convert_element_type broadcast_in_dim pad reshape squeeze rev transpose slice"
    " reduce_sum reduce_window_sum fft copy copy_p add sub concatenate add_any cumsum reduce_precision"
)
_ZERO = "floor ceil round sign stop_gradient"


def _register() -> None:
    named = {p.name: p for p in PRIMITIVES}
    for names, define in ((_LINEAR, deflinear), (_ZERO, defzero)):
        for name in names.split():
            if name in named:
                define(named[name])
    for prim in (mul_p, dot_general_p, conv_general_dilated_p):
        _bilinear(prim)


_register()
def_comp(e.tan_p, lambda x: lax.div(lax.sin(x), lax.cos(x)))
def_comp(e.sqrt_p, lambda x: lax.exp(scaled(lax.log(x), 0.5)))
def_deriv(e.expm1_p, lax.exp)
def_deriv(e.log1p_p, lambda x: lax.div(_one(x), lax.add(x, _one(x))))
def_deriv(e.atan_p, lambda x: lax.div(_one(x), lax.add(_one(x), lax.mul(x, x))))
def_deriv(special.erf_p, lambda x: scaled(lax.exp(lax.neg(lax.mul(x, x))), float(2 / np.sqrt(np.pi))))
