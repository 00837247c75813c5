"""The multinomial distribution."""

from __future__ import annotations

from typing import Any

from polyax import numpy as jnp
from polyax.ir import dtypes
from polyax.numpy.promotion import inexact, of_one_dtype
from polyax.scipy import special

__all__ = ["logpmf", "pmf"]


def logpmf(x: Any, n: Any, p: Any) -> Any:
    """The logarithm of the probability of the counts ``x``.

    Args:
      x: counts, along the last axis; impossible unless their sum is ``n``.
      p: the probability of each.

    Raises:
      ValueError: the counts aren't integers.

    >>> import numpy as np
    >>> print(f"{logpmf(np.array([1, 1]), 2, np.array([0.5, 0.5])):.4f}")
    -0.6931
    """
    p, (x, n) = inexact("multinomial.logpmf", p)[0], of_one_dtype("multinomial.logpmf", x, n)
    if not dtypes.is_integer(x.dtype):
        raise ValueError(f"x and n must be of integer type; got x.dtype={x.dtype}, n.dtype={n.dtype}")
    x, n = x.astype(p.dtype), n.astype(p.dtype)
    log = special.gammaln(n + 1) + jnp.sum(special.xlogy(x, p) - special.gammaln(x + 1), -1)
    return jnp.where(jnp.sum(x, -1) == n, log, -jnp.inf)


def pmf(x: Any, n: Any, p: Any) -> Any:
    """The probability of the counts ``x``."""
    return jnp.exp(logpmf(x, n, p))
