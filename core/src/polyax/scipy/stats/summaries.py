"""What is most frequent, ranks, and errors of means."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from polyax import numpy as jnp
from polyax.api import vmap
from polyax.numpy.promotion import canonicalize_axis, ensure_array, inexact

__all__ = ["mode", "rankdata", "sem"]


class ModeResult(NamedTuple):
    """The most frequent values, and how often they occur."""

    mode: Any
    count: Any


def _check_policy(policy: str, built: tuple[str, ...] = ("propagate",)) -> None:
    if policy not in ("propagate", "omit", "raise"):
        raise ValueError(f"Illegal nan_policy value {policy!r}; expected one of {{'propagate', 'omit', 'raise'}}")
    if policy not in built:
        raise NotImplementedError(f"Logic for `nan_policy` of {policy} is not implemented")


def _lines(x: Any, axis: int | None) -> tuple[Any, int]:
    """``x`` with the axis last, and which it was; all in one line for None."""
    if axis is None:
        return x.reshape(-1), 0
    axis = canonicalize_axis(axis, x.ndim)
    return jnp.moveaxis(x, axis, -1), axis


def _per_line(fun: Any, x: Any) -> Any:
    flat = vmap(fun)(x.reshape(math.prod(x.shape[:-1]), x.shape[-1]))
    return flat.reshape(*x.shape[:-1], *flat.shape[1:])


def mode(a: Any, axis: int | None = 0, nan_policy: str = "propagate", keepdims: bool = False) -> ModeResult:
    """The most frequent values along ``axis`` (of all for None), the smallest of several; and their counts.

    Raises:
      ValueError: ``nan_policy`` is none that exists.
      NotImplementedError: it isn't 'propagate'.

    >>> import numpy as np
    >>> print(mode(np.array([3, 1, 3])).mode)
    3
    """
    if nan_policy == "raise":
        raise NotImplementedError(
            "In order to best JIT compile `mode`, we cannot know whether `x` contains nans. Please check if nans exist "
            "in `x` outside of the `mode` function."
        )
    _check_policy(nan_policy)
    x = jnp.atleast_1d(ensure_array("mode", a))
    if x.size == 0:
        empty = jnp.mean(x, axis, keepdims=keepdims)  # NaN, in the shape of a result
        return ModeResult(empty, jnp.zeros_like(empty))
    lines, place = _lines(x, axis)
    order = jnp.sort(lines, axis=-1)
    counts = _per_line(_occurrences, order)
    best = jnp.argmax(counts, axis=-1, keepdims=True)
    found = [jnp.take_along_axis(y, best, axis=-1)[..., 0] for y in (order, counts)]
    if keepdims:
        found = [y.reshape((1,) * x.ndim) if axis is None else jnp.expand_dims(y, place) for y in found]
    return ModeResult(*found)


def _occurrences(line: Any) -> Any:
    """How often each number of a sorted line occurs; NaN is like NaN."""
    first = jnp.searchsorted(line, line, side="left")
    return (jnp.searchsorted(line, line, side="right") - first).astype(int)


_METHODS = ("average", "min", "max", "dense", "ordinal")


def rankdata(a: Any, method: str = "average", *, axis: int | None = None, nan_policy: str = "propagate") -> Any:
    """The ranks of numbers, from 1, along ``axis`` or of all in one line.

    Args:
      method: how equal numbers share their ranks: 'average', 'min', 'max'; 'dense', where the next number has the next
        rank; or 'ordinal', by their order in ``a``.

    Raises:
      ValueError: another method, or no such ``nan_policy``.
      NotImplementedError: ``nan_policy`` isn't 'propagate'.

    >>> import numpy as np
    >>> print(rankdata(np.array([5.0, 2.0, 5.0])))
    [2.5 1.  2.5]
    """
    _check_policy(nan_policy)
    if method not in _METHODS:
        raise ValueError(f"unknown method '{method}'")
    lines, place = _lines(ensure_array("rankdata", a), axis)
    ranks = _per_line(lambda line: _ranks(line, method), lines)
    return ranks if axis is None else jnp.moveaxis(ranks, -1, place)


def _ranks(line: Any, method: str) -> Any:
    dtype = jnp.result_type(float)
    order = jnp.argsort(line)
    place = jnp.argsort(order)
    if method == "ordinal":
        ranks = (place + 1).astype(dtype)
    else:
        ordered = line[order]
        new = jnp.concatenate([jnp.ones(1, bool), ordered[1:] != ordered[:-1]])
        if method == "dense":
            ranks = jnp.cumsum(new)[place].astype(dtype)
        else:
            low = jnp.searchsorted(ordered, line, side="left").astype(dtype) + 1
            high = jnp.searchsorted(ordered, line, side="right").astype(dtype)
            ranks = {"min": low, "max": high, "average": (low + high) / 2}[method]
    if not jnp.issubdtype(line.dtype, jnp.inexact):
        return ranks
    return jnp.where(jnp.any(jnp.isnan(line)), jnp.nan, ranks)


def sem(a: Any, axis: int | None = 0, ddof: int = 1, nan_policy: str = "propagate", *, keepdims: bool = False) -> Any:
    """The standard error of the mean: the standard deviation over the root of the count.

    Args:
      ddof: by how much the divisor of the variance is less than the count.
      nan_policy: 'propagate', or 'omit' to leave NaN out.

    Raises:
      ValueError: another ``nan_policy``.
    """
    if nan_policy not in ("propagate", "omit"):
        raise ValueError(f"{nan_policy} is not supported")
    x = inexact("sem", a)[0]
    if nan_policy == "propagate":
        count = x.size if axis is None else x.shape[axis]
        return jnp.std(x, axis, ddof=ddof, keepdims=keepdims) / jnp.asarray(math.sqrt(count), x.dtype)
    count = jnp.sum(~jnp.isnan(x), axis, keepdims=keepdims)
    return jnp.nanstd(x, axis, ddof=ddof, keepdims=keepdims) / jnp.sqrt(count.astype(x.dtype))
