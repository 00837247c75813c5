"""Functions along axes: softmax and its logarithm, log-sum-exp, standardisation, one-hot vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyax import numpy as jnp
from polyax.api import jit
from polyax.ir import dtypes
from polyax.ir.dims import dim_index
from polyax.lax import lenient as lax
from polyax.numpy.axes import Axes, named_axes, reduction_axes
from polyax.numpy.broadcast import choose
from polyax.numpy.promotion import (
    as_array,
    canonical_dtype,
    canonicalize_axis,
    convert,
    promote_args_inexact,
    refuse_traced,
)
from polyax.numpy.reductions import mask_of
from polyax.runtime.contract.tracebacks import warn_user


@jit(static_argnames=("axis", "keepdims", "return_sign"), inline=True)
def logsumexp(
    a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False, where: Any = None
) -> Any:
    """log(sum(b * exp(a))) over ``axis`` (all axes by default) without overflow.

    Args:
      b: factors, one by default; where the sum is negative, the result is NaN unless ``return_sign``.
      return_sign: also return the sign of the sum (of a complex one, its direction); the result is then the logarithm
        of its absolute value.
      where: which elements count.

    >>> from polyax import nn
    >>> import polyax.numpy as jnp
    >>> nn.logsumexp(jnp.zeros(4)).item() == float(jnp.log(jnp.float32(4)))
    True
    """
    a, *factors = map(as_array, promote_args_inexact("logsumexp", *([a] if b is None else [a, b])))
    mask = mask_of("logsumexp", where)
    a = a if mask is None else choose(mask, a, -np.inf)  # of the shape of the mask, where that is larger
    if b is not None:
        a, b = jnp.broadcast_arrays(a, *factors)
        a = choose(lax.ne(b, 0), a, -np.inf)
    axes = named_axes(axis, a.ndim, "logsumexp")
    shift = _finite_maximum(a, axes)
    terms = lax.exp(lax.sub(a, convert(shift, a.dtype)))
    total = axes.fold("logsumexp", lax.reduce_sum, terms if b is None else lax.mul(terms, b))
    of_complex = a.dtype in dtypes.COMPLEX
    signed = return_sign or (b is not None and not of_complex)
    sign = lax.sign(total) if signed else None
    size = lax.abs(total) if signed else total
    result = lax.add(lax.log(size), convert(lax.squeeze(shift, axes.own), size.dtype))
    if b is not None and not return_sign and not of_complex:
        result = choose(lax.lt(sign, 0), np.nan, result)
    result, sign = (x if x is None or not keepdims else lax.expand_dims(x, axes.own) for x in (result, sign))
    return (result, sign) if return_sign else result


def _finite_maximum(a: Any, axes: Axes) -> Any:
    """The maximum over ``axes``, which stay with size one; 0 instead of infinities. A constant to derivatives."""
    largest = _maximum(jnp.real(a), axes)
    return lax.stop_gradient(lax.select(lax.is_finite(largest), largest, lax.full_like(largest, 0)))


def _maximum(a: Any, axes: Axes) -> Any:
    """Over ``axes``, which stay with size one; maxima along names have no derivative."""
    largest = axes.fold("max", lax.reduce_max, lax.stop_gradient(a) if axes.names else a)
    return lax.expand_dims(largest, axes.own) if axes.own else largest


def logmeanexp(x: Any, axis: Any = None, where: Any = None, keepdims: bool = False) -> Any:
    """log(mean(exp(x))) over ``axis`` without overflow."""
    x = as_array(promote_args_inexact("logmeanexp", x)[0])
    axes = reduction_axes(axis, x.ndim, "logmeanexp")
    total = logsumexp(x, axes, keepdims=keepdims, where=where)
    if where is None:
        return lax.sub(total, float(np.log(np.prod([x.shape[d] for d in axes]))))
    count = jnp.sum(jnp.broadcast_to(where, x.shape), axes, dtype=x.dtype, keepdims=keepdims)
    return lax.sub(total, lax.log(count))


@jit(static_argnames=("axis",), inline=True)
def softmax(x: Any, axis: Any = -1, where: Any = None) -> Any:
    """exp(x) / sum(exp(x)) along ``axis``; zero where ``where`` does not hold.

    >>> from polyax import nn
    >>> import polyax.numpy as jnp
    >>> nn.softmax(jnp.zeros(2)).tolist()
    [0.5, 0.5]
    """
    shifted, axes, mask = _shifted("softmax", x, axis, where)
    terms = lax.exp(shifted)
    result = lax.div(terms, _total(terms, axes))
    return result if mask is None else choose(mask, result, lax.full_like(result, 0))


@jit(static_argnames=("axis",), inline=True)
def log_softmax(x: Any, axis: Any = -1, where: Any = None) -> Any:
    """log(softmax(x)) without underflow; -inf where ``where`` does not hold.

    >>> from polyax import nn
    >>> import polyax.numpy as jnp
    >>> nn.log_softmax(jnp.array([-1000.0, 0.0])).tolist()
    [-1000.0, 0.0]
    """
    shifted, axes, mask = _shifted("log_softmax", x, axis, where)
    result = lax.sub(shifted, lax.log(_total(lax.exp(shifted), axes)))
    return result if mask is None else choose(mask, result, -np.inf)


def _shifted(name: str, x: Any, axis: Any, where: Any) -> tuple[Any, Axes, Any]:
    """``x`` less its maximum along the axes, -inf where the mask does not hold."""
    x = as_array(promote_args_inexact(name, x)[0])
    x = convert(x, x.dtype)  # which isn't weak
    axes = named_axes(axis, x.ndim, name)
    mask = mask_of(name, where)
    x = x if mask is None else choose(mask, x, -np.inf)
    return lax.sub(x, lax.stop_gradient(_maximum(x, axes))), axes, mask


def _total(terms: Any, axes: Axes) -> Any:
    return lax.expand_dims(axes.fold("sum", lax.reduce_sum, terms), axes.own)


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
    """(x - mean) / sqrt(variance + epsilon) along ``axis``.

    Args:
      algorithm: 'fast' computes the variance as mean(x**2) - mean(x)**2, 'stable' from the distances to the mean.

    >>> from polyax import nn
    >>> import polyax.numpy as jnp
    >>> nn.standardize(jnp.array([1.0, 3.0]), epsilon=0.0).tolist()
    [-1.0, 1.0]
    """
    if algorithm not in ("fast", "stable"):
        raise ValueError(f"algorithm must be 'fast' or 'stable', got {algorithm!r}")
    x = as_array(promote_args_inexact("standardize", x)[0])
    if mean is None:
        mean = jnp.mean(x, axis, keepdims=True, where=where)
    if variance is None and algorithm == "stable":
        variance = jnp.var(x, axis, keepdims=True, where=where, mean=mean)
    elif variance is None:
        variance = jnp.subtract(jnp.mean(jnp.square(x), axis, keepdims=True, where=where), jnp.square(mean))
        variance = jnp.clip(variance, 0)  # rounding may have made it negative
    return jnp.multiply(jnp.subtract(x, mean), lax.rsqrt(as_array(jnp.add(variance, epsilon))))


def one_hot(x: Any, num_classes: Any, *, dtype: Any = None, axis: Any = -1) -> Any:
    """Vectors with a one at the position that each element of ``x`` names, along a new ``axis``.

    Positions outside [0, num_classes) give zeros.

    Raises:
      ConcretizationTypeError: ``num_classes`` is traced.
      TypeError: it is no integer.

    >>> from polyax import nn
    >>> import polyax.numpy as jnp
    >>> nn.one_hot(jnp.array([1, 0]), 2).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    refuse_traced(num_classes, "The error arose in jax.nn.one_hot argument `num_classes`.")
    x = jnp.asarray(x)
    if not dtypes.is_integer(x.dtype):
        warn_user(f"jax.nn.one_hot input should be integer-typed; got dtype={x.dtype}", DeprecationWarning)
    axis = canonicalize_axis(axis, x.ndim + 1)
    kind = canonical_dtype(dtype, np.float64)
    shape = tuple(dim_index(num_classes) if i == axis else 1 for i in range(x.ndim + 1))
    classes = lax.broadcasted_iota(x.dtype, shape, axis)
    return convert(lax.eq(lax.expand_dims(x, (axis,)), classes), kind)
