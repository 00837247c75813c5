"""``jax._src.core``'s names that libraries use, and that aren't public elsewhere."""

from __future__ import annotations

from typing import Any

from polyax.ir import dtypes
from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.primitive import ambient

get_aval = aval_of


def trace_state_clean() -> bool:
    """Whether nothing is being traced or transformed."""
    return ambient.trace is None


def physical_aval(aval: ShapedArray) -> ShapedArray:
    """The type of what represents values of an extended dtype; other types stay."""
    if not dtypes.is_extended(aval.dtype):
        return aval
    dtype: Any = aval.dtype
    return ShapedArray((*aval.shape, *dtype.element_shape), dtype.physical)
