"""Counting: bincount and histograms."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.lax import lenient as lax
from polyax.meshes.resharding import with_out_sharding
from polyax.numpy import reductions
from polyax.numpy.broadcast import broadcast_to, choose
from polyax.numpy.promotion import (
    as_array,
    convert,
    ensure_array,
    ensure_arrays,
    inexact,
    promote_args_inexact,
    refuse_traced,
    shape_of,
    to_inexact,
    unwrap,
)
from polyax.numpy.ranges import linspace
from polyax.numpy.selection import searchsorted
from polyax.numpy.shapes import ravel

__all__ = ["bincount", "histogram", "histogram_bin_edges"]


@with_out_sharding
def bincount(
    x: Any, weights: Any = None, minlength: int = 0, *, length: int | None = None, out_sharding: Any = None
) -> Any:
    """How often each number of 0, 1, ... occurs in ``x``, or the sum of its weights; negative numbers count as 0.

    Args:
      length: size of the result, needed inside transformations; larger numbers are dropped.

    >>> import polyax.numpy as jnp
    >>> jnp.bincount(jnp.array([0, 2, 2]), length=4).tolist()
    [1, 0, 2, 0]
    """
    x = ensure_array("bincount", x)
    if not dtypes.is_integer(x.dtype) and x.dtype not in dtypes.BOOL:
        raise TypeError(f"x argument to bincount must have an integer type; got {x.dtype}")
    if x.ndim != 1:
        raise ValueError("only 1-dimensional input supported.")
    if length is None:
        refuse_traced(
            x,
            "The error occurred because of argument 'x' of jnp.bincount. To avoid this error, pass a static "
            "`length` argument.",
        )
        length = max(minlength, int(np.asarray(x).max()) + 1 if x.size else 0)
    values = lax.full(x.shape, 1, dtypes.default_int()) if weights is None else ensure_array("bincount", weights)
    if values.shape != x.shape:
        raise ValueError(f"shape of weights must match shape of x. Got {values.shape} and {x.shape}")
    places = lax.expand_dims(lax.max(convert(x, np.dtype("int32")), 0), (1,))
    zeros = lax.full((length,), 0, values.dtype)
    return lax.scatter_add(zeros, places, values, lax.ScatterDimensionNumbers((), (0,), (0,)), mode="drop")


def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    """The edges of equal bins between the smallest and the largest element, or over ``range``; edges as they are."""
    from_user = len(shape_of(bins)) == 1 and not isinstance(bins, str)
    if isinstance(bins, str):
        raise NotImplementedError("string values for `bins` not implemented.")
    if from_user:
        a, bins = ensure_arrays("histogram_bin_edges", a, bins)
        return convert(bins, to_inexact(a.dtype))
    a = as_array(promote_args_inexact("histogram_bin_edges", a)[0])
    low, high = (
        (reductions.min(a), reductions.max(a)) if range is None else (convert(unwrap(v), a.dtype) for v in range)
    )
    same = lax.eq(low, high)
    low, high = choose(same, lax.sub(low, 0.5), low), choose(same, lax.add(high, 0.5), high)
    return linspace(low, high, int(bins) + 1, dtype=a.dtype)


def histogram(
    a: Any, bins: Any = 10, range: Any = None, weights: Any = None, density: bool | None = None
) -> tuple[Any, Any]:
    """Counts (or sums of weights, or densities) of the elements in each bin, and the bins' edges.

    >>> import polyax.numpy as jnp
    >>> [x.tolist() for x in jnp.histogram(jnp.array([0.0, 1.0, 1.0, 4.0]), bins=2)]
    [[3.0, 1.0], [0.0, 2.0, 4.0]]
    """
    if weights is not None and shape_of(weights) != shape_of(a):
        raise ValueError(f"weights should have the same shape as a, got {shape_of(weights)} and {shape_of(a)}.")
    if weights is None:
        (a,) = inexact("histogram", a)
        weights = lax.full((), 1, a.dtype)
    a, weights = inexact("histogram", a, weights)
    edges = convert(histogram_bin_edges(a, bins, range), a.dtype)
    flat = ravel(a)
    place = lax.sub(searchsorted(edges, flat, side="right"), 1)
    count = edges.shape[0] - 1
    place = choose(lax.eq(flat, lax.index_in_dim(edges, -1, 0, keepdims=False)), count - 1, place)
    place = choose(lax.lt(place, 0), count, place)  # below the first edge: dropped, like those above the last
    values = ravel(broadcast_to(weights, a.shape))
    counts = bincount(place, values, length=count)
    if density:
        widths = lax.sub(lax.slice_in_dim(edges, 1, count + 1), lax.slice_in_dim(edges, 0, count))
        counts = lax.div(lax.div(counts, widths), reductions.sum(counts))
    return counts, edges
