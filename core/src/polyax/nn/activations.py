"""Activation functions: elementwise, of floating-point arrays; most compute integers as float32.

Each is one program when called eagerly, and becomes part of the program of a function that calls it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from polyax import numpy as jnp
from polyax.api import jit
from polyax.lax import lenient as lax
from polyax.numpy.broadcast import choose
from polyax.numpy.promotion import (
    as_array,
    canonicalize_axis,
    check_arraylike,
    ensure_array,
    promote_args,
    promote_args_inexact,
    promote_args_numeric,
)


def _inexact(name: str, x: Any) -> Any:
    return promote_args_inexact(name, x)[0]


def _beside_float(name: str, x: Any) -> Any:
    """``x`` as it is beside a float of Python's: integers become weakly typed floats."""
    return promote_args_inexact(name, x, 0.0)[0]


def _where_positive(x: Any, positive: Any, otherwise: Any) -> Any:
    return choose(jnp.greater(x, 0), positive, otherwise)


def _clipped(x: Any, inside: Any, clip: Callable[[Any], Any]) -> Any:
    """``clip(x)``, which is ``x`` where it is ``inside``; the derivative is 0 elsewhere, at the ends and NaN too."""
    return lax.select(inside, as_array(x), as_array(clip(lax.stop_gradient(x))))


def _nonpositive(x: Any) -> Any:
    """``x`` where it is not positive, else zero: exponentials of it can't overflow."""
    return _where_positive(x, lax.full_like(x, 0), x)


def identity(x: Any) -> Any:
    """``x`` itself, as an array."""
    return ensure_array("identity", x)


@jit(inline=True)
def relu(x: Any) -> Any:
    """max(x, 0), with derivative 0 at 0 and at NaN. Integers stay integers.

    >>> from polyax import nn
    >>> import polyax.numpy as jnp
    >>> nn.relu(jnp.array([-1.0, 2.0])).tolist()
    [0.0, 2.0]
    """
    x, _ = promote_args("relu", x, 0)
    return _clipped(x, jnp.greater(x, 0), lambda x: lax.max(x, 0))


@jit(inline=True)
def relu6(x: Any) -> Any:
    """min(max(x, 0), 6), with derivative 0 at both ends."""
    x = _beside_float("relu6", x)
    inside = lax.bitwise_and(jnp.greater(x, 0), jnp.less(x, 6))
    return _clipped(x, inside, lambda x: lax.min(lax.max(x, 0), 6))


def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x)).

    >>> from polyax import nn
    >>> nn.sigmoid(0.0).item()
    0.5
    """
    return lax.logistic(x)


@jit(inline=True)
def log_sigmoid(x: Any) -> Any:
    """log(sigmoid(x)) = -log(1 + exp(-x))."""
    return lax.neg(softplus(lax.neg(_inexact("log_sigmoid", x))))


@jit(inline=True)
def softplus(x: Any) -> Any:
    """log(1 + exp(x)) without overflow.

    >>> from polyax import nn
    >>> nn.softplus(1000.0).item()
    1000.0
    """
    return jnp.logaddexp(x, 0)


@jit(inline=True)
def squareplus(x: Any, b: Any = 4) -> Any:
    """(x + sqrt(x**2 + b)) / 2 (Barron, arXiv:2112.11687)."""
    x, b = promote_args_inexact("squareplus", x, b)
    return lax.div(lax.add(x, lax.sqrt(lax.add(lax.square(x), b))), 2.0)


@jit(inline=True)
def sparse_plus(x: Any) -> Any:
    """0 below -1, (x + 1)**2 / 4 in between, x above 1."""
    x = _beside_float("sparse_plus", x)
    middle = lax.mul(lax.square(lax.add(x, 1.0)), 0.25)
    return choose(jnp.less_equal(x, -1.0), lax.full_like(x, 0), choose(jnp.greater_equal(x, 1.0), x, middle))


@jit(inline=True)
def sparse_sigmoid(x: Any) -> Any:
    """(x + 1) / 2 clipped to [0, 1]."""
    x = _beside_float("sparse_sigmoid", x)
    return lax.mul(jnp.clip(lax.add(x, 1.0), 0.0, 2.0), 0.5)


@jit(inline=True)
def soft_sign(x: Any) -> Any:
    """x / (1 + abs(x))."""
    x = _inexact("soft_sign", x)
    return jnp.divide(x, lax.add(lax.abs(x), 1.0))


@jit(inline=True)
def silu(x: Any) -> Any:
    """x * sigmoid(x); also known as swish.

    >>> from polyax import nn
    >>> import polyax.numpy as jnp
    >>> nn.silu(jnp.array([0.0, 100.0])).tolist()
    [0.0, 100.0]
    """
    return lax.mul(x, lax.logistic(x))


swish = silu


@jit(inline=True)
def mish(x: Any) -> Any:
    """x * tanh(softplus(x)) (Misra, arXiv:1908.08681)."""
    x = _inexact("mish", x)
    return lax.mul(x, lax.tanh(softplus(x)))


@jit(inline=True)
def elu(x: Any, alpha: Any = 1.0) -> Any:
    """x above zero, alpha * (exp(x) - 1) below."""
    x = _beside_float("elu", x)
    return _where_positive(x, x, jnp.multiply(alpha, lax.expm1(_nonpositive(x))))


@jit(inline=True)
def celu(x: Any, alpha: Any = 1.0) -> Any:
    """x above zero, alpha * (exp(x / alpha) - 1) below (Barron, arXiv:1704.07483).

    Both parts are summed, so that second derivatives at zero are those of JAX.
    """
    x = _beside_float("celu", x)
    scaled = jnp.true_divide(jnp.minimum(x, 0.0), alpha)
    return jnp.add(jnp.maximum(x, 0.0), jnp.multiply(alpha, lax.expm1(scaled)))


@jit(inline=True)
def selu(x: Any) -> Any:
    """The self-normalising unit: a scaled elu (Klambauer et al., arXiv:1706.02515)."""
    return jnp.multiply(1.0507009873554805, elu(x, 1.6732632423543772))


@jit(inline=True)
def leaky_relu(x: Any, negative_slope: Any = 1e-2) -> Any:
    """x above zero, negative_slope * x below.

    >>> from polyax import nn
    >>> import polyax.numpy as jnp
    >>> nn.leaky_relu(jnp.array([-1.0, 2.0]), 0.5).tolist()
    [-0.5, 2.0]
    """
    check_arraylike("leaky_relu", x)
    return jnp.where(jnp.greater_equal(x, 0), x, jnp.multiply(negative_slope, x))


@jit(inline=True)
def hard_tanh(x: Any) -> Any:
    """x clipped to [-1, 1].

    >>> from polyax import nn
    >>> import polyax.numpy as jnp
    >>> nn.hard_tanh(jnp.array([-3.0, 0.5])).tolist()
    [-1.0, 0.5]
    """
    (x,) = promote_args_numeric("hard_tanh", x)
    return choose(jnp.greater(x, 1), 1, choose(jnp.less(x, -1), -1, x))


@jit(inline=True)
def hard_sigmoid(x: Any) -> Any:
    """relu6(x + 3) / 6."""
    return lax.div(relu6(lax.add(_beside_float("hard_sigmoid", x), 3.0)), 6.0)


@jit(inline=True)
def hard_silu(x: Any) -> Any:
    """x * hard_sigmoid(x)."""
    x = _beside_float("hard_silu", x)
    return lax.mul(x, hard_sigmoid(x))


hard_swish = hard_silu


@jit(static_argnames=("approximate",), inline=True)
def gelu(x: Any, approximate: bool = True) -> Any:
    """x times the normal distribution function of x, by default through tanh (arXiv:1606.08415).

    >>> from polyax import nn
    >>> import polyax.numpy as jnp
    >>> nn.gelu(jnp.array([-100.0, 0.0, 100.0])).tolist()
    [-0.0, 0.0, 100.0]
    """
    x = as_array(_inexact("gelu", x))
    x = lax.convert_element_type(x, x.dtype)  # which isn't weak
    if not approximate:
        return lax.mul(lax.mul(x, 0.5), lax.erfc(lax.mul(lax.neg(x), float(np.sqrt(0.5)))))
    inner = lax.mul(float(np.sqrt(2 / np.pi)), lax.add(x, lax.mul(0.044715, lax.integer_pow(x, 3))))
    return lax.mul(x, lax.mul(0.5, lax.add(1.0, lax.tanh(inner))))


@jit(static_argnames=("axis",), inline=True)
def glu(x: Any, axis: int = -1) -> Any:
    """The first half of ``x`` along ``axis`` times the sigmoid of the second half.

    Raises:
      ValueError: the size is odd.

    >>> from polyax import nn
    >>> import polyax.numpy as jnp
    >>> nn.glu(jnp.array([3.0, 0.0])).tolist()
    [1.5]
    """
    x = ensure_array("glu", x)
    axis = canonicalize_axis(axis, x.ndim)
    size = x.shape[axis]
    if size % 2:
        raise ValueError(f"axis size must be divisible by 2, got shape {x.shape} and axis {axis}")
    first, second = lax.slice_in_dim(x, 0, size // 2, axis=axis), lax.slice_in_dim(x, size // 2, size, axis=axis)
    return lax.mul(first, lax.logistic(second))


@jit(inline=True)
def log1mexp(x: Any) -> Any:
    """log(1 - exp(-x)), exact for small and large ``x``."""
    x = _inexact("log1mexp", x)
    small = lax.lt(x, float(np.log(2.0)))
    near, far = choose(small, x, 0.5), choose(small, 1.0, x)  # of what isn't chosen derivatives must be finite
    return choose(small, lax.log(lax.neg(lax.expm1(lax.neg(near)))), lax.log1p(lax.neg(lax.exp(lax.neg(far)))))
