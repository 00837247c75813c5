"""Distributions with parameters, made of uniform, normal and exponential numbers as JAX makes them."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyax import numpy as jnp
from polyax.api import jit
from polyax.lax import lenient as lax
from polyax.meshes.resharding import with_out_sharding
from polyax.numpy.promotion import concrete_shape, convert, inexact, promote_dtypes_inexact, shape_of, unwrap
from polyax.random.keys import check_key
from polyax.random.samplers import (
    exponential,
    float_dtype,
    inexact_dtype,
    int_dtype,
    normal,
    rademacher,
    sample_shape,
    spread,
    two_keys,
    uniform,
)

_two_keys = jit(two_keys, inline=True)


@with_out_sharding
def lognormal(key: Any, sigma: Any = 1.0, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """exp(sigma x) for standard normal x, real or complex."""
    kind, shape = inexact_dtype("lognormal", dtype), sample_shape("lognormal", shape, sigma)
    return lax.exp(lax.mul(normal(check_key("lognormal", key), shape, kind), spread(sigma, shape, kind)))


@with_out_sharding
def pareto(key: Any, b: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Numbers with density b / x**(b + 1) for x > 1."""
    kind, shape = float_dtype("pareto", dtype), sample_shape("pareto", shape, b)
    return lax.exp(lax.div(exponential(check_key("pareto", key), shape, kind), spread(b, shape, kind)))


@with_out_sharding
def rayleigh(key: Any, scale: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """scale sqrt(-2 log u) for uniform u."""
    kind, shape = float_dtype("rayleigh", dtype), sample_shape("rayleigh", shape, scale)
    root = lax.sqrt(lax.mul(lax.log(uniform(check_key("rayleigh", key), shape, kind)), -2.0))
    return lax.mul(spread(scale, shape, kind), root)


def weibull_min(key: Any, scale: Any, concentration: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Numbers of the Weibull distribution, by its inverse distribution function."""
    kind, shape = float_dtype("weibull_min", dtype), concrete_shape(shape)
    u = uniform(check_key("weibull_min", key), shape, kind)
    return jnp.multiply(jnp.power(lax.neg(lax.log1p(lax.neg(u))), jnp.true_divide(1.0, concentration)), scale)


@with_out_sharding
def triangular(
    key: Any, left: Any, mode: Any, right: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Any:
    """Numbers between ``left`` and ``right`` with a density that rises to ``mode`` and falls again."""
    kind, shape = float_dtype("triangular", dtype), sample_shape("triangular", shape, left, mode, right)
    low, top, high = (spread(x, shape, kind) for x in (left, mode, right))
    u = uniform(check_key("triangular", key), shape, kind)
    width = lax.sub(high, low)
    rising = low + lax.sqrt(u * width * (top - low))
    falling = high - lax.sqrt((1 - u) * width * (high - top))
    return lax.select(lax.lt(u, lax.div(lax.sub(top, low), width)), rising, falling)


@with_out_sharding
def wald(key: Any, mean: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Numbers of the inverse Gaussian distribution with unit scale (Michael, Schucany and Haas, 1976)."""
    kind, shape = float_dtype("wald", dtype), sample_shape("wald", shape, mean)
    first, second = _two_keys(check_key("wald", key))
    mean = spread(mean, shape, kind)
    y = normal(first, shape, kind) ** 2
    z = uniform(second, shape, kind)
    x = mean + mean**2 * y / 2 - mean / 2 * lax.sqrt(4 * mean * y + mean**2 * y**2)
    return lax.select(lax.le(z, lax.div(mean, lax.add(mean, x))), x, lax.div(mean**2, x))


@with_out_sharding
def geometric(key: Any, p: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """The number of trials up to the first success, each with probability ``p``."""
    kind, shape = int_dtype("geometric", dtype), sample_shape("geometric", shape, p)
    (p,) = promote_dtypes_inexact(unwrap(p))
    p = jnp.broadcast_to(p, shape)
    u = uniform(check_key("geometric", key), shape, p.dtype)
    u = jnp.where(u == 0, 1, u)
    trials = lax.floor(lax.div(lax.log(u), lax.log1p(lax.neg(p))))
    return convert(lax.add(trials, 1.0), kind)


@with_out_sharding
def maxwell(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """The lengths of vectors of three standard normal numbers."""
    kind, shape = float_dtype("maxwell", dtype), concrete_shape(shape)
    return jnp.linalg.norm(normal(check_key("maxwell", key), (*shape, 3), kind), axis=-1)


def double_sided_maxwell(key: Any, loc: Any, scale: Any, shape: Any = (), dtype: Any = None) -> Any:
    """``loc`` plus ``scale`` times a Maxwell number with random sign."""
    kind = float_dtype("double_sided_maxwell", dtype)
    own = lax.broadcast_shapes(shape_of(unwrap(loc)), shape_of(unwrap(scale)))
    shape = (concrete_shape(shape) or own) + own
    first, second = _two_keys(check_key("double_sided_maxwell", key))
    sign = rademacher(second, shape, kind)
    return jnp.add(jnp.multiply(lax.mul(sign, maxwell(first, shape, kind)), scale), loc)


@with_out_sharding
def multivariate_normal(
    key: Any, mean: Any, cov: Any, shape: Any = None, dtype: Any = None, method: str = "cholesky", *,
    out_sharding: Any = None,
) -> Any:  # fmt: skip
    """Vectors with the given mean and covariance matrix.

    Args:
      dtype: that of the normal numbers; the result has one that holds these, ``mean`` and ``cov``.
      method: which factor of the covariance is used: 'cholesky', 'eigh' or 'svd'.

    Raises:
      ValueError: the shapes don't fit, or an unknown method.
    """
    mean, cov = inexact("multivariate_normal", mean, cov)
    kind = float_dtype("multivariate_normal", mean.dtype if dtype is None else dtype)
    if mean.ndim < 1:
        raise ValueError(f"multivariate_normal requires mean.ndim >= 1, got mean.ndim == {mean.ndim}")
    if cov.ndim < 2:
        raise ValueError(f"multivariate_normal requires cov.ndim >= 2, got cov.ndim == {cov.ndim}")
    n = mean.shape[-1]
    if cov.shape[-2:] != (n, n):
        raise ValueError(
            f"multivariate_normal requires cov.shape == (..., n, n) for n={n}, but got cov.shape == {cov.shape}."
        )
    batch = lax.broadcast_shapes(mean.shape[:-1], cov.shape[:-2])
    shape = batch if shape is None else sample_shape("normal", shape, np.broadcast_to(np.float32(0), batch))
    noise = normal(check_key("multivariate_normal", key), (*shape, n), kind)
    return mean + jnp.einsum("...ij,...j->...i", _factor(cov, method), noise)


def _factor(cov: Any, method: str) -> Any:
    """A matrix whose product with its transpose is ``cov``."""
    if method == "cholesky":
        return jnp.linalg.cholesky(cov)
    if method == "eigh":
        w, v = jnp.linalg.eigh(cov)
        return v * jnp.sqrt(w[..., None, :])
    if method == "svd":
        u, s, _ = jnp.linalg.svd(cov)
        return u * jnp.sqrt(s[..., None, :])
    raise ValueError("method must be one of {'svd', 'eigh', 'cholesky'}")


@with_out_sharding
def orthogonal(
    key: Any, n: int, shape: Any = (), dtype: Any = None, m: int | None = None, *, out_sharding: Any = None
) -> Any:
    """Matrices of shape (n, m) with orthonormal rows or columns, uniformly distributed (Mezzadri, 2007).

    Those of a complex dtype are unitary, if they are square.
    """
    kind, shape = inexact_dtype("orthogonal", dtype), concrete_shape(shape)
    m = n if m is None else m
    rows, columns = max(n, m), min(n, m)
    q, r = jnp.linalg.qr(normal(check_key("orthogonal", key), (*shape, rows, columns), kind))
    q = q * jnp.expand_dims(jnp.sign(jnp.linalg.diagonal(r)), -2)
    return q if n == rows else q.mT
