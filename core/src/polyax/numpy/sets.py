"""Arrays as sets: unique elements, membership, unions and intersections.

The sizes of results depend on values: inside transformations they must be given by ``size``.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from polyax.ir import dtypes
from polyax.lax import lenient as lax
from polyax.numpy.broadcast import choose
from polyax.numpy.indexing import getitem, take
from polyax.numpy.joining import concatenate, stack
from polyax.numpy.promotion import (
    as_array,
    canonicalize_axes,
    canonicalize_axis,
    convert,
    ensure_array,
    of_one_dtype,
    promote_dtypes,
    refuse_traced,
    unwrap,
)
from polyax.numpy.reductions import any as _any
from polyax.numpy.selection import nonzero, searchsorted
from polyax.numpy.shapes import moveaxis, ravel

__all__ = [
    "intersect1d", "isin", "setdiff1d", "setxor1d", "trim_zeros", "union1d", "unique", "unique_all", "unique_counts",
    "unique_inverse", "unique_values",
]  # fmt: skip

_INT32 = np.dtype("int32")


def unique(
    ar: Any, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False, axis: Any = None,
    *, equal_nan: bool = True, size: int | None = None, fill_value: Any = None, sorted: bool = True,
) -> Any:  # fmt: skip
    """The different elements (or slices along ``axis``), in increasing order.

    Args:
      return_index, return_inverse, return_counts: also return where each occurs first, which one each element of
        ``ar`` is, and how often each occurs.
      size: number of results; missing ones are ``fill_value``, by default the smallest.

    Raises:
      ConcretizationTypeError: ``ar`` is traced and ``size`` is not given.
      ValueError: there are no elements, and neither is there a ``fill_value`` for the ``size`` asked for.

    >>> import polyax.numpy as jnp
    >>> jnp.unique(jnp.array([3, 1, 3])).tolist()
    [1, 3]
    """
    ar = ensure_array("unique", ar)
    axis = None if axis is None else canonicalize_axis(axis, ar.ndim)
    if size is None:
        refuse_traced(ar, "The error arose for the first argument of jnp.unique(). To make jnp.unique() compatible "
"with "
                          "JIT and other transforms, you can specify a concrete value for the `size` "
"argument.")  # fmt: skip
    if size and not ar.size and fill_value is None:
        raise ValueError("jnp.unique: zero-sized input with a nonzero size needs a fill_value")
    shape = ar.shape if axis is None else None
    lines = lax.reshape(ar, (ar.size, 1)) if axis is None else _lines(ar, axis)
    found = _unique_lines(lines, size, equal_nan)
    values = getitem(lines, found.index) if ar.size else _no_lines(lines, found)
    weak_type = ar.weak_type and not dtypes.is_complex(ar.dtype)  # which are put together again from their parts
    results = [_shaped(convert(values, ar.dtype, weak_type), ar, axis)]
    if fill_value is not None and size is not None:
        results[0] = _filled(results[0], found.count, fill_value, axis or 0)
    index, inverse, counts = (convert(x, dtypes.default_int()) for x in (found.index, found.inverse, found.counts))
    results += [index] if return_index else []
    results += [inverse if shape is None else lax.reshape(inverse, shape)] if return_inverse else []
    results += [counts] if return_counts else []
    return results[0] if len(results) == 1 else tuple(results)


def _lines(ar: Any, axis: int) -> Any:
    moved = moveaxis(ar, axis, 0)
    return lax.reshape(moved, (moved.shape[0], math.prod(moved.shape[1:])))


def _no_lines(lines: Any, found: _Found) -> Any:
    """As many as are asked for, which the fill value is going to replace."""
    return lax.full((found.index.shape[0], lines.shape[1]), 0, lines.dtype)


def _shaped(values: Any, ar: Any, axis: Any) -> Any:
    if axis is None:
        return ravel(values)
    rest = tuple(n for i, n in enumerate(ar.shape) if i != axis)
    return moveaxis(lax.reshape(values, (values.shape[0], *rest)), 0, axis)


class _Found(NamedTuple):
    index: Any  # of the first occurrence of each unique line
    inverse: Any
    counts: Any
    count: Any  # how many there are


def _unique_lines(lines: Any, size: int | None, equal_nan: bool) -> _Found:
    """Sorts the lines; the first of each run of equal ones is a result."""
    n, width = lines.shape
    if width == 0:  # nothing tells the lines apart
        return _unique_lines(lax.full((n, 1), 0, lines.dtype), size, equal_nan)
    if n == 0:
        empty = lax.full((size or 0,), 0, np.int32)
        return _Found(empty, lax.full((0,), 0, np.int32), empty, np.int32(0))
    keys = [lax.index_in_dim(lines, i, 1, keepdims=False) for i in range(width)]
    *ordered, order = lax.sort((*keys, lax.iota(np.int32, n)), dimension=0, num_keys=width)
    fresh = concatenate([as_array(np.ones(1, bool)), _any(stack([_differ(k, equal_nan) for k in ordered]), 0)])
    run = lax.sub(lax.cumsum(convert(fresh, _INT32), 0), 1)
    (starts,) = nonzero(fresh) if size is None else nonzero(fresh, size=size, fill_value=0)
    total = starts.shape[0]
    counts = _accumulate(total, run, lax.full((n,), 1, np.int32))
    inverse = lax.scatter(lax.full((n,), 0, np.int32), lax.expand_dims(order, (1,)), run, _ONE_AXIS)
    return _Found(take(order, starts, mode="clip"), inverse, counts, lax.add(lax.index_in_dim(run, -1, 0, False), 1))


_ONE_AXIS = lax.ScatterDimensionNumbers((), (0,), (0,))


def _differ(x: Any, equal_nan: bool) -> Any:
    """Whether each element differs from the one before it."""
    n = max(x.shape[0], 1)
    before, after = lax.slice_in_dim(x, 0, n - 1), lax.slice_in_dim(x, min(1, x.shape[0]), x.shape[0])
    differ = lax.ne(before, after)
    if not equal_nan:
        return differ
    both = lax.bitwise_and(lax.ne(before, before), lax.ne(after, after))
    return lax.bitwise_and(differ, lax.bitwise_not(both))


def _accumulate(size: int, places: Any, values: Any) -> Any:
    return lax.scatter_add(
        lax.full((size,), 0, values.dtype), lax.expand_dims(places, (1,)), values, _ONE_AXIS, mode="drop"
    )


def _filled(values: Any, count: Any, fill_value: Any, axis: int) -> Any:
    position = lax.broadcasted_iota(np.int32, values.shape, axis)
    return choose(lax.lt(position, count), values, convert(unwrap(fill_value), values.dtype))


class _UniqueAllResult(NamedTuple):
    values: Any
    indices: Any
    inverse_indices: Any
    counts: Any


class _UniqueCountsResult(NamedTuple):
    values: Any
    counts: Any


class _UniqueInverseResult(NamedTuple):
    values: Any
    inverse_indices: Any


def unique_all(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> _UniqueAllResult:
    """``unique`` with indices, inverse indices and counts; NaNs differ from each other."""
    return _UniqueAllResult(*unique(x, True, True, True, equal_nan=False, size=size, fill_value=fill_value))


def unique_counts(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> _UniqueCountsResult:
    """``unique`` with counts; NaNs differ from each other."""
    return _UniqueCountsResult(*unique(x, return_counts=True, equal_nan=False, size=size, fill_value=fill_value))


def unique_inverse(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> _UniqueInverseResult:
    """``unique`` with inverse indices; NaNs differ from each other."""
    return _UniqueInverseResult(*unique(x, return_inverse=True, equal_nan=False, size=size, fill_value=fill_value))


def unique_values(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> Any:
    """``unique``; NaNs differ from each other."""
    return unique(x, equal_nan=False, size=size, fill_value=fill_value)


# --- membership -------------------------------------------------------------------------------------------------------


def isin(
    element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *, method: str = "auto"
) -> Any:
    """Which elements occur in ``test_elements``; which don't, if ``invert``.

    Args:
      method: each is compared with all ('compare_all', which 'auto' means for a few), or sought among the sorted ones
        ('binary_search', 'sort').

    Raises:
      ValueError: there is no such method.

    >>> import polyax.numpy as jnp
    >>> jnp.isin(jnp.array([1, 2, 3]), jnp.array([2, 9])).tolist()
    [False, True, False]
    """
    if method not in ("auto", "compare_all", "binary_search", "sort"):
        raise ValueError(
            f"{method=} is not implemented; options are 'compare_all', 'binary_search', 'sort', and 'auto'"
        )
    element, tests = of_one_dtype("isin", element, test_elements)
    tests = ravel(tests)
    few = tests.size < _FEW if method == "auto" else method == "compare_all"
    found = (_is_any if few or not tests.size else _is_among)(element, tests)
    found = convert(found, np.dtype(bool))
    return lax.bitwise_not(found) if invert else found


_FEW = 64  # as many comparisons cost less than a sort


def _is_any(element: Any, tests: Any) -> Any:
    column, row = lax.expand_dims(element, (element.ndim,)), lax.broadcast_to_rank(tests, element.ndim + 1)
    return lax.reduce_or(lax.eq(column, row), (element.ndim,))


def _is_among(element: Any, tests: Any) -> Any:
    ordered = lax.sort(tests, dimension=0)
    return lax.eq(element, take(ordered, searchsorted(ordered, element), mode="clip"))


def _pair(name: str, ar1: Any, ar2: Any) -> tuple[Any, Any]:
    a, b = of_one_dtype(name, ar1, ar2)
    return ravel(a), ravel(b)


def _kept(name: str, values: Any, keep: Any, size: int | None, fill_value: Any) -> Any:
    if size is None:
        refuse_traced(
            keep, f"The error arose in jnp.{name}(): inside transformations its result needs a static `size`."
        )
        return getitem(values, np.asarray(keep))
    (places,) = nonzero(keep, size=size, fill_value=0)
    chosen = take(values, places, mode="clip") if values.size else lax.full((size,), 0, values.dtype)
    count = lax.reduce_sum(convert(keep, _INT32), (0,))
    fill = 0 if fill_value is None else fill_value
    return convert(_filled(chosen, count, fill, 0), values.dtype, values.weak_type)


def _filled_by_first(values: Any, count: Any, fill_value: Any) -> Any:
    """Missing ones are ``fill_value``, by default the first, or 0 if there is none."""
    if fill_value is None:
        first = values[:1] if values.size else 0
        return _filled(values, count, choose(lax.gt(count, 0), first, 0), 0)
    return _filled(promote_dtypes(values, unwrap(fill_value))[0], count, fill_value, 0)


def union1d(ar1: Any, ar2: Any, *, size: int | None = None, fill_value: Any = None) -> Any:
    """The elements of either, in increasing order."""
    a, b = _pair("union1d", ar1, ar2)
    return unique(lax.concatenate([a, b], 0), size=size, fill_value=fill_value)


def setdiff1d(
    ar1: Any, ar2: Any, assume_unique: bool = False, *, size: int | None = None, fill_value: Any = None
) -> Any:
    """The elements of the first that the second lacks, in increasing order unless ``assume_unique``."""
    first = ensure_array("setdiff1d", ar1)
    a, b = _pair("setdiff1d", ar1, ar2)
    a = a if assume_unique else _sorted_unique("setdiff1d", a, size)
    keep = isin(a, b, invert=True)
    keep = keep if assume_unique or size is None else lax.bitwise_and(keep, _first_of_runs(a))
    return _kept("setdiff1d", convert(a, first.dtype, first.weak_type), keep, size, fill_value)


def _sorted_unique(name: str, a: Any, size: int | None) -> Any:
    """Unique elements, or with a static size all elements in order: the first of each run then counts."""
    return unique(a) if size is None else lax.sort(a, dimension=0)


def _first_of_runs(a: Any) -> Any:
    return lax.concatenate([as_array(np.ones(min(1, a.shape[0]), bool)), _differ(a, True)], 0)


def intersect1d(
    ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False, *, size: int | None = None,
    fill_value: Any = None,
) -> Any:  # fmt: skip
    """The elements that both have, in increasing order.

    Args:
      assume_unique: a promise that neither has an element twice.
      return_indices: also return where each occurs first in ``ar1`` and in ``ar2``, each taken as a vector.
      size: number of results; missing ones are ``fill_value``, by default the smallest, at indices past the end.

    >>> import polyax.numpy as jnp
    >>> [x.tolist() for x in jnp.intersect1d(jnp.array([3, 1, 3]), jnp.array([5, 3]), return_indices=True)]
    [[3], [0], [1]]
    """
    a, b = _pair("intersect1d", ar1, ar2)
    order = lax.sort((a, lax.iota(np.int32, a.shape[0])), dimension=0, num_keys=1)
    keep = lax.bitwise_and(isin(order[0], b), _first_of_runs(order[0]))
    if size is None:
        values, first = (_kept("intersect1d", x, keep, None, None) for x in order)
        return (values, *_wide(first, _first_in(b, values))) if return_indices else values
    (places,) = nonzero(keep, size=size, fill_value=0)
    values, first = (take(x, places, mode="clip") if x.size else lax.full((size,), 0, x.dtype) for x in order)
    count = lax.reduce_sum(convert(keep, _INT32), (0,))
    second = _first_in(b, values)
    values = _filled_by_first(values, count, fill_value)
    if not return_indices:
        return values
    return values, *_wide(_filled(first, count, a.shape[0], 0), _filled(second, count, b.shape[0], 0))


def _wide(*positions: Any) -> list[Any]:
    return [convert(x, dtypes.default_int()) for x in positions]


def _first_in(b: Any, values: Any) -> Any:
    """Where each of ``values`` occurs first in ``b``, which has them all."""
    equal = lax.eq(lax.expand_dims(values, (1,)), lax.expand_dims(b, (0,)))
    return lax.argmax(equal, 1, _INT32) if b.shape[0] else lax.full(values.shape, 0, np.int32)


def setxor1d(
    ar1: Any, ar2: Any, assume_unique: bool = False, *, size: int | None = None, fill_value: Any = None
) -> Any:
    """The elements of either that the other lacks, in increasing order.

    Args:
      assume_unique: a promise that neither has an element twice: those that two have are taken for common ones.
      size: number of results; missing ones are ``fill_value``, by default the smallest.

    >>> import polyax.numpy as jnp
    >>> jnp.setxor1d(jnp.array([3, 1, 3]), jnp.array([5, 3]), size=3).tolist()
    [1, 5, 1]
    """
    a, b = (lax.sort(x, dimension=0) for x in _pair("setxor1d", ar1, ar2))
    both = lax.concatenate([a, b], 0)
    if assume_unique:
        both = lax.sort(both, dimension=0)
        keep = lax.bitwise_and(_first_of_runs(both), _last_of_runs(both))
    else:
        keep = lax.concatenate(
            [lax.bitwise_and(_first_of_runs(x), isin(x, y, invert=True)) for x, y in ((a, b), (b, a))], 0
        )
    if size is None:
        return lax.sort(_kept("setxor1d", both, keep, None, None), dimension=0)
    left_out, both = lax.sort((lax.bitwise_not(keep), both), dimension=0, num_keys=2)
    places = lax.iota(_INT32, size)
    values = take(both, places, mode="clip") if both.size else lax.full((size,), 0, both.dtype)
    return _filled_by_first(values, lax.reduce_sum(convert(lax.bitwise_not(left_out), _INT32), (0,)), fill_value)


def _last_of_runs(a: Any) -> Any:
    return lax.concatenate([_differ(a, True), as_array(np.ones(min(1, a.shape[0]), bool))], 0)


def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Any:
    """An array without leading ('f') and trailing ('b') slices of zeros, along all axes or those of ``axis``.

    Raises:
      ConcretizationTypeError: ``filt`` is traced.

    >>> import polyax.numpy as jnp
    >>> jnp.trim_zeros(jnp.array([[0, 0], [0, 1], [0, 2]])).tolist()
    [[1], [2]]
    """
    filt = ensure_array("trim_zeros", filt)
    refuse_traced(filt, "Error arose in the `filt` argument of trim_zeros()")
    for d, places in zip(range(filt.ndim), np.nonzero(np.atleast_1d(filt)), strict=False):
        if d in canonicalize_axes(axis, filt.ndim):
            filt = _trimmed(filt, d, places, trim.lower())
    return filt


def _trimmed(filt: Any, axis: int, places: Any, trim: str) -> Any:
    size = filt.shape[axis]
    first, last = (int(places.min()), int(places.max()) + 1) if places.size else (size, size)
    start = first if "f" in trim else 0
    stop = last if "b" in trim and places.size else size if "b" not in trim else start
    return lax.slice_in_dim(filt, start, max(stop, start), axis=axis)
