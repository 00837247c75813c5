"""Numbers of diagonals, as creating functions take them."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.ir.aval import aval_of
from polyax.ir.dims import is_symbolic_dim
from polyax.lax import lenient as lax
from polyax.numpy.promotion import check_arraylike, convert, is_traced, unwrap

_FAR = 2**30
"""Beyond all diagonals with elements; an index more or less is still an int32."""


def diagonal_offset(k: Any) -> Any:
    """The distance of a diagonal from the main one, as int32; of one without elements maybe that of another."""
    if is_symbolic_dim(k):
        return convert(unwrap(k), np.dtype("int32"))
    if not is_traced(k):
        return np.int32(min(max(operator.index(k), -_FAR), _FAR))
    k = unwrap(k)
    if k.dtype.itemsize >= 4:
        limits = np.iinfo(k.dtype)
        k = lax.clamp(max(limits.min, -_FAR), k, min(limits.max, _FAR))
    return convert(k, np.dtype("int32"))


def refuse_too_far(k: Any) -> None:
    """A number of a diagonal is one of the default integers; ``eye`` alone takes any."""
    kind = dtypes.default_int()
    if isinstance(k, int) and not np.iinfo(kind).min <= k <= np.iinfo(kind).max:
        raise OverflowError(f"Python int {k} too large to convert to {kind.name}")


def check_scalar_integer(k: Any) -> None:
    """That ``k``, of ``eye``, is one."""
    check_arraylike("eye", k)
    if np.ndim(k) or aval_of(k).dtype.kind not in "biu":
        raise ValueError(f"k must be a scalar integer; got {k}")
