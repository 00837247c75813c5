"""Order statistics."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.ir.aval import aval_of
from polyax.ir.dims import max_dim
from polyax.lax import lenient as lax
from polyax.meshes.resharding import with_out_sharding
from polyax.numpy.axes import reduction_axes
from polyax.numpy.broadcast import broadcast_to, choose
from polyax.numpy.promotion import as_array, check_arraylike, convert, inexact, unwrap
from polyax.numpy.shapes import moveaxis, ravel

__all__ = ["median", "nanmedian", "nanpercentile", "nanquantile", "percentile", "quantile"]

_METHODS = ("linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf")


def quantile(
    a: Any, q: Any, axis: Any = None, out: None = None, overwrite_input: bool = False, method: str = "linear",
    keepdims: bool = False, *, weights: Any = None,
) -> Any:  # fmt: skip
    """The values below which the fractions ``q`` of the elements lie; shape is that of ``q``, then that of the rest.

    Args:
      method: between two elements 'linear' interpolation, 'lower', 'higher', 'midpoint' or 'nearest'; or
        'inverted_cdf', the first element up to which that part of all weight is.
      weights: of all elements, or of those along ``axis``, for 'inverted_cdf'.

    >>> import polyax.numpy as jnp
    >>> jnp.quantile(jnp.array([1.0, 2.0, 4.0]), 0.75).item()
    3.0
    """
    return _quantile("quantile", a, q, axis, out, overwrite_input, method, keepdims, weights, ignore_nan=False)


def nanquantile(
    a: Any, q: Any, axis: Any = None, out: None = None, overwrite_input: bool = False, method: str = "linear",
    keepdims: bool = False, *, weights: Any = None,
) -> Any:  # fmt: skip
    """``quantile`` without regard to NaN."""
    return _quantile("nanquantile", a, q, axis, out, overwrite_input, method, keepdims, weights, ignore_nan=True)


@with_out_sharding
def percentile(
    a: Any, q: Any, axis: Any = None, out: None = None, overwrite_input: bool = False, method: str = "linear",
    keepdims: bool = False, *, weights: Any = None, out_sharding: Any = None,
) -> Any:  # fmt: skip
    """``quantile`` with ``q`` in per cent.

    >>> import polyax.numpy as jnp
    >>> jnp.percentile(jnp.array([1.0, 2.0, 4.0]), 50).item()
    2.0
    """
    return quantile(a, _fraction(q), axis, out, overwrite_input, method, keepdims, weights=weights)


def nanpercentile(
    a: Any, q: Any, axis: Any = None, out: None = None, overwrite_input: bool = False, method: str = "linear",
    keepdims: bool = False, *, weights: Any = None,
) -> Any:  # fmt: skip
    """``percentile`` without regard to NaN."""
    return nanquantile(a, _fraction(q), axis, out, overwrite_input, method, keepdims, weights=weights)


def _fraction(q: Any) -> Any:
    return lax.div(inexact("percentile", q)[0], 100.0)


def median(a: Any, axis: Any = None, out: None = None, overwrite_input: bool = False, keepdims: bool = False) -> Any:
    """The middle element over ``axis``, or the mean of both middle ones; NaN if any is.

    >>> import polyax.numpy as jnp
    >>> jnp.median(jnp.array([3.0, 1.0, 2.0])).item()
    2.0
    """
    return quantile(a, 0.5, axis, out, overwrite_input, "midpoint", keepdims)


def nanmedian(a: Any, axis: Any = None, out: None = None, overwrite_input: bool = False, keepdims: bool = False) -> Any:
    """``median`` without regard to NaN."""
    return nanquantile(a, 0.5, axis, out, overwrite_input, "midpoint", keepdims)


def _together(*xs: Any) -> list[Any]:
    """Arrays in the widest of their types."""
    kind = functools.reduce(dtypes.wider, [x.dtype for x in xs])
    return [convert(x, kind) for x in xs]


def _quantile(
    name: str,
    a: Any,
    q: Any,
    axis: Any,
    out: Any,
    overwrite: bool,
    method: str,
    keepdims: bool,
    weights: Any,
    ignore_nan: bool,
) -> Any:
    if out is not None or overwrite:
        raise ValueError(f"jax.numpy.{name} does not support overwrite_input=True or out != None")
    if method not in _METHODS:
        raise ValueError("method can only be 'linear', 'lower', 'higher', 'midpoint', 'nearest' or 'inverted_cdf'")
    if weights is not None and method != "inverted_cdf":
        raise NotImplementedError(f"{method} doesn't support weights. Only method 'inverted_cdf' supports weights.")
    check_arraylike(name, a, q)
    if not dtypes.is_inexact(aval_of(unwrap(q)).dtype):
        raise TypeError(f"{name}: q must be floating point numbers, got {aval_of(unwrap(q)).dtype}; write 0.0 for 0.")
    (a, *given), (q,) = inexact(name, a, *[w for w in (weights,) if w is not None]), inexact(name, q)
    kind = a.dtype
    if kind in dtypes.COMPLEX:
        raise ValueError(f"{name} does not support complex input, as the operation is poorly defined.")
    if q.ndim > 1:
        raise ValueError(f"q must be have rank <= 1, got shape {q.shape}")
    if kind in dtypes.NARROW:  # it isn't promoted by itself
        a, *given = (convert(x, q.dtype) for x in (a, *given))
    a, q, *given = _together(a, q, *given)
    axes = reduction_axes(axis, a.ndim, name)
    flat = _in_lines(a, axes)
    if method == "inverted_cdf":
        weights = _of_all(given[0], a.shape, axes) if given else lax.full_like(a, 1)
        result = _at_weights(flat, _in_lines(weights, axes), ravel(q), ignore_nan)
    else:
        result = _at_fractions(lax.sort(flat, dimension=flat.ndim - 1), ravel(q), method, ignore_nan)
    result = convert(lax.reshape(moveaxis(result, -1, 0), (*q.shape, *flat.shape[:-1])), kind)
    return lax.expand_dims(result, tuple(q.ndim + i for i in axes)) if keepdims else result


def _in_lines(a: Any, axes: Any) -> Any:
    """The elements over ``axes`` as a new last dimension."""
    rest = [i for i in range(a.ndim) if i not in axes]
    lines = (*[a.shape[i] for i in rest], math.prod(a.shape[i] for i in axes))
    return lax.reshape(lax.transpose(a, (*rest, *axes)), lines)


def _of_all(weights: Any, shape: tuple[int, ...], axes: Any) -> Any:
    if weights.shape == shape:
        return weights
    if weights.shape != tuple(shape[i] for i in axes):
        raise ValueError(f"Weights shape {weights.shape} must be {shape}, or match its reduction axes {tuple(axes)}")
    return lax.broadcast_in_dim(weights, shape, axes)


def _at_weights(lines: Any, weights: Any, q: Any, ignore_nan: bool) -> Any:
    """The first elements in order up to which the fractions ``q`` of all weight are, along the last axis."""
    axis = lines.ndim - 1
    ordered, weights = lax.sort((lines, weights), dimension=axis, num_keys=1)
    undefined = lax.ne(ordered, ordered)
    bad = lax.bitwise_not(lax.ge(weights, 0))
    sums = lax.cumsum(choose(lax.bitwise_or(bad, undefined), 0.0, weights), axis)
    total = lax.slice_in_dim(sums, sums.shape[axis] - 1, sums.shape[axis], axis=axis)
    wanted = lax.mul(*(broadcast_to(x, (*lines.shape[:-1], q.shape[0])) for x in (q, total)))
    less = lax.lt(lax.expand_dims(sums, (axis,)), lax.expand_dims(wanted, (axis + 1,)))
    place = lax.reduce_sum(convert(less, np.dtype("int32")), (axis + 1,))
    count = lax.expand_dims(lax.reduce_sum(convert(lax.bitwise_not(undefined), np.dtype("int32")), (axis,)), (axis,))
    spoilt = lax.reduce_or(bad if ignore_nan else lax.bitwise_or(bad, undefined), (axis,))
    spoilt = lax.bitwise_or(lax.expand_dims(spoilt, (axis,)), lax.eq(count, 0))
    found = _pick(ordered, lax.min(place, broadcast_to(lax.sub(count, 1), place.shape)))
    return choose(spoilt, np.nan, found)


def _at_fractions(ordered: Any, q: Any, method: str, ignore_nan: bool) -> Any:
    """Elements of sorted lines at the fractions ``q`` of their lengths, along the last axis. NaN sorts last."""
    size = ordered.shape[-1]
    undefined = lax.ne(ordered, ordered)
    if ignore_nan:
        count = lax.reduce_sum(convert(lax.bitwise_not(undefined), ordered.dtype), (ordered.ndim - 1,))
    else:
        count = lax.full(ordered.shape[:-1], size, ordered.dtype)
    last = lax.expand_dims(lax.sub(count, 1.0), (ordered.ndim - 1,))
    place = lax.mul(last, lax.broadcast_to_rank(q, ordered.ndim))
    low, high = lax.floor(place), lax.ceil(place)
    below, above = (_pick(ordered, x) for x in (low, high))
    result = _between(below, above, lax.sub(place, low), method)
    if not ignore_nan:
        spoilt = lax.expand_dims(lax.reduce_or(undefined, (ordered.ndim - 1,)), (ordered.ndim - 1,))
        result = choose(spoilt, np.nan, result)
    return choose(lax.lt(last, 0.0), np.nan, result)


def _pick(ordered: Any, place: Any) -> Any:
    axis, kind = ordered.ndim - 1, np.dtype("int32")
    index = lax.clamp(np.int32(0), convert(place, kind), convert(as_array(max_dim(ordered.shape[axis] - 1, 0)), kind))
    lines = tuple(range(axis))
    numbers = lax.GatherDimensionNumbers((), (axis,), (axis,), lines, lines)
    return lax.gather(ordered, lax.expand_dims(index, (index.ndim,)), numbers, (1,) * ordered.ndim, mode="clip")


def _between(below: Any, above: Any, t: Any, method: str) -> Any:
    if method == "lower":
        return below
    if method == "higher":
        return above
    if method == "nearest":
        return choose(lax.le(t, 0.5), below, above)
    if method == "midpoint":
        return lax.mul(lax.add(below, above), 0.5)
    return lax.add(lax.mul(below, lax.sub(1.0, t)), lax.mul(above, t))
