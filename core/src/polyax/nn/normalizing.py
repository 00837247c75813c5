"""Functions of whole rows: softmax and its kin, one-hot codes, standardisation."""

from __future__ import annotations

from typing import Any

import polyax.numpy as jnp
from polyax import lax
from polyax.ir import dtypes
from polyax.numpy.promotion import promote_args_inexact


def logsumexp(
    a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False, where: Any = None
) -> Any:
    """``log(sum(b * exp(a)))`` over ``axis``, without overflow.

    With ``return_sign`` the logarithm of the absolute value, and the sign.

    >>> import numpy as np
    >>> round(logsumexp(np.array([1000.0, 1000.0])).item(), 3)
    1000.693
    """
    a, b = promote_args_inexact("logsumexp", a, b) if b is not None else (*promote_args_inexact("logsumexp", a), None)
    shown = a if b is None else jnp.where(b != 0, a, -jnp.inf)
    largest = jnp.max(shown, axis=axis, keepdims=True, where=where, initial=-jnp.inf)
    shift = lax.stop_gradient(jnp.where(jnp.isfinite(largest), largest, jnp.zeros_like(largest)))
    terms = jnp.exp(shown - shift)
    total = jnp.sum(terms if b is None else b * terms, axis=axis, keepdims=True, where=where)
    sign = jnp.sign(total)
    out = jnp.log(jnp.abs(total) if b is not None else total) + shift
    if b is not None and not return_sign:
        out = jnp.where(sign < 0, jnp.nan, out)
    if not keepdims:
        out, sign = jnp.squeeze(out, axis=axis), jnp.squeeze(sign, axis=axis)
    return (out, sign) if return_sign else out


def logmeanexp(x: Any, axis: Any = None, where: Any = None, keepdims: bool = False) -> Any:
    """``log(mean(exp(x)))`` over ``axis``, without overflow."""
    total = logsumexp(x, axis=axis, where=where, keepdims=keepdims)
    counted = jnp.ones_like(x) if where is None else jnp.where(where, jnp.ones_like(x), 0)
    return total - jnp.log(jnp.sum(counted, axis=axis, keepdims=keepdims))


def _shifted(x: Any, axis: Any, where: Any) -> Any:
    largest = jnp.max(x, axis, where=where, initial=-jnp.inf, keepdims=True)
    return x - lax.stop_gradient(largest)


def softmax(x: Any, axis: Any = -1, where: Any = None) -> Any:
    """``exp(x) / sum(exp(x))`` over ``axis``, without overflow; 0 where ``where`` is false.

    >>> import numpy as np
    >>> softmax(np.array([0.0, 0.0])).tolist()
    [0.5, 0.5]
    """
    (x,) = promote_args_inexact("softmax", x)
    terms = jnp.exp(_shifted(x, axis, where))
    result = terms / jnp.sum(terms, axis, where=where, keepdims=True)
    return result if where is None else jnp.where(where, result, 0)


def log_softmax(x: Any, axis: Any = -1, where: Any = None) -> Any:
    """``log(softmax(x))`` without overflow; -inf where ``where`` is false."""
    (x,) = promote_args_inexact("log_softmax", x)
    shifted = _shifted(x, axis, where)
    result = shifted - jnp.log(jnp.sum(jnp.exp(shifted), axis, where=where, keepdims=True))
    return result if where is None else jnp.where(where, result, -jnp.inf)


def one_hot(x: Any, num_classes: Any, *, dtype: Any = None, axis: int = -1) -> Any:
    """One-hot codes of integers; a row of zeros for those outside ``0 .. num_classes - 1``.

    >>> import numpy as np
    >>> one_hot(np.array([0, 2]), 3).tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """
    x = jnp.asarray(x)
    axis = axis % (x.ndim + 1)
    shape = [1] * (x.ndim + 1)
    shape[axis] = num_classes
    codes = lax.broadcasted_iota(x.dtype, shape, axis)
    return (jnp.expand_dims(x, axis) == codes).astype(dtype or dtypes.default_float())


def standardize(
    x: Any,
    axis: Any = -1,
    mean: Any = None,
    variance: Any = None,
    epsilon: Any = 1e-5,
    where: Any = None,
    *,
    algorithm: str = "fast",
) -> Any:
    """``(x - mean) / sqrt(variance + epsilon)``; mean and variance over ``axis`` unless given.

    ``algorithm``: ``fast`` takes the variance as ``mean(x**2) - mean**2``, ``stable`` in two passes.
    """
    if algorithm not in ("fast", "stable"):
        raise ValueError(f"algorithm must be 'fast' or 'stable', got {algorithm!r}")
    (x,) = promote_args_inexact("standardize", x)
    if mean is None:
        mean = jnp.mean(x, axis, keepdims=True, where=where)
    if variance is None and algorithm == "fast":
        squares = jnp.mean(jnp.square(x), axis, keepdims=True, where=where)
        variance = jnp.maximum(squares - jnp.square(mean), 0)
    elif variance is None:
        variance = jnp.var(x, axis, keepdims=True, where=where)
    return (x - mean) * lax.rsqrt(variance + epsilon)
