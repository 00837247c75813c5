"""Special functions: elementwise, of floating-point arrays; integers are computed as float32."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from polyax import numpy as jnp
from polyax.api.jvp import jvp
from polyax.control.calls.custom_jvp import custom_jvp
from polyax.ir import dtypes
from polyax.ir.aval import aval_of
from polyax.lax import lenient as lax
from polyax.nn.normalize import log_softmax as _log_softmax
from polyax.nn.normalize import logsumexp as logsumexp
from polyax.nn.normalize import softmax as _softmax
from polyax.numpy.broadcast import choose
from polyax.numpy.promotion import as_array, check_arraylike, convert, promote_args_inexact
from polyax.numpy.ufuncs import unary
from polyax.ops.special import zeta_series
from polyax.scipy.special.define import real_arguments, special
from polyax.scipy.special.gammas import loggamma

__all__ = [
    "boxcox", "boxcox1p", "digamma", "entr", "erf", "erfc", "erfinv", "expit", "factorial", "gamma", "gammaln",
    "gammasgn", "kl_div", "log_softmax", "logit", "logsumexp", "multigammaln", "ndtr", "polygamma", "rel_entr",
    "softmax", "xlog1py", "xlogy", "zeta",
]  # fmt: skip

erf = unary("erf", lax.erf, "The error function, 2/sqrt(pi) times the integral of exp(-t**2) from 0 to ``x``.")
erfc = unary("erfc", lax.erfc, "1 - erf(x), exact for large ``x``.")
erfinv = unary("erfinv", lax.erf_inv, "The inverse of ``erf``; infinite at -1 and 1.")
expit = unary("expit", lax.logistic, "1 / (1 + exp(-x)).")
gammaln = unary("gammaln", lax.lgamma, "The logarithm of the absolute value of the gamma function.")
digamma = unary("digamma", lax.digamma, "The derivative of ``gammaln``.")


def logit(x: Any) -> Any:
    """log(x / (1 - x)), the inverse of ``expit``."""
    return _logit(as_array(promote_args_inexact("logit", x)[0]))


@custom_jvp
def _logit(x: Any) -> Any:
    return lax.log(lax.div(x, lax.sub(1.0, x)))


@_logit.defjvp
def _logit_jvp(primals: Any, tangents: Any) -> Any:
    """1 / (x (1 - x)) is infinite at 0 and at 1, and zero at infinity, where the steps' product is NaN."""
    (x,), (t,) = primals, tangents
    return _logit(x), lax.div(t, lax.mul(x, lax.sub(1.0, x)))


def xlogy(x: Any, y: Any) -> Any:
    """x * log(y), and 0 where ``x`` is 0, unless ``y`` is NaN."""
    return _xlogy(*promote_args_inexact("xlogy", x, y))


def xlog1py(x: Any, y: Any) -> Any:
    """x * log(1 + y), and 0 where ``x`` is 0, unless ``y`` is NaN."""
    return _xlog1py(*promote_args_inexact("xlog1py", x, y))


@custom_jvp
def _xlogy(x: Any, y: Any) -> Any:
    return lax.mul(x, lax.log(_harmless(x, y, 1)))


@custom_jvp
def _xlog1py(x: Any, y: Any) -> Any:
    return lax.mul(x, lax.log1p(_harmless(x, y, 0)))


@_xlogy.defjvp
def _xlogy_jvp(primals: Any, tangents: Any) -> Any:
    (x, y), (dx, dy) = primals, tangents
    slope = lax.div(x, _harmless(x, y, 1))
    return _xlogy(x, y), lax.add(lax.mul(dx, lax.log(y)), lax.mul(dy, slope))


@_xlog1py.defjvp
def _xlog1py_jvp(primals: Any, tangents: Any) -> Any:
    (x, y), (dx, dy) = primals, tangents
    slope = lax.div(x, lax.add(_harmless(x, y, 0), lax.full_like(y, 1)))
    return _xlog1py(x, y), lax.add(lax.mul(dx, lax.log1p(y)), lax.mul(dy, slope))


def _harmless(x: Any, y: Any, neutral: int) -> Any:
    """``y``, but ``neutral`` where ``x`` is zero: no logarithm matters there. NaN stays, as in SciPy."""
    vanishes = lax.bitwise_and(lax.eq(x, 0), lax.eq(y, y))
    return choose(vanishes, neutral, y)


def entr(x: Any) -> Any:
    """-x log(x), 0 at 0, where it rises infinitely fast; -inf below."""
    x = as_array(real_arguments("entr", x)[0])
    return choose(lax.lt(x, 0), -np.inf, lax.neg(_xlogx(x)))


@custom_jvp
def _xlogx(x: Any) -> Any:
    return xlogy(x, x)


@_xlogx.defjvp
def _xlogx_jvp(primals: Any, tangents: Any) -> Any:
    """log(x) + 1 is infinite at 0, where the two terms of the product rule are NaN."""
    (x,), (t,) = primals, tangents
    return _xlogx(x), lax.mul(t, lax.add(lax.log(x), 1.0))


def _of_entropy(name: str, *args: Any) -> list[Any]:
    """Arguments of one floating dtype, which are weak if all of those given are."""
    weak_type = all(aval_of(x).weak_type for x in args)
    return [convert(x, aval_of(x).dtype, weak_type) for x in real_arguments(name, *args)]


def rel_entr(p: Any, q: Any) -> Any:
    """p log(p / q); 0 where p is 0 and q is not negative, inf where it is not defined, NaN where either is NaN."""
    p, q = _of_entropy("rel_entr", p, q)
    both = lax.bitwise_and(lax.gt(p, 0), lax.gt(q, 0))
    safe_p, safe_q = choose(both, p, 1.0), choose(both, q, 1.0)
    value = lax.mul(safe_p, lax.sub(lax.log(safe_p), lax.log(safe_q)))
    vanishes = lax.bitwise_and(lax.eq(p, 0), lax.ge(q, 0))
    unknown = lax.bitwise_or(lax.ne(p, p), lax.ne(q, q))
    return choose(both, value, choose(vanishes, 0.0, choose(unknown, np.nan, lax.full_like(value, np.inf))))


def kl_div(p: Any, q: Any) -> Any:
    """p log(p / q) - p + q."""
    p, q = _of_entropy("kl_div", p, q)
    return lax.add(lax.sub(rel_entr(p, q), p), q)


def gammasgn(x: Any) -> Any:
    """The sign of the gamma function: that of a zero at zeros; NaN at negative integers."""
    x = as_array(real_arguments("gammasgn", x)[0])
    below = lax.floor(x)
    odd = lax.ne(lax.rem(below, 2.0), 0)
    negative = choose(lax.eq(below, x), np.nan, choose(odd, -1.0, 1.0))
    signs = choose(lax.lt(x, 0), negative, choose(lax.ne(x, x), np.nan, 1.0))
    return choose(lax.eq(x, 0), lax.sign(lax.div(1.0, x)), lax.convert_element_type(signs, x.dtype))


def gamma(x: Any) -> Any:
    """The gamma function, of complex numbers too."""
    x = as_array(promote_args_inexact("gamma", x)[0])
    if dtypes.is_complex(x.dtype):
        return lax.exp(loggamma(x))
    return lax.mul(gammasgn(x), lax.exp(lax.lgamma(x)))


def factorial(n: Any, exact: bool = False) -> Any:
    """gamma(n + 1); 0 below 0.

    Raises:
      NotImplementedError: ``exact`` integers.
    """
    if exact:
        raise NotImplementedError("factorial with exact=True")
    (n,) = promote_args_inexact("factorial", n)
    return choose(lax.lt(n, 0), 0.0, lax.exp(lax.lgamma(lax.add(n, 1.0))))


def polygamma(n: Any, x: Any) -> Any:
    """The ``n``-th derivative of ``digamma``.

    Raises:
      ValueError: ``n`` isn't of integers, or ``x`` is complex.
    """
    check_arraylike("polygamma", n, x)
    if not dtypes.is_integer(aval_of(n).dtype):
        raise ValueError(f"polygamma takes an order of integer type, got {aval_of(n)}.")
    return lax.polygamma(*real_arguments("polygamma", n, x))


def _by_exponent(y: Any, x: Any, q: Any) -> Any:
    """That of the series, by which the function is computed: term by term."""
    return jvp(lambda s: zeta_series(s, q), (x,), (lax.full_like(x, 1),))[1]


def _by_shift(y: Any, x: Any, q: Any) -> Any:
    return -x * zeta(x + 1.0, q)


@special(_by_exponent, _by_shift)
def _hurwitz(x: Any, q: Any) -> Any:
    return lax.zeta(x, q)


def zeta(x: Any, q: Any = None) -> Any:
    """The Hurwitz zeta function, the sum of (k + q)**-x over k >= 0.

    Raises:
      NotImplementedError: ``q`` is None. Riemann's zeta function is that of ``q=1`` above ``x = 1``.
    """
    if q is None:
        raise NotImplementedError("Riemann's zeta function is not built: for x > 1, it is that of Hurwitz with q=1.")
    x, q = promote_args_inexact("zeta", x, q)
    return _hurwitz(x, q) if dtypes.is_float(aval_of(x).dtype) else lax.zeta(x, q)  # which refuses complex numbers


def multigammaln(a: Any, d: int) -> Any:
    """The logarithm of the ``d``-variate gamma function."""
    (a,) = promote_args_inexact("multigammaln", a)
    a, d = convert(a, aval_of(a).dtype), int(d)
    result = lax.full_like(a, d * (d - 1) / 4 * math.log(math.pi))
    for i in range(d):
        result = lax.add(result, lax.lgamma(lax.sub(a, i / 2)))
    return result


# --- the normal distribution ------------------------------------------------------------------------------------------


def ndtr(x: Any) -> Any:
    """The distribution function of the standard normal distribution.

    Raises:
      TypeError: ``x`` isn't floating-point.
    """
    x = jnp.asarray(x)
    if not dtypes.is_float(x.dtype):
        raise TypeError(f"x.dtype={x.dtype} is not supported: ndtr takes floating-point numbers.")
    return lax.mul(0.5, lax.erfc(lax.mul(lax.convert_element_type(x, x.dtype), -math.sqrt(0.5))))


def boxcox(x: Any, lmbda: Any) -> Any:
    """(x**lmbda - 1) / lmbda, and log(x) where ``lmbda`` is 0."""
    x, lmbda = promote_args_inexact("boxcox", x, lmbda)
    return _power_less_one(lax.log(x), lmbda)


def boxcox1p(x: Any, lmbda: Any) -> Any:
    """``boxcox(1 + x, lmbda)``, exact for small ``x``."""
    x, lmbda = promote_args_inexact("boxcox1p", x, lmbda)
    return _power_less_one(lax.log1p(x), lmbda)


def _power_less_one(log: Any, lmbda: Any) -> Any:
    """(exp(lmbda * log) - 1) / lmbda, and its limit ``log``."""
    zero = lax.eq(lmbda, 0)
    safe = choose(zero, 1.0, lmbda)
    return choose(zero, log, lax.div(lax.expm1(lax.mul(safe, log)), safe))


def softmax(x: Any, /, *, axis: Any = None) -> Any:
    """exp(x) / sum(exp(x)) along ``axis`` (all axes by default)."""
    return _softmax(x, axis)


def log_softmax(x: Any, /, *, axis: Any = None) -> Any:
    """log(softmax(x)) along ``axis`` (all axes by default)."""
    return _log_softmax(x, axis)
