"""What a reduction is over: axes of the array, by number, and axes that are mapped, by name."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

import numpy as np

from polyax.lax import lenient as lax
from polyax.numpy.promotion import canonicalize_axes, refuse_traced


class Axes(NamedTuple):
    """Dimensions of an array, non-negative, and names of mapped axes, as ``vmap(axis_name=)`` gives them."""

    own: tuple[int, ...]
    names: tuple[Hashable, ...]

    def fold(self, name: str, op: Callable[..., Any], a: Any) -> Any:
        """``op``, a reduction of ``lax``, over all of them; ``name`` is the function that errors speak of.

        Raises:
          NotImplementedError: there are names, and no collective does what ``op`` does.
        """
        if not self.names:
            return op(a, self.own)
        collectives = {lax.reduce_sum: lax.psum, lax.reduce_max: lax.pmax, lax.reduce_min: lax.pmin}
        if op not in collectives:
            raise NotImplementedError(f"Named reductions not implemented for jnp.{name}()")
        return collectives[op](op(a, self.own), self.names)

    def count(self, shape: tuple[int, ...]) -> int:
        """How many elements of arrays of ``shape`` meet in one result."""
        return math.prod([*(shape[d] for d in self.own), *map(lax.axis_size, self.names)])


def named_axes(axis: Any, ndim: int, name: str) -> Axes:
    """The axes to reduce over, all of the array for ``None``.

    Raises:
      ConcretizationTypeError: the axis is traced.
    """
    refuse_traced(axis, f"axis argument to jnp.{name}().")
    if axis is None:
        return Axes(tuple(range(ndim)), ())
    parts = tuple(axis) if isinstance(axis, (np.ndarray, list, tuple)) else (axis,)
    names = tuple(part for part in parts if isinstance(part, str))
    if len(set(names)) != len(names):
        raise ValueError(f"duplicate value in 'axis': {axis}")
    return Axes(canonicalize_axes(tuple(part for part in parts if not isinstance(part, str)), ndim), names)


def reduction_axes(axis: Any, ndim: int, name: str) -> tuple[int, ...]:
    """The same where names mean nothing.

    Raises:
      ConcretizationTypeError: the axis is traced.
      TypeError: it is a name.
    """
    axes = named_axes(axis, ndim, name)
    if axes.names:
        raise TypeError(f"jnp.{name}() takes axes by number, got the names {axes.names}.")
    return axes.own
