"""The multinomial distribution."""

from __future__ import annotations

from typing import Any

from polyax import numpy as jnp
from polyax.ir import dtypes
from polyax.numpy.promotion import inexact
from polyax.scipy import special

__all__ = ["logpmf", "pmf"]


def logpmf(x: Any, n: Any, p: Any) -> Any:
    """The logarithm of the probability of the counts ``x``.

    Args:
      x: counts, along the last axis; impossible unless their sum is ``n``.
      p: the probability of each.

    >>> import numpy as np
    >>> print(f"{logpmf(np.array([1, 1]), 2, np.array([0.5, 0.5])):.4f}")
    -0.6931
    """
    (x,), (n,), (p,) = (inexact("multinomial.logpmf", v) for v in (x, n, p))
    kind = dtypes.wider(dtypes.wider(x.dtype, n.dtype), p.dtype)
    x, n, p = x.astype(kind), n.astype(kind), p.astype(kind)
    log = special.gammaln(n + 1) + jnp.sum(special.xlogy(x, p) - special.gammaln(x + 1), -1)
    return jnp.where(jnp.sum(x, -1) == n, log, -jnp.inf)


def pmf(x: Any, n: Any, p: Any) -> Any:
    """The probability of the counts ``x``."""
    return jnp.exp(logpmf(x, n, p))
