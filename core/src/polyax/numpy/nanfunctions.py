"""Reductions without regard to NaN."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.lax import lenient as lax
from polyax.numpy import reductions
from polyax.numpy.broadcast import broadcast_arrays, choose
from polyax.numpy.logic import isnan
from polyax.numpy.promotion import as_array, canonical_dtype, convert, ensure_array
from polyax.numpy.selection import argmax, argmin
from polyax.ops.basis import named

__all__ = [
    "nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmin", "nanprod", "nanstd", "nansum",
    "nanvar",
]  # fmt: skip


def _without_nan(name: str, a: Any, fill: float) -> tuple[Any, Any]:
    a = ensure_array(name, a)
    if not dtypes.is_inexact(a.dtype):
        return a, None
    return choose(isnan(a), reductions.identity_of(a.dtype, fill), a), isnan(a)


def _nan_reduction(name: str, reduction: Callable[..., Any], fill: float, doc: str) -> Callable[..., Any]:
    def fun(
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        out: None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = None,
    ) -> Any:
        filled, _ = _without_nan(name, a, fill)
        return reduction(filled, axis, dtype, out, keepdims, initial, reductions.mask_of(name, where))

    return named(fun, name, doc)


nansum = _nan_reduction("nansum", reductions.sum, 0, "``sum`` with NaN counted as zero.")
nanprod = _nan_reduction("nanprod", reductions.prod, 1, "``prod`` with NaN counted as one.")


def _nan_extremum(name: str, reduction: Callable[..., Any], worst: float, doc: str) -> Callable[..., Any]:
    def fun(
        a: Any, axis: Any = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = None
    ) -> Any:
        filled, missing = _without_nan(name, a, worst)
        result = reduction(filled, axis, out, keepdims, initial, reductions.mask_of(name, where))
        if missing is None or initial is not None:
            return result
        return choose(reductions.all(missing, axis, keepdims=keepdims, where=where), np.nan, result)

    return named(fun, name, doc)


nanmax = _nan_extremum(
    "nanmax", reductions.max, -np.inf, "``max`` without regard to NaN; NaN if there is nothing else."
)
nanmin = _nan_extremum("nanmin", reductions.min, np.inf, "``min`` without regard to NaN; NaN if there is nothing else.")


def _with_mask(name: str, a: Any, where: Any) -> tuple[Any, Any]:
    """``a``, as often as a mask of no more dimensions repeats it, and which of its elements count."""
    a, mask = ensure_array(name, a), reductions.mask_of(name, where)
    if mask is None:
        return a, lax.bitwise_not(isnan(a))
    mask = as_array(mask)
    if mask.ndim <= a.ndim:
        a, mask = broadcast_arrays(a, mask)
    return a, lax.bitwise_not(isnan(a)) & mask


def nanmean(
    a: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False, where: Any = None
) -> Any:
    """``mean`` without regard to NaN."""
    a, present = _with_mask("nanmean", a, where)
    return reductions.mean(a, axis, dtype, out, keepdims, where=present)


def nanvar(
    a: Any, axis: Any = None, dtype: Any = None, out: None = None, ddof: int = 0, keepdims: bool = False,
    where: Any = None, mean: Any = None,
) -> Any:  # fmt: skip
    """``var`` without regard to NaN."""
    a, present = _with_mask("nanvar", a, where)
    filled, _ = _without_nan("nanvar", a, 0)  # whose square has a derivative
    result = reductions.var(filled, axis, dtype, out, ddof, keepdims, where=present, mean=mean)
    return result if dtype is None else convert(result, canonical_dtype(dtype))


def nanstd(
    a: Any, axis: Any = None, dtype: Any = None, out: None = None, ddof: int = 0, keepdims: bool = False,
    where: Any = None, mean: Any = None,
) -> Any:  # fmt: skip
    """``std`` without regard to NaN."""
    return lax.sqrt(nanvar(a, axis, dtype, out, ddof, keepdims, where, mean))


def nancumsum(a: Any, axis: Any = None, dtype: Any = None, out: None = None) -> Any:
    """``cumsum`` with NaN counted as zero."""
    reductions.refuse_out("nancumsum", out)
    return reductions.cumsum(_without_nan("nancumsum", a, 0)[0], axis, dtype)


def nancumprod(a: Any, axis: Any = None, dtype: Any = None, out: None = None) -> Any:
    """``cumprod`` with NaN counted as one."""
    reductions.refuse_out("nancumprod", out)
    return reductions.cumprod(_without_nan("nancumprod", a, 1)[0], axis, dtype)


def _nan_position(name: str, search: Callable[..., Any], worst: float, doc: str) -> Callable[..., Any]:
    def fun(a: Any, axis: Any = None, out: None = None, keepdims: bool | None = None) -> Any:
        reductions.refuse_out(name, out)
        filled, missing = _without_nan(name, a, worst)
        result = search(filled, axis, None, keepdims)
        return result if missing is None else choose(reductions.all(missing, axis, keepdims=bool(keepdims)), -1, result)

    return named(fun, name, doc)


nanargmax = _nan_position(
    "nanargmax", argmax, -np.inf, "``argmax`` without regard to NaN; -1 if there is nothing else."
)
nanargmin = _nan_position("nanargmin", argmin, np.inf, "``argmin`` without regard to NaN; -1 if there is nothing else.")
