"""Differences of neighbours, integrals and interpolation between points."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.lax import lenient as lax
from polyax.numpy import reductions
from polyax.numpy.axes import reduction_axes
from polyax.numpy.broadcast import broadcast_to, choose
from polyax.numpy.indexing import take
from polyax.numpy.promotion import (
    canonicalize_axis,
    convert,
    ensure_array,
    inexact,
    promote_dtypes,
    result_dtype,
    shape_of,
    unwrap,
)
from polyax.numpy.selection import searchsorted
from polyax.numpy.shapes import moveaxis, ravel
from polyax.numpy.ufuncs import absolute, add, divide, multiply, remainder, subtract

__all__ = ["diff", "ediff1d", "gradient", "interp", "trapezoid"]


def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """Differences of neighbours along ``axis``, ``n`` times; ``prepend`` and ``append`` are joined first.

    Raises:
      ValueError: ``n`` is negative, or ``a`` is a scalar.

    >>> import polyax.numpy as jnp
    >>> jnp.diff(jnp.array([1, 4, 9])).tolist()
    [3, 5]
    """
    a = ensure_array("diff", a)
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n}")
    if n == 0:
        return a
    if a.ndim == 0:
        raise ValueError(f"diff requires input that is at least one dimensional; got {a}")
    axis = canonicalize_axis(axis, a.ndim)
    ends = [None if e is None else _end(e, a, axis) for e in (prepend, append)]
    parts = [p for p in (ends[0], a, ends[1]) if p is not None]
    a = lax.concatenate(promote_dtypes(*parts), axis) if len(parts) > 1 else a
    minus = lax.ne if a.dtype in dtypes.BOOL else lax.sub
    for _ in range(n):
        size = a.shape[axis]
        a = minus(
            lax.slice_in_dim(a, min(1, size), size, axis=axis), lax.slice_in_dim(a, 0, max(size - 1, 0), axis=axis)
        )
    return a


def _end(value: Any, a: Any, axis: int) -> Any:
    value = ensure_array("diff", value)
    return broadcast_to(value, (*a.shape[:axis], 1, *a.shape[axis + 1 :])) if value.ndim == 0 else value


def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    """Differences of neighbours of the flattened array, with ``to_begin`` before and ``to_end`` after them."""
    flat = ravel(ensure_array("ediff1d", ary))
    parts = [lax.sub(_but_first(flat, 0), _but_last(flat, 0)) if flat.size else flat]
    if to_begin is not None:
        parts.insert(0, convert(ravel(unwrap(to_begin)), flat.dtype))
    if to_end is not None:
        parts.append(convert(ravel(unwrap(to_end)), flat.dtype))
    return lax.concatenate(parts, 0) if len(parts) > 1 else parts[0]


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """The integral of ``y`` along ``axis`` by the trapezoidal rule, over the points ``x`` or at distances ``dx``.

    Distances that are arrays broadcast to those between the elements of ``y``.

    >>> import polyax.numpy as jnp
    >>> jnp.trapezoid(jnp.array([1.0, 3.0])).item()
    2.0
    """
    y, *points = inexact("trapezoid", y, *([] if x is None else [x]))
    y = moveaxis(y, axis, -1)
    if points:
        step = diff(points[0] if points[0].ndim == 1 else moveaxis(points[0], axis, -1))
    elif rank := len(shape_of(step := unwrap(dx))):
        step = moveaxis(lax.expand_dims(step, tuple(range(y.ndim - rank))), axis, -1)
    size = y.shape[-1]
    middle = lax.add(lax.slice_in_dim(y, 1, size, axis=y.ndim - 1), lax.slice_in_dim(y, 0, size - 1, axis=y.ndim - 1))
    return lax.mul(0.5, reductions.sum(multiply(step, middle), axis=-1))


def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    """The piecewise linear function through the points (xp, fp), with ``xp`` increasing, at ``x``.

    Args:
      left, right: values outside, by default those at the ends; or 'extrapolate'.
      period: the function repeats itself at this distance, so that nothing is outside; ``xp`` needn't increase then.

    >>> import polyax.numpy as jnp
    >>> jnp.interp(1.5, jnp.array([1.0, 2.0]), jnp.array([10.0, 20.0])).item()
    15.0
    """
    if shape_of(xp) != shape_of(fp) or len(shape_of(xp)) != 1:
        raise ValueError("xp and fp must be one-dimensional arrays of equal size")
    places, fp = _real_places(x, xp), inexact("interp", fp)[0]
    fp = convert(fp, result_dtype(*places, fp)[0])
    x, xp = (convert(v, dtypes.real_part(fp.dtype)) for v in places)
    if period is not None:
        if shape_of(period) != ():
            raise ValueError(f"period must be a scalar; got {period}")
        x, xp, fp = _one_period(x, xp, fp, absolute(period))
        left = right = "extrapolate"
    size = xp.shape[0]
    i = lax.clamp(np.int32(1), searchsorted(xp, x, side="right"), np.int32(max(size - 1, 1)))
    before = lax.sub(i, 1)
    (x0, y0), (x1, y1) = ([take(v, at, mode="clip") for v in (xp, fp)] for at in (before, i))
    width = lax.sub(x1, x0)
    empty = lax.le(lax.abs(width), float(np.spacing(dtypes.finfo(xp.dtype).eps)))
    slope = convert(lax.div(lax.sub(x, x0), choose(empty, 1.0, width)), fp.dtype)
    value = choose(empty, y0, lax.add(y0, lax.mul(slope, lax.sub(y1, y0))))
    value = _outside(value, lax.lt(x, broadcast_to(xp[0], x.shape)), "left", left, fp[0])
    return _outside(value, lax.gt(x, broadcast_to(xp[-1], x.shape)), "right", right, fp[-1])


def _real_places(x: Any, xp: Any) -> list[Any]:
    places = inexact("interp", x, xp)
    if any(p.dtype in dtypes.COMPLEX for p in places):
        raise ValueError("jnp.interp: complex x values not supported.")
    return places


def _one_period(x: Any, xp: Any, fp: Any, period: Any) -> tuple[Any, Any, Any]:
    """Places within one period; the points in their order, with the last one before and the first one behind them."""
    xp, fp = lax.sort_key_val(remainder(xp, period), fp)
    around = [subtract(xp[-1:], period), xp, add(xp[:1], period)]
    return remainder(x, period), lax.concatenate(around, 0), lax.concatenate([fp[-1:], fp, fp[:1]], 0)


def _outside(value: Any, beyond: Any, side: str, given: Any, end: Any) -> Any:
    if isinstance(given, str):
        if given != "extrapolate":
            raise ValueError(f"the only valid string value of `{side}` is 'extrapolate', but got: {given!r}")
        return value
    return choose(beyond, end if given is None else convert(unwrap(given), value.dtype), value)


def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int | None = None) -> Any:
    """The derivative along each axis by central differences, one-sided at the ends.

    Args:
      varargs: distances of neighbours, by default 1, or the coordinates of all points: one for all axes, or one for
        each axis.

    >>> import polyax.numpy as jnp
    >>> jnp.gradient(jnp.array([1.0, 4.0, 9.0])).tolist()
    [3.0, 4.0, 5.0]
    """
    f, *given = inexact("gradient", f, *varargs)
    if edge_order is not None:
        raise NotImplementedError("The 'edge_order' argument to jnp.gradient is not supported.")
    axes = reduction_axes(axis, f.ndim, "gradient")
    steps = given if len(given) == len(axes) else (given or [1.0]) * len(axes)
    if len(steps) != len(axes):
        raise TypeError(f"Invalid number of spacing arguments {len(varargs)} for axis={axis}")
    results = [_derivative(f, d, h) for d, h in zip(axes, steps, strict=True)]
    return results[0] if len(results) == 1 else results


def _derivative(f: Any, axis: int, step: Any) -> Any:
    """Along one axis: of the values at the ends one-sided, else by the parabola through three neighbours."""
    size = f.shape[axis]
    if size < 2:
        raise ValueError(
            "Shape of array too small to calculate a numerical gradient, at least 2 elements are required."
        )
    if len(shape_of(step)) > 1:
        raise ValueError("Spacing arrays must be 1D arrays or scalars.")
    if shape_of(step) not in ((), (size,)):
        raise ValueError(
            "Spacing arrays must have the same length as the dimension along which the gradient is calculated."
        )
    if shape_of(step) == ():
        rises = [_rise(f, axis, *span) for span in ((0, 2, 1), (0, size, 2), (size - 2, size, 1))]
        first, inner, last = rises[0], lax.mul(rises[1], 0.5), rises[2]
        return lax.div(lax.concatenate([first, inner, last], axis), convert(step, f.dtype))
    width = lax.expand_dims(diff(step), tuple(i for i in range(f.ndim) if i != axis))
    slope = divide(diff(f, axis=axis), width)
    weight = lax.div(_but_first(width, axis), lax.add(_but_last(width, axis), _but_first(width, axis)))
    inner = add(multiply(weight, _but_last(slope, axis)), multiply(subtract(1.0, weight), _but_first(slope, axis)))
    ends = [lax.slice_in_dim(slope, i, i + 1, axis=axis) for i in (0, size - 2)]
    return lax.concatenate([ends[0], inner, ends[1]], axis)


def _rise(f: Any, axis: int, start: int, stop: int, by: int) -> Any:
    """Differences of elements that are ``by`` apart; what is between them doesn't matter, be it NaN."""
    after, before = (lax.slice_in_dim(f, start + a, stop - b, axis=axis) for a, b in ((by, 0), (0, by)))
    return lax.sub(after, before)


def _but_last(x: Any, axis: int) -> Any:
    return lax.slice_in_dim(x, 0, x.shape[axis] - 1, axis=axis)


def _but_first(x: Any, axis: int) -> Any:
    return lax.slice_in_dim(x, 1, x.shape[axis], axis=axis)
