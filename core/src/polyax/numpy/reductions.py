"""Reductions over axes: sums, products, extrema, logic, means and variances, and running sums and products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.ir.aval import aval_of
from polyax.ir.dims import SymbolicDim
from polyax.lax import lenient as lax
from polyax.numpy.axes import Axes, named_axes
from polyax.numpy.broadcast import as_mask, broadcast_to, choose
from polyax.numpy.fused import fused
from polyax.numpy.promotion import (
    canonical_dtype,
    canonicalize_axes,
    canonicalize_axis,
    check_arraylike,
    convert,
    ensure_array,
    is_traced,
    shape_of,
    to_inexact,
    unwrap,
)
from polyax.numpy.shapes import along
from polyax.numpy.types import ComplexWarning
from polyax.numpy.ufuncs import maximum, minimum
from polyax.ops.basis import named
from polyax.runtime.contract.tracebacks import warn_user

__all__ = [
    "all", "amax", "amin", "any", "average", "count_nonzero", "cumprod", "cumsum", "cumulative_prod",
    "cumulative_sum", "max", "mean", "min", "prod", "ptp", "std", "sum", "var",
]  # fmt: skip

_HALF = frozenset({np.dtype("float16"), dtypes.bfloat16})


# --- common parts -----------------------------------------------------------------------------------------------------


def mask_of(name: str, where: Any) -> Any:
    """The ``where`` argument of a reduction: None, or boolean.

    Raises:
      ValueError: it is not boolean.
    """
    if where is None:
        return None
    check_arraylike(name, where)
    where = unwrap(where)
    if aval_of(where).dtype != np.dtype(bool):
        raise ValueError(
            f"jnp.{name}: where must be None or a boolean array; got where.dtype={aval_of(where).dtype!r}."
        )
    return where


def refuse_out(name: str, out: Any) -> None:
    if out is not None:
        raise NotImplementedError(f"The 'out' argument to jnp.{name} is not supported.")


def restore_axes(x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    return lax.expand_dims(x, axes) if keepdims and axes else x


def identity_of(dtype: Any, value: float) -> Any:
    """The value of ``dtype`` nearest to 0, 1 or an infinity: what leaves a reduction unchanged."""
    if dtype == np.dtype(bool):
        return np.bool_(value > 0)
    if np.isinf(value) and dtypes.is_integer(dtype):
        info = dtypes.iinfo(dtype)
        return dtype.type(info.min if value < 0 else info.max)
    return dtype.type(value)


def _wide_integers(dtype: Any) -> Any:
    """Small integers are summed in the default integer type."""
    if dtype in dtypes.BOOL or dtypes.is_signed(dtype):
        default = dtypes.default_int()
        return default if dtype in dtypes.BOOL or dtype.itemsize < default.itemsize else dtype
    default = dtypes.canonicalize(np.uint64)
    return default if dtypes.is_unsigned(dtype) and dtype.itemsize < default.itemsize else dtype


# --- sums and products ------------------------------------------------------------------------------------------------


def _accumulate(
    name: str, op: Callable[..., Any], combine: Callable[..., Any], unit: int, a: Any, axis: Any, dtype: Any,
    out: Any, keepdims: bool, initial: Any, where: Any, promote_integers: bool,
) -> Any:  # fmt: skip
    """Sum or product. Half precision is accumulated in float32 unless ``dtype`` says otherwise."""
    refuse_out(name, out)
    a = ensure_array(name, a)
    mask = mask_of(name, where)
    axes = named_axes(axis, a.ndim, name)
    result = canonical_dtype(dtype) if dtype is not None else _summed(a.dtype)
    if dtype is None and promote_integers:
        result = _wide_integers(result)
    working = np.dtype("float32") if dtype is None and result in _HALF else result
    if result in dtypes.BOOL:
        op, combine = _OF_TRUTHS[unit]
    a = _as_kind(a, working)
    if mask is not None:
        a = choose(mask, a, identity_of(working, unit))
    total = axes.fold(name, op, a)
    if initial is not None:
        total = combine(_initial(name, initial, working), total)
    return _typed(restore_axes(total, axes.own, keepdims), result)


_OF_TRUTHS = {0: (lax.reduce_or, lax.bitwise_or), 1: (lax.reduce_and, lax.bitwise_and)}  # sums and products of them


def _summed(dtype: Any) -> Any:
    """Sums and products of booleans are integers of the default width."""
    return dtypes.default_int() if dtype in dtypes.BOOL else dtype


def _initial(name: str, initial: Any, dtype: Any) -> Any:
    check_arraylike(name, initial)
    initial = unwrap(initial)
    if shape_of(initial) != ():
        raise ValueError(f"initial value must be a scalar. Got array of shape {shape_of(initial)}")
    if isinstance(initial, complex) and dtype not in dtypes.COMPLEX:
        warn_user(_DISCARDED, ComplexWarning)
        initial = initial.real
    return convert(initial, dtype)


_DISCARDED = "Casting complex values to real discards the imaginary part"


def _as_kind(x: Any, kind: Any) -> Any:
    """``x`` as the dtype that was asked for, with a warning where that loses imaginary parts."""
    if dtypes.is_complex(x.dtype) and not dtypes.is_complex(kind):
        warn_user(_DISCARDED, ComplexWarning)
    return convert(x, kind)


def _typed(x: Any, dtype: Any) -> Any:
    return x if x.dtype == dtype else convert(x, dtype)


def sum(
    a: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False, initial: Any = None,
    where: Any = None, promote_integers: bool = True,
) -> Any:  # fmt: skip
    """The sum over ``axis`` (all axes by default) of the elements where ``where`` holds, plus ``initial``.

    As for extrema, means and variances, an axis may also be the name of one that is mapped (``vmap(axis_name=)``).

    Raises:
      TypeError: ``a`` is a list or tuple; convert it with ``jnp.array``.

    >>> import polyax.numpy as jnp
    >>> jnp.sum(jnp.arange(4.0)).item()
    6.0
    """
    return _accumulate(
        "sum", lax.reduce_sum, lax.add, 0, a, axis, dtype, out, keepdims, initial, where, promote_integers
    )


def prod(
    a: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False, initial: Any = None,
    where: Any = None, promote_integers: bool = True,
) -> Any:  # fmt: skip
    """The product over ``axis`` (all axes by default) of the elements where ``where`` holds, times ``initial``.

    >>> import polyax.numpy as jnp
    >>> jnp.prod(jnp.array([2, 3, 4])).item()
    24
    """
    return _accumulate(
        "prod", lax.reduce_prod, lax.mul, 1, a, axis, dtype, out, keepdims, initial, where, promote_integers
    )


# --- extrema ----------------------------------------------------------------------------------------------------------


def _extremum(
    name: str, op: Callable[..., Any], combine: Callable[..., Any], worst: float, a: Any, axis: Any, out: Any,
    keepdims: bool, initial: Any, where: Any,
) -> Any:  # fmt: skip
    refuse_out(name, out)
    a = ensure_array(name, a)
    mask = mask_of(name, where)
    axes = named_axes(axis, a.ndim, name)
    if initial is None:
        _require_elements(name, a, axes.own, mask)
    a = convert(a, a.dtype)
    if mask is not None:
        a = choose(mask, a, identity_of(a.dtype, worst))
    result = axes.fold(name, _of_bools(op) if a.dtype in dtypes.BOOL else op, a)
    if initial is not None:
        result = combine(_initial(name, initial, a.dtype), result)
    return restore_axes(result, axes.own, keepdims)


def _of_bools(op: Callable[..., Any]) -> Callable[..., Any]:
    return lax.reduce_or if op is lax.reduce_max else lax.reduce_and


def _require_elements(name: str, a: Any, axes: tuple[int, ...], mask: Any) -> None:
    if mask is not None:
        raise ValueError(
            f"reduction operation {name} does not have an identity, so to use a where mask one has to specify 'initial'"
        )
    if 0 in (a.shape[d] for d in axes):
        raise ValueError(f"zero-size array to reduction operation {name} which has no identity")


def max(
    a: Any, axis: Any = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Any:
    """The largest element over ``axis`` (all axes by default); NaN if any is.

    Raises:
      ValueError: there are no elements and ``initial`` is not given.

    >>> import polyax.numpy as jnp
    >>> jnp.max(jnp.array([[1, 9], [7, 3]]), axis=0).tolist()
    [7, 9]
    """
    return _extremum("max", lax.reduce_max, maximum, -np.inf, a, axis, out, keepdims, initial, where)


def min(
    a: Any, axis: Any = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Any:
    """The smallest element over ``axis`` (all axes by default); NaN if any is.

    Raises:
      ValueError: there are no elements and ``initial`` is not given.

    >>> import polyax.numpy as jnp
    >>> jnp.min(jnp.array([4, 1, 3])).item()
    1
    """
    return _extremum("min", lax.reduce_min, minimum, np.inf, a, axis, out, keepdims, initial, where)


amax, amin = max, min


def ptp(a: Any, axis: Any = None, out: None = None, keepdims: bool = False) -> Any:
    """Largest minus smallest element over ``axis``."""
    check_arraylike("ptp", a)
    return lax.sub(max(a, axis, out, keepdims), min(a, axis, out, keepdims))


# --- logic ------------------------------------------------------------------------------------------------------------


def _logical(name: str, op: Callable[..., Any], unit: bool, doc: str) -> Callable[..., Any]:
    def reduction(a: Any, axis: Any = None, out: None = None, keepdims: bool = False, *, where: Any = None) -> Any:
        refuse_out(name, out)
        a = ensure_array(name, a)
        axes = named_axes(axis, a.ndim, name)
        truth = a.astype(bool)
        mask = mask_of(name, where)
        if mask is not None:
            truth = choose(mask, truth, unit)
        return restore_axes(axes.fold(name, op, truth), axes.own, keepdims)

    return named(reduction, name, doc)


all = _logical("all", lax.reduce_and, True, "Whether all elements over ``axis`` are nonzero; true if there are none.")
any = _logical("any", lax.reduce_or, False, "Whether an element over ``axis`` is nonzero; false if there are none.")


def count_nonzero(a: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """The number of nonzero elements over ``axis``, as an integer.

    >>> import polyax.numpy as jnp
    >>> jnp.count_nonzero(jnp.array([0, 3, 5])).item()
    2
    """
    a = ensure_array("count_nonzero", a)
    return sum(as_mask(a), axis, dtype=dtypes.default_int(), keepdims=keepdims)


# --- means and variances ----------------------------------------------------------------------------------------------


def element_count(a: Any, axes: Axes, keepdims: bool, where: Any, dtype: Any) -> Any:
    """How many elements each result of a reduction has: a number, or an array where a mask chooses."""
    if where is None:
        count = axes.count(a.shape)
        return convert(count.__jax_array__(), dtype) if isinstance(count, SymbolicDim) else dtype.type(count)
    return sum(broadcast_to(where, a.shape), (*axes.own, *axes.names), dtype=dtype, keepdims=keepdims)


def working_dtype(dtype: Any) -> Any:
    return np.dtype("float32") if dtype in _HALF else dtype


def mean(
    a: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False, *, where: Any = None
) -> Any:
    """The arithmetic mean over ``axis`` (all axes by default); integers give float32.

    >>> import polyax.numpy as jnp
    >>> jnp.mean(jnp.array([1, 2])).item()
    1.5
    """
    refuse_out("mean", out)
    a = ensure_array("mean", a)
    axes = named_axes(axis, a.ndim, "mean")
    mask = mask_of("mean", where)
    result = to_inexact(a.dtype) if dtype is None else canonical_dtype(dtype)
    working = working_dtype(result)
    total = sum(a, axis, dtype=working, keepdims=keepdims, where=mask)
    return _typed(lax.div(total, element_count(a, axes, keepdims, mask, working)), result)


def var(
    a: Any, axis: Any = None, dtype: Any = None, out: None = None, ddof: Any = 0, keepdims: bool = False, *,
    where: Any = None, mean: Any = None, correction: Any = None,
) -> Any:  # fmt: skip
    """The mean squared distance from the mean over ``axis``; the divisor is the count minus ``ddof``.

    Args:
      mean: the mean, if it is known already, with the reduced axes kept.
      correction: another name for ``ddof``.

    >>> import polyax.numpy as jnp
    >>> jnp.var(jnp.array([1.0, 3.0])).item()
    1.0
    """
    refuse_out("var", out)
    a = ensure_array("var", a)
    if correction is not None:
        if not isinstance(ddof, int) or ddof != 0:
            raise ValueError("ddof and correction can't be provided simultaneously.")
        ddof = correction
    ddof = ddof if is_traced(ddof) else np.asarray(ddof).item()
    axes = named_axes(axis, a.ndim, "var")
    return _variance(a, axes, dtype, ddof, keepdims, mask_of("var", where), mean)


@fused(static_argnames=("axes", "dtype", "ddof", "keepdims"))
def _variance(a: Any, axes: Axes, dtype: Any, ddof: Any, keepdims: bool, mask: Any, center: Any) -> Any:
    kind = to_inexact(a.dtype) if dtype is None else canonical_dtype(dtype)
    if dtype is not None and a.dtype in dtypes.COMPLEX and kind not in dtypes.COMPLEX:
        raise ValueError("jax.numpy.var does not yet support real dtype parameters for complex-valued arrays.")
    working = working_dtype(kind)
    a = convert(a, working)
    over = (*axes.own, *axes.names)
    center = mean(a, over, working, keepdims=True, where=mask) if center is None else convert(unwrap(center), working)
    distance = lax.sub(a, center)
    squares = _squared_magnitude(distance)
    real = squares.dtype
    count = element_count(a, axes, keepdims, mask, real)
    known = [not is_traced(n) for n in (count, ddof)]
    certain = mask is None and known[0] and known[1]
    count = real.type(count - ddof) if certain else lax.sub(count, convert(unwrap(ddof), real))
    total = lax.div(sum(squares, over, dtype=real, keepdims=keepdims, where=mask), count)
    total = _typed(total, dtypes.real_part(kind) if dtype is None else kind)
    if certain and count > 0 and dtypes.is_inexact(kind):
        return total
    return choose(lax.gt(count, real.type(0)), total, np.nan)  # a NaN, so that integers become floats


def _squared_magnitude(x: Any) -> Any:
    return lax.real(lax.mul(x, lax.conj(x))) if x.dtype in dtypes.COMPLEX else lax.square(x)


def std(
    a: Any, axis: Any = None, dtype: Any = None, out: None = None, ddof: int = 0, keepdims: bool = False, *,
    where: Any = None, mean: Any = None, correction: Any = None,
) -> Any:  # fmt: skip
    """The square root of ``var``.

    Raises:
      ValueError: ``dtype`` is one of integers or booleans.

    >>> import polyax.numpy as jnp
    >>> jnp.std(jnp.array([1.0, 3.0]), ddof=0).item()
    1.0
    """
    refuse_out("std", out)
    check_arraylike("std", a)
    if dtype is not None and not dtypes.is_inexact(canonical_dtype(dtype)):
        raise ValueError(f"dtype argument to jnp.std must be inexact; got {canonical_dtype(dtype)}")
    return lax.sqrt(var(a, axis, dtype, None, ddof, keepdims, where=where, mean=mean, correction=correction))


def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, keepdims: bool = False) -> Any:
    """The mean over ``axis`` with ``weights`` of the shape of ``a``, or of its lengths along the axes, in their order.

    With ``returned`` also the sum of the weights.

    >>> import polyax.numpy as jnp
    >>> jnp.average(jnp.array([1.0, 5.0]), weights=jnp.array([3.0, 1.0])).item()
    2.0
    """
    check_arraylike("average", a, *[] if weights is None else [weights])
    a = ensure_array("average", a)
    if weights is None:
        result = mean(a, axis, keepdims=keepdims)
        axes = named_axes(axis, a.ndim, "average")
        total = lax.full_like(result, element_count(a, axes, keepdims, None, result.dtype))
        return (result, total) if returned else result
    weights = _aligned_weights(ensure_array("average", weights), a, axis)
    kind = to_inexact(dtypes.canonicalize(dtypes.promote_types(a.dtype, weights.dtype)))
    total = sum(convert(weights, kind), axis, keepdims=keepdims)
    result = lax.div(sum(lax.mul(convert(a, kind), convert(weights, kind)), axis, keepdims=keepdims), total)
    return (result, total) if returned else result


def _aligned_weights(weights: Any, a: Any, axis: Any) -> Any:
    if weights.shape == a.shape:
        return weights
    if axis is None:
        raise ValueError("Axis must be specified when shapes of a and weights differ.")
    axes = canonicalize_axes(axis, a.ndim)
    if weights.shape != tuple(a.shape[k] for k in axes):
        raise ValueError("Shape of weights must be consistent with shape of a along specified axis.")
    ordered = sorted(range(len(axes)), key=lambda n: axes[n])
    return lax.broadcast_in_dim(lax.transpose(weights, ordered), a.shape, [axes[n] for n in ordered])


# --- running ----------------------------------------------------------------------------------------------------------


def _running(name: str, op: Callable[..., Any], doc: str) -> Callable[..., Any]:
    def running(a: Any, axis: Any = None, dtype: Any = None, out: None = None) -> Any:
        refuse_out(name, out)
        a = ensure_array(name, a)
        a = a if a.ndim else lax.reshape(a, (1,))
        kind = _summed(a.dtype) if dtype is None else canonical_dtype(dtype)
        a, axis = along(a, axis)
        if kind in dtypes.BOOL:  # of zeros and ones
            return as_mask(op(convert(_as_kind(a, kind), np.dtype("int32")), axis))
        return op(_as_kind(a, kind), axis)

    return named(running, name, doc)


cumsum = _running("cumsum", lax.cumsum, "Running sums along ``axis``, or of the flattened array.")
cumprod = _running("cumprod", lax.cumprod, "Running products along ``axis``, or of the flattened array.")


def _cumulative(
    name: str, what: str, op: Callable[..., Any], unit: int, x: Any, axis: Any, dtype: Any, include_initial: bool
) -> Any:
    x = ensure_array(name, x)
    if x.ndim == 0:
        raise ValueError(
            f"The input must be non-scalar to take a cumulative {what}, however a scalar value or scalar array was "
            "given."
        )
    if axis is None:
        if x.ndim > 1:
            raise ValueError(
                f"The input array has rank {x.ndim}, however axis was not set to an explicit value. The axis argument "
                "is only optional for one-dimensional arrays."
            )
        axis = 0
    axis = canonicalize_axis(axis, x.ndim)
    result = op(x, axis, dtype)
    if not include_initial:
        return result
    first = lax.full((*x.shape[:axis], 1, *x.shape[axis + 1 :]), unit, result.dtype)
    return lax.concatenate([first, result], axis)


def cumulative_sum(x: Any, /, *, axis: Any = None, dtype: Any = None, include_initial: bool = False) -> Any:
    """Running sums along ``axis``; with ``include_initial`` a zero comes first. Small integers become wider."""
    x = ensure_array("cumulative_sum", x)
    kind = _wide_integers(x.dtype) if dtype is None else dtype
    return _cumulative("cumulative_sum", "sum", cumsum, 0, x, axis, kind, include_initial)


def cumulative_prod(x: Any, /, *, axis: Any = None, dtype: Any = None, include_initial: bool = False) -> Any:
    """Running products along ``axis``; with ``include_initial`` a one comes first."""
    return _cumulative("cumulative_prod", "product", cumprod, 1, x, axis, dtype, include_initial)
