"""Spherical harmonics and associated Legendre functions, by recurrences of the normalised ones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from polyax import numpy as jnp
from polyax.lax import lenient as lax
from polyax.numpy.fused import fused
from polyax.numpy.promotion import ensure_array, refuse_traced

__all__ = ["lpmn", "lpmn_values", "sph_harm_y"]


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


def lpmn_values(m: int, n: int, z: Any, is_normalized: bool) -> Any:
    """The associated Legendre functions of all orders up to ``m`` and degrees up to ``n``, which must be equal.

    Args:
      z: points in [-1, 1], of one dimension, float32 or float64.
      is_normalized: scale them as spherical harmonics need.

    Returns:
      An array indexed by order, degree and point, zero where the order exceeds the degree.

    Raises:
      TypeError: ``z`` is of another dtype.
      ValueError: ``z`` isn't of one dimension.
      NotImplementedError: ``m`` and ``n`` differ.

    >>> import numpy as np
    >>> print(lpmn_values(2, 2, np.float32([0.5]), False)[..., 0].round(3))
    [[ 1.     0.5   -0.125]
     [ 0.    -0.866 -1.299]
     [ 0.     0.     2.25 ]]
    """
    return _table(_degrees(m, n, z), jnp.asarray(z), bool(is_normalized))


def lpmn(m: int, n: int, z: Any) -> tuple[Any, Any]:
    """The associated Legendre functions as ``lpmn_values`` has them, not normalised, and their derivatives."""
    size = _degrees(m, n, z)
    z = jnp.asarray(z)
    values = _table(size, z, False)
    return values, _derivatives(values, z)


def _degrees(m: Any, n: Any, z: Any) -> int:
    """The largest degree, once the arguments have been checked."""
    z = ensure_array("lpmn", z)
    if z.dtype not in (np.float32, np.float64):
        raise TypeError(f"z.dtype={z.dtype} is not supported, see docstring for supported types.")
    if z.ndim != 1:
        raise ValueError("z must be a 1D array.")
    for name, x in (("m", m), ("n", n)):
        refuse_traced(x, f"Argument {name} of lpmn.")
    if m != n:
        raise NotImplementedError("Computations for m!=n are not yet supported.")
    return int(n)


@fused(static_argnames=("size", "normalized"))
def _table(size: int, z: Any, normalized: bool) -> Any:
    order, degree = np.mgrid[: size + 1, : size + 1]
    m, n, x = jnp.broadcast_arrays(order[..., None], degree[..., None], z)
    values = _legendre(n, m, x, jnp.sqrt(1 - x * x), size)
    return jnp.where(m > n, 0, values if normalized else values / _norms(size)[..., None].astype(z.dtype))


def _norms(size: int) -> np.ndarray:
    """What the normalised functions have been multiplied with; 1 where the order exceeds the degree."""
    norms = np.ones((size + 1, size + 1))
    for n in range(size + 1):
        for m in range(n + 1):
            logs = math.lgamma(n - m + 1) - math.lgamma(n + m + 1)
            norms[m, n] = math.sqrt((2 * n + 1) / (4 * math.pi)) * math.exp(logs / 2)
    return norms


def _derivatives(p: Any, z: Any) -> Any:
    """``(1 - z**2) p' = -sqrt(1 - z**2) p(m + 1) - m z p``, and the limits at both ends."""
    m, n = np.mgrid[: len(p), : len(p)]
    root = jnp.sqrt(1 - z * z)
    ends = jnp.abs(z) == 1
    safe = jnp.where(ends, 1, root)
    inside = (0 - jnp.concatenate([p[1:], jnp.zeros_like(p[:1])]) - (m[..., None] * z / safe) * p) / safe
    at_one = np.select(
        [m > n, m == 0, (m == 1) & (n > 0), m == 2],
        [0, n * (n + 1) / 2, np.inf, -(n + 2) * (n + 1) * n * (n - 1) / 4],
        0,
    )
    at_end = jnp.where(z > 0, at_one[..., None], (at_one * (-1.0) ** (m + n + 1))[..., None])
    return jnp.where(ends, at_end.astype(p.dtype), inside)
