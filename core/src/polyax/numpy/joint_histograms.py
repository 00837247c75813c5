"""Histograms of several dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from polyax.ir.aval import aval_of
from polyax.lax import lenient as lax
from polyax.numpy.broadcast import choose
from polyax.numpy.histograms import bincount, histogram_bin_edges
from polyax.numpy.joining import stack
from polyax.numpy.promotion import as_array, convert, inexact, is_arraylike, promote_args_inexact, shape_of
from polyax.numpy.selection import searchsorted

__all__ = ["histogram2d", "histogramdd"]


def histogram2d(
    x: Any, y: Any, bins: Any = 10, range: Any = None, weights: Any = None, density: bool | None = None
) -> tuple[Any, Any, Any]:
    """How many points lie in each cell of a grid, and its edges along both directions.

    Args:
      x, y: coordinates of the points, of one length.
      bins: numbers of cells, or edges, the same for both directions or a pair.
      range: a pair of ``(low, high)`` or None, which stands for the extent of the points.
      weights: what each point counts.
      density: divide by the sum and by the areas of cells.

    >>> counts, _, _ = histogram2d(np.array([0.0, 1.0, 2.0]), np.array([0.0, 1.0, 2.0]), bins=2)
    >>> counts.tolist()
    [[1, 0], [0, 2]]
    """
    both = inexact("histogram2d", x, y)
    if both[0].ndim != 1 or both[0].shape != both[1].shape:
        raise TypeError(f"histogram2d: x and y must be vectors of one length, got {both[0].aval} and {both[1].aval}")
    counts, (first, second) = histogramdd(stack(both, 1), _for_both(bins), range, weights, density)
    return counts, first, second


def _for_both(bins: Any) -> Any:
    """Numbers of bins and edges for both directions, from those for each or one for both."""
    if isinstance(bins, (list, tuple)) and len(bins) <= 2:
        return list(bins)
    return [bins, bins]


def histogramdd(
    sample: Any, bins: Any = 10, range: Any = None, weights: Any = None, density: bool | None = None
) -> tuple[Any, list[Any]]:
    """How many points lie in each cell of a grid, and a list of its edges along each direction.

    Args:
      sample: points as rows, ``[n, dimensions]``.
      bins, range, weights, density: as of ``histogram2d``, with an entry for each dimension.

    Raises:
      ValueError: there isn't an entry for each dimension.
      TypeError: ``sample`` is no array.
    """
    if not is_arraylike(sample):
        raise TypeError(f"histogramdd requires ndarray or scalar arguments, got {type(sample)} at position 0.")
    points = as_array(promote_args_inexact("histogramdd", sample)[0])
    if points.ndim != 2:
        raise ValueError(f"histogramdd: sample must have the shape [n, dimensions], got {points.aval}")
    columns = [lax.index_in_dim(points, d, 1, keepdims=False) for d in _numbers(points.shape[1])]
    edges = _edges(points, columns, bins, range)
    places = [_place(x, e) for x, e in zip(columns, edges, strict=True)]
    sizes = [e.shape[0] - 1 for e in edges]
    count = math.prod(sizes)
    flat, inside = lax.full_like(places[0], 0), lax.full_like(places[0], True, bool)
    for p, n in zip(places, sizes, strict=True):
        flat = lax.add(lax.mul(flat, n), p)
        inside = lax.bitwise_and(inside, lax.bitwise_and(lax.ge(p, 0), lax.lt(p, n)))
    weights = None if weights is None else inexact("histogramdd", weights)[0]
    counts = lax.reshape(bincount(choose(inside, flat, count), weights, length=count), tuple(sizes))
    return (_density(counts, edges) if density else counts), edges


def _numbers(n: int) -> Sequence[int]:
    return [*np.arange(n).tolist()]


def _edges(points: Any, columns: Sequence[Any], bins: Any, limits: Any) -> list[Any]:
    dims = len(columns)
    if not isinstance(bins, (list, tuple)) and np.ndim(bins) == 0:
        bins = [bins] * dims
    if len(bins) != dims:
        raise ValueError(f"histogramdd: there should be a bin for each dimension, got {len(bins)} for {points.aval}")
    limits = [None] * dims if limits is None else limits
    if len(limits) != dims or not all(r is None or len(r) == 2 for r in limits):
        raise ValueError(
            f"For sample.shape={points.shape}, range must be a sequence of {dims} pairs or Nones; got range={limits}"
        )
    return [
        convert(histogram_bin_edges(x, b, r), aval_of(x).dtype) for x, b, r in zip(columns, bins, limits, strict=True)
    ]


def _place(x: Any, edges: Any) -> Any:
    """The number of the bin; those outside have others. The last edge belongs to the last bin."""
    place = lax.sub(searchsorted(edges, x, side="right"), 1)
    return choose(lax.eq(x, lax.index_in_dim(edges, -1, 0, keepdims=False)), shape_of(edges)[0] - 2, place)


def _density(counts: Any, edges: Sequence[Any]) -> Any:
    total = lax.reduce_sum(counts, tuple(_numbers(counts.ndim)))
    found = lax.div(convert(counts, edges[0].dtype), convert(total, edges[0].dtype))
    for d, e in enumerate(edges):
        widths = lax.sub(lax.slice_in_dim(e, 1, e.shape[0]), lax.slice_in_dim(e, 0, e.shape[0] - 1))
        found = lax.div(found, lax.broadcast_in_dim(widths, found.shape, (d,)))
    return found
