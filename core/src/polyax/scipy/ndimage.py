"""Arrays read between their elements, as in ``jax.scipy.ndimage``."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

from polyax import numpy as jnp
from polyax.ir import dtypes
from polyax.lax import lenient as lax

__all__ = ["map_coordinates"]


def _mirror(i: Any, n: int) -> Any:
    """Without the edges twice: 0 1 2 1 0 1 2."""
    period = max(2 * n - 2, 1)
    i = i % period
    return jnp.minimum(i, period - i) if n > 1 else jnp.zeros_like(i)


def _reflect(i: Any, n: int) -> Any:
    """With the edges twice: 0 1 2 2 1 0 0 1 2."""
    i = i % (2 * n)
    return jnp.minimum(i, 2 * n - 1 - i)


_MODES: dict[str, Callable[[Any, int], Any]] = {
    "constant": lambda i, n: i,
    "nearest": lambda i, n: jnp.clip(i, 0, n - 1),
    "wrap": lambda i, n: i % n,
    "mirror": _mirror,
    "reflect": _reflect,
}
Weighted = tuple[Any, Any]


def _nearest(at: Any) -> list[Weighted]:
    place = lax.round(at) if jnp.issubdtype(at.dtype, jnp.floating) else at  # halves away from zero
    return [(place.astype(jnp.int32), jnp.ones((), at.dtype))]


def _linear(at: Any) -> list[Weighted]:
    low = jnp.floor(at)
    part = at - low
    return [(low.astype(jnp.int32), 1 - part), (low.astype(jnp.int32) + 1, part)]


def map_coordinates(input: Any, coordinates: Sequence[Any], order: int, mode: str = "constant", cval: Any = 0.0) -> Any:
    """The values of an array at places between its elements.

    Args:
      coordinates: for each dimension of the array, where along it to read.
      order: 0 for the nearest element, 1 for linear interpolation.
      mode: what is beyond the edges: 'constant' (``cval``), 'nearest', 'wrap', 'mirror' or 'reflect'.

    Raises:
      NotImplementedError: another ``mode``, or a higher ``order``.
      ValueError: there isn't one array of coordinates for each dimension.

    >>> import numpy as np
    >>> print(map_coordinates(np.array([1.0, 3.0]), [np.array([0.5])], order=1))
    [2.]
    """
    if mode not in _MODES:
        raise NotImplementedError(f"map_coordinates does not yet support mode {mode}. "
                                  f"Currently supported modes are {set(_MODES)}.")  # fmt: skip
    if order not in (0, 1):
        raise NotImplementedError("map_coordinates currently requires order<=1")
    x = jnp.asarray(input)
    places = [jnp.asarray(c) for c in coordinates]
    if len(places) != x.ndim:
        raise ValueError(f"coordinates must be a sequence of length input.ndim, but {len(places)} != {x.ndim}")
    wide = jnp.result_type(float, x.dtype) if not dtypes.is_inexact(x.dtype) else x.dtype
    choices = [(_nearest if order == 0 else _linear)(c) for c in places]
    total: Any = 0
    for corner in itertools.product(*choices):
        value = _at(x, [i for i, _ in corner], mode, cval)
        total = total + math.prod((w for _, w in corner), start=1) * value.astype(wide)
    if not dtypes.is_inexact(x.dtype):
        total = lax.round(total)  # halves away from zero
    return jnp.asarray(total).astype(x.dtype)


def _at(x: Any, places: Sequence[Any], mode: str, cval: Any) -> Any:
    inside: Any = True
    if mode == "constant":
        for i, n in zip(places, x.shape, strict=True):
            inside = inside & (i >= 0) & (i < n)
    fixed = tuple(_MODES["nearest" if mode == "constant" else mode](i, n) for i, n in zip(places, x.shape, strict=True))
    value = x[fixed]
    return jnp.where(inside, value, jnp.asarray(cval).astype(x.dtype)) if mode == "constant" else value
