"""The Dirichlet distribution."""

from __future__ import annotations

from typing import Any

from polyax import numpy as jnp
from polyax.numpy.promotion import inexact
from polyax.scipy import special

__all__ = ["logpdf", "pdf"]


def logpdf(x: Any, alpha: Any) -> Any:
    """The logarithm of the density at the probabilities ``x``, which are along its first axis.

    Args:
      x: as many as ``alpha``, or one less, the last one being what is left to 1; -inf where their sum isn't 1.
      alpha: a vector.

    Raises:
      ValueError: the numbers of entries don't fit, or ``alpha`` is no vector.

    >>> import numpy as np
    >>> print(f"{logpdf(np.array([0.25, 0.75]), np.ones(2)):.1f}")
    0.0
    """
    x, alpha = inexact("dirichlet.logpdf", x, alpha)
    if alpha.ndim != 1:
        raise ValueError(f"`alpha` must be one-dimensional; got alpha.shape={alpha.shape}")
    if x.ndim == 0 or x.shape[0] not in (alpha.shape[0], alpha.shape[0] - 1):
        raise ValueError(
            "`x` must have either the same number of entries as `alpha` or one entry fewer; "
            f"got {x.shape=}, {alpha.shape=}"
        )
    if x.shape[0] != alpha.shape[0]:
        x = jnp.concatenate([x, 1 - jnp.sum(x, 0, keepdims=True)])
    inside = jnp.all(x >= 0, axis=0) & (jnp.abs(jnp.sum(x, 0) - 1) < 1e-6)
    scale = special.gammaln(jnp.sum(alpha)) - jnp.sum(special.gammaln(alpha))
    weights = alpha.reshape(-1, *(1,) * (x.ndim - 1)) - 1
    return jnp.where(inside, scale + jnp.sum(special.xlogy(weights, jnp.where(x >= 0, x, 0.5)), 0), -jnp.inf)


def pdf(x: Any, alpha: Any) -> Any:
    """The density at the probabilities ``x``."""
    return jnp.exp(logpdf(x, alpha))
