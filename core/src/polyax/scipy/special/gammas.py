"""Incomplete gamma and beta functions, the complex logarithm of gamma, and Bernoulli numbers."""

from __future__ import annotations

import math
import operator
from fractions import Fraction
from typing import Any

import numpy as np

from polyax import numpy as jnp
from polyax.control.calls.custom_jvp import custom_jvp
from polyax.ir import dtypes
from polyax.lax import lenient as lax
from polyax.numpy.fused import fused
from polyax.numpy.promotion import promote_args_inexact

__all__ = ["bernoulli", "betainc", "gammainc", "gammaincc", "loggamma"]


def gammainc(a: Any, x: Any) -> Any:
    """The regularised lower incomplete gamma function, with derivatives by both arguments.

    >>> print(f"{gammainc(1.0, 2.0):.4f}")
    0.8647
    """
    return lax.igamma(*promote_args_inexact("gammainc", a, x))


def gammaincc(a: Any, x: Any) -> Any:
    """The regularised upper incomplete gamma function, ``1 - gammainc(a, x)``, accurate where it is small."""
    return lax.igammac(*promote_args_inexact("gammaincc", a, x))


def betainc(a: Any, b: Any, x: Any) -> Any:
    """The regularised incomplete beta function, with derivatives by all arguments.

    >>> print(f"{betainc(2.0, 1.0, 0.5):.4f}")
    0.2500
    """
    return lax.betainc(*promote_args_inexact("betainc", a, b, x))


def bernoulli(n: int) -> Any:
    """The Bernoulli numbers from the 0th to the ``n``-th; that of 1 is -1/2.

    Raises:
      ValueError: ``n`` is negative.

    >>> print(bernoulli(2))
    [ 1.         -0.5         0.16666667]
    """
    n = operator.index(n)
    if n < 0:
        raise ValueError("n must be a non-negative integer.")
    numbers = [Fraction(1)]
    for m in range(1, min(n, 24) + 1):
        numbers.append(-sum((math.comb(m + 1, k) * numbers[k] for k in range(m)), Fraction(0)) / (m + 1))
    floats = [*map(float, numbers), *map(_large_bernoulli, range(25, n + 1))]
    return jnp.asarray(np.array(floats, dtypes.canonicalize(np.float64)))


def _large_bernoulli(n: int) -> float:
    """From zeta(n), which is 1 + 2**-n + 3**-n to rounding here; infinite beyond the floats."""
    if n % 2:
        return 0.0
    log = math.log(2) + math.lgamma(n + 1) - n * math.log(2 * math.pi)
    size = (1 + 2.0**-n + 3.0**-n) * math.exp(log) if log < 709 else math.inf
    return size if n % 4 == 2 else -size


# --- the complex logarithm of gamma -----------------------------------------------------------------------------------


def loggamma(x: Any) -> Any:
    """The principal branch of the logarithm of the gamma function; NaN for real arguments below 0.

    Args:
      x: real or complex; its branch cut is the negative real axis.

    >>> print(loggamma(1.0 + 0.0j) == 0)
    True
    """
    (x,) = promote_args_inexact("loggamma", x)
    x = jnp.asarray(x)
    if dtypes.is_complex(x.dtype):
        return _complex_loggamma(x)
    return jnp.where(x < 0, jnp.nan, lax.lgamma(x))


_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400)
_SHIFT = 7


@fused
@custom_jvp
def _complex_loggamma(z: Any) -> Any:
    """Stirling's series after a shift to the right; the reflection formula in the left half of the plane."""
    left = z.real < 0.5
    w = jnp.where(left, 1.0 - z, z)
    steps = sum(jnp.log(w + k) for k in range(_SHIFT))
    y = w + _SHIFT
    series = sum(c / y ** (2 * k + 1) for k, c in enumerate(_STIRLING))
    right = (y - 0.5) * jnp.log(y) - y + 0.5 * math.log(2 * math.pi) + series - steps
    return jnp.where(left, math.log(math.pi) - _log_sine(z) - right, right)


def _log_sine(z: Any) -> Any:
    """log(sin(pi z)), continuous off the real axis, from exp(-i pi z) (1 - exp(2 i pi z)) i / 2; mirrored below it."""
    below = jnp.signbit(z.imag)
    up = jnp.where(below, jnp.conj(z), z)
    whole = jnp.round(up.real)
    turn = jnp.exp(2j * math.pi * (up - whole).astype(z.dtype))
    log = -1j * math.pi * up + jnp.log1p(-turn) + complex(-math.log(2), math.pi / 2)
    return jnp.where(below, jnp.conj(log), log).astype(z.dtype)


@_complex_loggamma.__wrapped__.defjvp
def _complex_loggamma_jvp(primals: Any, tangents: Any) -> Any:
    (z,), (t,) = primals, tangents
    return _complex_loggamma(z), _complex_digamma(z) * t


def _complex_digamma(z: Any) -> Any:
    left = z.real < 0.5
    w = jnp.where(left, 1.0 - z, z)
    y = w + _SHIFT
    series = sum((2 * k + 1) * c / y ** (2 * k + 2) for k, c in enumerate(_STIRLING))
    right = jnp.log(y) - 0.5 / y - series - sum(1.0 / (w + k) for k in range(_SHIFT))
    return jnp.where(left, right - math.pi / jnp.tan(math.pi * jnp.where(left, z, 0.25)), right)
