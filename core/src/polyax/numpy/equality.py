"""Comparisons of whole arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.lax import lenient as lax
from polyax.numpy import reductions
from polyax.numpy.arrays import asarray
from polyax.numpy.broadcast import broadcast_to
from polyax.numpy.logic import isclose, isnan
from polyax.numpy.promotion import as_array, convert

__all__ = ["allclose", "array_equal", "array_equiv"]


def allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    """Whether ``isclose`` holds everywhere.

    >>> import polyax.numpy as jnp
    >>> jnp.allclose(jnp.array([1.0, 1e10]), jnp.array([1.0, 1.00001e10])).item()
    False
    """
    return reductions.all(isclose(a, b, rtol, atol, equal_nan))


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    """Whether both have the same shape and elements.

    >>> import polyax.numpy as jnp
    >>> jnp.array_equal(jnp.arange(2), jnp.arange(3)).item()
    False
    """
    a1, a2 = asarray(a1), asarray(a2)
    if a1.shape != a2.shape:
        return as_array(np.bool_(False))
    return _all_equal(a1, a2, equal_nan)


def array_equiv(a1: Any, a2: Any) -> Any:
    """Whether both broadcast to the same shape and have the same elements."""
    a1, a2 = asarray(a1), asarray(a2)
    try:
        shape = lax.broadcast_shapes(a1.shape, a2.shape)
    except ValueError:
        return as_array(np.bool_(False))
    kind = dtypes.wider(a1.dtype, a2.dtype)
    return _all_equal(broadcast_to(convert(a1, kind), shape), broadcast_to(convert(a2, kind), shape), False)


def _all_equal(a: Any, b: Any, equal_nan: bool) -> Any:
    same = a == b
    return reductions.all(same | (isnan(a) & isnan(b)) if equal_nan else same)
