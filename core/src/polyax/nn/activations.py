"""Activation functions. Each is elementwise, keeps the dtype of floats and turns integers into float32."""

from __future__ import annotations

from typing import Any

import numpy as np

import polyax.numpy as jnp
from polyax import lax
from polyax.numpy.promotion import promote_args_inexact


def identity(x: Any) -> Any:
    """``x``, as an array."""
    return jnp.asarray(x)


def relu(x: Any) -> Any:
    """``max(x, 0)``, with derivative 0 at 0.

    >>> relu(np.array([-1.0, 2.0])).tolist()
    [0.0, 2.0]
    """
    # not maximum: its derivative at 0 is 1/2
    return jnp.where(jnp.less_equal(x, 0), jnp.zeros_like(x), x)


def relu6(x: Any) -> Any:
    """``min(max(x, 0), 6)``"""
    return jnp.minimum(jnp.maximum(x, 0), 6.0)


def sigmoid(x: Any) -> Any:
    """``1 / (1 + exp(-x))``"""
    return lax.logistic(*promote_args_inexact("sigmoid", x))


def tanh(x: Any, /) -> Any:
    """Hyperbolic tangent."""
    return jnp.tanh(x)


def softplus(x: Any) -> Any:
    """``log(1 + exp(x))``, without overflow."""
    return jnp.logaddexp(x, 0)


def sparse_plus(x: Any) -> Any:
    """0 below -1, ``x`` above 1, ``(x + 1)**2 / 4`` between."""
    return jnp.where(x <= -1.0, 0.0, jnp.where(x >= 1.0, x, (x + 1.0) ** 2 / 4))


def sparse_sigmoid(x: Any) -> Any:
    """0 below -1, 1 above 1, ``(x + 1) / 2`` between."""
    return 0.5 * jnp.clip(x + 1.0, 0.0, 2.0)


def squareplus(x: Any, b: Any = 4) -> Any:
    """``(x + sqrt(x**2 + b)) / 2``: like softplus, of algebraic operations."""
    (x,) = promote_args_inexact("squareplus", x)
    return (x + jnp.sqrt(jnp.square(x) + b)) / 2


def soft_sign(x: Any) -> Any:
    """``x / (1 + |x|)``"""
    (x,) = promote_args_inexact("soft_sign", x)
    return x / (jnp.abs(x) + 1)


def silu(x: Any) -> Any:
    """``x * sigmoid(x)``, also called swish."""
    (x,) = promote_args_inexact("silu", x)
    return x * sigmoid(x)


swish = silu


def mish(x: Any) -> Any:
    """``x * tanh(softplus(x))``"""
    (x,) = promote_args_inexact("mish", x)
    return x * jnp.tanh(softplus(x))


def log_sigmoid(x: Any) -> Any:
    """``log(sigmoid(x))``, without overflow."""
    (x,) = promote_args_inexact("log_sigmoid", x)
    return -softplus(-x)


def _where_positive(x: Any, otherwise: Any) -> Any:
    """``x`` where positive, else ``otherwise`` of it, which never sees large numbers: their derivative would be NaN."""
    return jnp.where(x > 0, x, otherwise(jnp.where(x > 0, 0.0, x)))


def elu(x: Any, alpha: Any = 1.0) -> Any:
    """``x`` if positive, else ``alpha * (exp(x) - 1)``"""
    (x,) = promote_args_inexact("elu", x)
    return _where_positive(x, lambda y: alpha * jnp.expm1(y))


def celu(x: Any, alpha: Any = 1.0) -> Any:
    """``x`` if positive, else ``alpha * (exp(x / alpha) - 1)``"""
    (x,) = promote_args_inexact("celu", x)
    return _where_positive(x, lambda y: alpha * jnp.expm1(y / alpha))


def selu(x: Any) -> Any:
    """Scaled elu that keeps mean 0 and variance 1 (Klambauer et al., "Self-normalizing neural networks", 2017)."""
    return 1.0507009873554804934193349852946 * elu(x, 1.6732632423543772848170429916717)


def leaky_relu(x: Any, negative_slope: Any = 1e-2) -> Any:
    """``x`` if not negative, else ``negative_slope * x``"""
    (x,) = promote_args_inexact("leaky_relu", x)
    return jnp.where(x >= 0, x, negative_slope * x)


def hard_tanh(x: Any) -> Any:
    """``x`` clipped to [-1, 1]."""
    return jnp.where(x > 1, 1, jnp.where(x < -1, -1, x))


def hard_sigmoid(x: Any) -> Any:
    """``relu6(x + 3) / 6``"""
    return relu6(x + 3.0) / 6.0


def hard_silu(x: Any) -> Any:
    """``x * hard_sigmoid(x)``"""
    (x,) = promote_args_inexact("hard_silu", x)
    return x * hard_sigmoid(x)


hard_swish = hard_silu


def gelu(x: Any, approximate: bool = True) -> Any:
    """``x * Phi(x)`` with the normal distribution function Phi, by default in its tanh approximation.

    Hendrycks and Gimpel, "Gaussian error linear units", 2016.
    """
    (x,) = promote_args_inexact("gelu", x)
    if approximate:
        inner = np.sqrt(2 / np.pi).astype(x.dtype) * (x + 0.044715 * (x**3))
        return x * (0.5 * (1.0 + jnp.tanh(inner)))
    return 0.5 * x * lax.erfc(-x * np.sqrt(0.5).astype(x.dtype))


def glu(x: Any, axis: int = -1) -> Any:
    """The first half of ``x`` along ``axis`` times the sigmoid of the second.

    Raises:
      ValueError: the size of ``axis`` is odd.
    """
    (x,) = promote_args_inexact("glu", x)
    if x.shape[axis] % 2:
        raise ValueError(f"axis size must be divisible by 2, got axis {axis} of {x.aval}")
    first, second = jnp.split(x, 2, axis)
    return first * sigmoid(second)


def log1mexp(x: Any) -> Any:
    """``log(1 - exp(-x))`` for positive ``x``, accurate at both ends (Maechler, "log1mexp-note", 2012)."""
    (x,) = promote_args_inexact("log1mexp", x)
    near = x < np.log(2)
    safe = jnp.where(near, x, 1.0)
    return jnp.where(near, jnp.log(-jnp.expm1(-safe)), jnp.log1p(-jnp.exp(-jnp.where(near, 1.0, x))))
