"""Integrals of samples, as ``jax.scipy.integrate`` has them."""

from __future__ import annotations

from typing import Any

from polyax import numpy as jnp

__all__ = ["trapezoid"]


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """The integral of samples ``y`` along ``axis`` by the trapezoidal rule.

    Args:
      x: where the samples were taken; at distances ``dx`` by default.

    >>> import numpy as np
    >>> print(trapezoid(np.array([1.0, 2.0, 3.0])))
    4.0
    """
    return jnp.trapezoid(y, x, dx, axis)
