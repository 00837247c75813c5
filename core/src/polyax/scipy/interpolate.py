"""Interpolation of data on grids, as ``jax.scipy.interpolate`` has it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from polyax import numpy as jnp
from polyax.numpy.promotion import ensure_array, inexact
from polyax.trace.register import register_pytree_node_class

__all__ = ["RegularGridInterpolator"]


@register_pytree_node_class
class RegularGridInterpolator:
    """A function that is known on a rectangular grid, and interpolated between its points.

    Args:
      points: for each dimension, where its grid lines are; in increasing order.
      values: at the points of the grid; dimensions beyond those of ``points`` are of vectors.
      method: 'linear' or 'nearest'.
      bounds_error: must be False, as errors can't depend on values.
      fill_value: what the function is outside of the grid; None extrapolates.

    Raises:
      ValueError: another ``method``, or points that don't fit or don't increase.
      NotImplementedError: ``bounds_error``.

    >>> f = RegularGridInterpolator([np.array([0.0, 2.0])], np.array([1.0, 5.0]))
    >>> print(f(np.array([[0.5]])))
    [2.]
    """

    def __init__(
        self,
        points: Sequence[Any],
        values: Any,
        method: str = "linear",
        bounds_error: bool = False,
        fill_value: Any = np.nan,
    ) -> None:
        if method not in ("linear", "nearest"):
            raise ValueError(f"method {method!r} is not defined")
        if bounds_error:
            raise NotImplementedError("`bounds_error` takes no effect under JIT")
        values = inexact("RegularGridInterpolator", values)[0]
        if len(points) > values.ndim:
            raise ValueError(f"there are {len(points)} point arrays, but values has {values.ndim} dimensions")
        grid = [inexact("RegularGridInterpolator", p)[0] for p in points]
        for i, p in enumerate(grid):
            if p.ndim != 1:
                raise ValueError(f"the points in dimension {i} must be 1-dimensional")
            if p.shape[0] != values.shape[i]:
                raise ValueError(f"there are {p.shape[0]} points and {values.shape[i]} values in dimension {i}")
            if isinstance(points[i], np.ndarray) and not np.all(np.diff(points[i]) > 0):
                raise ValueError(f"the points in dimension {i} must be strictly ascending")
        if fill_value is not None:
            fill_value = ensure_array("RegularGridInterpolator", fill_value)
            if not jnp.can_cast(fill_value.dtype, values.dtype, casting="same_kind"):
                raise ValueError("fill_value must be either 'None' or of a type compatible with values")
        self.method, self.fill_value, self.grid, self.values = method, fill_value, tuple(grid), values

    def tree_flatten(self) -> tuple[tuple[Any, ...], str]:
        """Its arrays, and the method."""
        return (self.grid, self.values, self.fill_value), self.method

    @classmethod
    def tree_unflatten(cls, aux: str, children: tuple[Any, ...]) -> RegularGridInterpolator:
        """The function with these arrays."""
        new = object.__new__(cls)
        new.method, (new.grid, new.values, new.fill_value) = aux, children
        return new

    def __call__(self, xi: Any, method: str | None = None) -> Any:
        """The function at points, whose coordinates are along the last axis, or a tuple of arrays.

        Raises:
          ValueError: another ``method``, or points of another dimension.
        """
        method = self.method if method is None else method
        if method not in ("linear", "nearest"):
            raise ValueError(f"method {method!r} is not defined")
        count = len(self.grid)
        if isinstance(xi, tuple):  # the coordinates
            xi = jnp.stack(jnp.broadcast_arrays(*xi), -1)
        else:
            xi = ensure_array("RegularGridInterpolator", xi)
            if xi.ndim == 1:  # points on a line, or one point
                xi = jnp.reshape(xi, (-1, 1) if count == 1 else (1, -1))
        if xi.shape[-1] != count:
            raise ValueError(
                f"the requested sample points xi have dimension {xi.shape[-1]}, but this RegularGridInterpolator has "
                f"dimension {count}"
            )
        flat = inexact("RegularGridInterpolator", xi)[0].reshape(-1, count)
        places = [self._place(flat[:, i], grid) for i, grid in enumerate(self.grid)]
        value = self._nearest(places) if method == "nearest" else self._linear(places)
        if self.fill_value is not None:
            outside = [(x < g[0]) | (x > g[-1]) for x, g in zip(flat.T, self.grid, strict=True)]
            outside = jnp.any(jnp.stack(outside), 0).reshape(-1, *(1,) * (value.ndim - 1))
            value = jnp.where(outside, self.fill_value, value)
        return value.reshape(*xi.shape[:-1], *self.values.shape[count:])

    def _place(self, x: Any, grid: Any) -> tuple[Any, Any]:
        """The cell of each point, and where in it the point is."""
        cell = jnp.clip(jnp.searchsorted(grid, x, side="right") - 1, 0, max(grid.shape[0] - 2, 0))
        following = jnp.minimum(cell + 1, grid.shape[0] - 1)
        width = grid[following] - grid[cell]
        return cell, (x - grid[cell]) / jnp.where(width == 0, 1, width)

    def _nearest(self, places: Sequence[tuple[Any, Any]]) -> Any:
        return self.values[tuple(jnp.where(part <= 0.5, cell, cell + 1) for cell, part in places)]

    def _linear(self, places: Sequence[tuple[Any, Any]]) -> Any:
        total: Any = 0
        for corner in itertools.product((0, 1), repeat=len(places)):
            parts = [part if c else 1 - part for c, (_, part) in zip(corner, places, strict=True)]
            weight: Any = math.prod(parts)
            at = tuple(cell + c for c, (cell, _) in zip(corner, places, strict=True))
            value = self.values[at]
            total = total + weight.reshape(-1, *(1,) * (value.ndim - 1)) * value
        return total
