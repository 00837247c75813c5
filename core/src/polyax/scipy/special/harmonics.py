"""Spherical harmonics, by recurrences of normalised associated Legendre functions."""

from __future__ import annotations

import math
from typing import Any

from polyax import numpy as jnp
from polyax.lax import lenient as lax
from polyax.numpy.fused import fused
from polyax.numpy.promotion import ensure_array, refuse_traced

__all__ = ["sph_harm_y"]


def sph_harm_y(n: Any, m: Any, theta: Any, phi: Any, diff_n: Any = None, n_max: int | None = None) -> Any:
    """The spherical harmonics of degree ``n`` and order ``m`` at the polar angle ``theta`` and the azimuth ``phi``.

    Args:
      n, m: integers with ``abs(m) <= n``, which broadcast with the angles.
      n_max: the largest degree; needed where ``n`` is traced, as it says how much there is to compute.

    Raises:
      NotImplementedError: derivatives are asked for by ``diff_n``; use ``polyax.grad``.
      ConcretizationTypeError: ``n`` is traced and ``n_max`` isn't given.

    >>> import numpy as np
    >>> print(f"{sph_harm_y(np.array([0]), np.array([0]), 0.5, 0.3)[0].real:.5f}")
    0.28209
    """
    if diff_n is not None:
        raise NotImplementedError("The 'diff_n' argument to sph_harm_y is not supported; use polyax.grad.")
    if n_max is None:
        refuse_traced(n, "The `n_max` argument of `sph_harm_y` must be statically specified to use it within traces.")
        n_max = int(jnp.max(jnp.asarray(n)))
    n, m, theta, phi = (ensure_array("sph_harm_y", x) for x in (n, m, theta, phi))
    return _harmonics(n, m, theta, phi, int(n_max))


@fused(static_argnames=("n_max",))
def _harmonics(n: Any, m: Any, theta: Any, phi: Any, n_max: int) -> Any:
    n = jnp.minimum(n, n_max)
    dtype = jnp.result_type(jnp.result_type(theta, phi), jnp.float32)
    n, m, theta, phi = jnp.broadcast_arrays(n, m, theta.astype(dtype), phi.astype(dtype))
    size = jnp.abs(m)
    value = _legendre(n, size, jnp.cos(theta), jnp.sin(theta), n_max)
    value = jnp.where((m < 0) & (size % 2 == 1), -value, value)
    angle = m.astype(dtype) * phi
    return lax.complex(value * jnp.cos(angle), value * jnp.sin(angle))


def _legendre(n: Any, m: Any, x: Any, s: Any, n_max: int) -> Any:
    """The normalised functions, with Condon and Shortley's phase, up the diagonal and then up the degrees."""
    here = jnp.full_like(x, math.sqrt(1 / (4 * math.pi)))
    for k in range(1, n_max + 1):
        here = jnp.where(k <= m, -math.sqrt((2 * k + 1) / (2 * k)) * s * here, here)
    below, result, order = jnp.zeros_like(x), here, m.astype(x.dtype)
    for degree in range(1, n_max + 1):
        grows = (degree > m) & (degree <= n)
        safe = jnp.where(grows, order, 0.0)
        scale = jnp.sqrt((4.0 * degree**2 - 1.0) / (degree**2 - safe**2))
        last = jnp.sqrt(jnp.maximum((degree - 1.0) ** 2 - safe**2, 0.0) / max(4.0 * (degree - 1.0) ** 2 - 1.0, 1.0))
        above = scale * (x * here - last * below)
        below, here = jnp.where(grows, here, below), jnp.where(grows, above, here)
        result = here
    return result
