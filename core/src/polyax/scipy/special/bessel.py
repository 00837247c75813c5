"""Bessel functions: modified ones of order 0 and 1, and those of the first kind of integer order."""

from __future__ import annotations

import operator
from typing import Any

from polyax import numpy as jnp
from polyax.control.flow.looping import fori_loop
from polyax.ir import dtypes
from polyax.lax import lenient as lax
from polyax.numpy.fused import fused
from polyax.numpy.promotion import promote_args_inexact

__all__ = ["bessel_jn", "i0", "i0e", "i1", "i1e"]


def i0e(x: Any) -> Any:
    """``exp(-abs(x)) i0(x)``, which doesn't overflow."""
    return lax.bessel_i0e(*promote_args_inexact("i0e", x))


def i0(x: Any) -> Any:
    """The modified Bessel function of order 0.

    >>> print(f"{i0(1.0):.5f}")
    1.26607
    """
    (x,) = promote_args_inexact("i0", x)
    return lax.mul(lax.exp(lax.abs(x)), lax.bessel_i0e(x))


def i1e(x: Any) -> Any:
    """``exp(-abs(x)) i1(x)``, which doesn't overflow."""
    return lax.bessel_i1e(*promote_args_inexact("i1e", x))


def i1(x: Any) -> Any:
    """The modified Bessel function of order 1."""
    (x,) = promote_args_inexact("i1", x)
    return lax.mul(lax.exp(lax.abs(x)), lax.bessel_i1e(x))


def bessel_jn(z: Any, *, v: int, n_iter: int = 50) -> Any:
    """The Bessel functions of the first kind of the orders 0 to ``v``, by backward recurrence (Miller's algorithm).

    Args:
      z: floats.
      n_iter: the order where the recurrence begins, above which the functions are taken for 0.

    Returns:
      An array of shape ``(v + 1, *z.shape)``.

    Raises:
      TypeError: ``v`` is no integer.
      ValueError: ``z`` isn't of floats.

    >>> print(f"{bessel_jn(1.0, v=2)[0]:.5f}")
    0.76520
    """
    v = operator.index(v)
    z = jnp.asarray(z)
    if not dtypes.is_float(z.dtype):
        raise ValueError(f"The input dtype must be float, got {z.dtype}.")
    return _downwards(z, v, max(operator.index(n_iter), v + 1))


@fused(static_argnames=("v", "n"))
def _downwards(z: Any, v: int, n: int) -> Any:
    """J[k-1] = 2k / z J[k] - J[k+1], scaled such that J[0] + 2 (J[2] + J[4] + ...) = 1.

    The numbers grow fast for small z: where they become large, all that there is so far is scaled down.
    """
    zero = z == 0
    inverse = 2.0 / jnp.where(zero, 1.0, z)
    large = float(jnp.finfo(z.dtype).max) ** 0.25

    def body(i: Any, state: Any) -> Any:
        above, here, norm, kept = state
        k = n - i
        below = k * inverse * here - above
        factor = jnp.where(jnp.abs(below) > large, 1.0 / jnp.abs(below), 1.0)
        here, below, norm, kept = here * factor, below * factor, norm * factor, kept * factor
        norm = norm + jnp.where((k - 1) % 2 == 0, jnp.where(k == 1, 1.0, 2.0) * below, 0.0)
        kept = jnp.where(_orders(kept) == k - 1, below, kept)
        return here, below, norm, kept

    small = jnp.full_like(z, 1.0 / large)
    start = jnp.zeros_like(z), small, jnp.zeros_like(z), jnp.zeros((v + 1, *z.shape), z.dtype)
    _, _, norm, kept = fori_loop(0, n, body, start)
    at_zero = jnp.where(_orders(kept) == 0, 1.0, 0.0)
    return jnp.where(zero, at_zero, kept / jnp.where(zero, 1.0, norm)).astype(z.dtype)


def _orders(x: Any) -> Any:
    return lax.broadcasted_iota("int32", x.shape, 0)
