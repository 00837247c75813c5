"""The normal distribution of vectors."""

from __future__ import annotations

import math
from typing import Any

from polyax import numpy as jnp
from polyax.lax import lenient as lax
from polyax.numpy.promotion import inexact

__all__ = ["logpdf", "pdf"]


def logpdf(x: Any, mean: Any, cov: Any, allow_singular: None = None) -> Any:
    """The logarithm of the density at the vectors ``x``.

    Args:
      x, mean: vectors along the last axis.
      cov: positive definite matrices, or the variance of all elements.

    Raises:
      NotImplementedError: ``allow_singular`` is given.
      ValueError: the shapes don't fit.

    >>> import numpy as np
    >>> print(f"{logpdf(np.zeros(2), np.zeros(2), np.eye(2)):.4f}")
    -1.8379
    """
    if allow_singular is not None:
        raise NotImplementedError("allow_singular argument of multivariate_normal.logpdf")
    x, mean, cov = inexact("multivariate_normal.logpdf", x, mean, cov)
    if mean.ndim == 0:
        if cov.ndim > 0:
            raise ValueError(f"multivariate_normal.logpdf got incompatible shapes: mean {mean.shape}, cov {cov.shape}")
        return -0.5 * ((x - mean) ** 2 / cov + math.log(2 * math.pi) + jnp.log(cov))
    n = mean.shape[-1]
    if cov.ndim == 0:  # the variance along each axis
        return -0.5 * (jnp.sum((x - mean) ** 2, -1) / cov + n * (math.log(2 * math.pi) + jnp.log(cov)))
    if cov.shape[-2:] != (n, n) or (x.ndim and x.shape[-1] not in (1, n)):
        raise ValueError(
            f"multivariate_normal.logpdf got incompatible shapes: x {x.shape}, mean {mean.shape}, cov {cov.shape}"
        )
    factor = jnp.linalg.cholesky(cov)
    offset = x - mean
    batch = lax.broadcast_shapes(offset.shape[:-1], cov.shape[:-2])
    factor = jnp.broadcast_to(factor, (*batch, n, n))
    offset = jnp.broadcast_to(offset, (*batch, n))[..., None]
    y = lax.linalg.triangular_solve(factor, offset, left_side=True, lower=True)[..., 0]
    determinant = jnp.sum(jnp.log(jnp.diagonal(factor, axis1=-2, axis2=-1)), -1)
    return -0.5 * (jnp.sum(y * y, -1) + n * math.log(2 * math.pi)) - determinant


def pdf(x: Any, mean: Any, cov: Any) -> Any:
    """The density at the vectors ``x``."""
    return jnp.exp(logpdf(x, mean, cov))
